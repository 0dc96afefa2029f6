#include "nacre/train/epoch_log.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/pending_file.h"

namespace nacre {
namespace {

constexpr const char* kHeader = "epoch,loss,lr,seconds,train,val,test,val_loss\n";

std::string cell(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

// CsvLog writes metrics.csv, which has a line for every epoch. Cells of scores that were not
// computed are empty.
class CsvLog : public EpochLog {
 public:
  explicit CsvLog(const EpochLogPlace& place) : path_(place.folder + "/metrics.csv") {
    write_file(path_, kHeader + (place.resumed_epoch > 0 ? lines_up_to(place.resumed_epoch) : ""));
    file_ = std::fopen(path_.c_str(), "ae");
    if (file_ == nullptr) throw UserError(path_, "cannot be written");
  }
  ~CsvLog() override { std::fclose(file_); }
  CsvLog(const CsvLog&) = delete;
  CsvLog& operator=(const CsvLog&) = delete;

  void add(const EpochReport& r) override {
    const std::string line =
        fmt::format("{},{},{},{},{},{},{},{}\n", r.epoch, cell(r.loss), cell(r.lr), cell(r.seconds),
                    cell(r.scores.train), cell(r.scores.val), cell(r.scores.test), cell(r.scores.val_loss));
    if (std::fputs(line.c_str(), file_) < 0 || std::fflush(file_) != 0) throw RuntimeError(path_, "cannot be written");
  }

 private:
  // Returns the whole lines of the epochs up to `last` that the file has. If there is no file,
  // because the run had no such log before, the lines are made from the metrics of the run.
  std::string lines_up_to(int last) const {
    std::error_code ignored;
    if (!std::filesystem::exists(path_, ignored)) return lines_of_metrics(last);
    std::istringstream lines(read_file(path_));
    std::string kept;
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      int epoch = 0;
      const auto number = std::from_chars(line.data(), line.data() + line.size(), epoch);
      if (number.ec == std::errc() && epoch <= last) kept += line + "\n";
    }
    return kept;
  }

  std::string lines_of_metrics(int last) const {
    const std::string metrics = std::filesystem::path(path_).replace_filename("metrics.jsonl").string();
    std::error_code ignored;
    if (!std::filesystem::exists(metrics, ignored)) return "";
    std::istringstream lines(read_file(metrics));
    std::string made;
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      const auto epoch = parse_json_or_discard<nlohmann::json>(line);
      if (!epoch.is_object() || !epoch.value("epoch", nlohmann::json()).is_number_integer() || epoch.at("epoch") > last)
        continue;
      made += epoch.at("epoch").dump();
      for (const char* key : {"loss", "lr", "seconds", "train", "val", "test", "val_loss"}) {
        const auto value = epoch.find(key);
        made += ",";
        if (value != epoch.end() && value->is_number()) made += cell(value->get<double>());
      }
      made += "\n";
    }
    return made;
  }

  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace

std::unique_ptr<EpochLog> open_csv_log(const EpochLogPlace& place) { return std::make_unique<CsvLog>(place); }

std::unique_ptr<EpochLog> open_epoch_log(const std::string& name, const EpochLogPlace& place) {
  if (name == "csv") return open_csv_log(place);
  if (name == "tensorboard") return open_event_log(place);
  throw UserError("--log", "unknown log '" + name + "'", "choose csv or tensorboard");
}

}  // namespace nacre
