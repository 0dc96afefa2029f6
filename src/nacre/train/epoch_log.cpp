#include "nacre/train/epoch_log.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "nacre/base/error.h"
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
  // Returns the whole lines of the epochs up to `last` that the file has.
  std::string lines_up_to(int last) const {
    std::error_code ignored;
    if (!std::filesystem::exists(path_, ignored)) return "";
    std::istringstream lines(read_file(path_));
    std::string kept;
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      int epoch = 0;
      const auto number = std::from_chars(line.data(), line.data() + line.size(), epoch);
      if (number.ec == std::errc() && epoch <= last) kept += line + "\n";
    }
    return kept;
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
