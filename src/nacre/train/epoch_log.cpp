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

std::string line_of(const EpochReport& r) {
  return fmt::format("{},{},{},{},{},{},{},{}\n", r.epoch, cell(r.loss), cell(r.lr), cell(r.seconds),
                     cell(r.scores.train), cell(r.scores.val), cell(r.scores.test), cell(r.scores.val_loss));
}

// CsvLog writes metrics.csv, which has a line for every epoch. Cells of scores that were not
// computed are empty.
class CsvLog : public EpochLog {
 public:
  explicit CsvLog(const EpochLogPlace& place) : path_(place.folder + "/metrics.csv") {
    write_file(path_, kHeader + (place.resumed_epoch > 0 ? lines_up_to(place) : ""));
    file_ = std::fopen(path_.c_str(), "ae");
    if (file_ == nullptr) throw UserError(path_, "cannot be written");
  }
  ~CsvLog() override { std::fclose(file_); }
  CsvLog(const CsvLog&) = delete;
  CsvLog& operator=(const CsvLog&) = delete;

  void add(const EpochReport& r) override {
    if (std::fputs(line_of(r).c_str(), file_) < 0 || std::fflush(file_) != 0)
      throw RuntimeError(path_, "cannot be written");
  }

 private:
  // Returns a line for each epoch up to the resumed one: the whole line that the file has or, if it
  // has none, a line that is made from the metrics of the run.
  std::string lines_up_to(const EpochLogPlace& place) const {
    std::map<int, std::string> kept;
    for (const auto& [epoch, report] : epochs_in_metrics(place)) kept[epoch] = line_of(report);
    std::error_code ignored;
    std::istringstream lines(std::filesystem::exists(path_, ignored) ? read_file(path_) : "");
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      int epoch = 0;
      const auto number = std::from_chars(line.data(), line.data() + line.size(), epoch);
      if (number.ec == std::errc() && epoch <= place.resumed_epoch) kept[epoch] = line + "\n";
    }
    std::string all;
    for (const auto& [epoch, line] : kept) all += line;
    return all;
  }

  std::string path_;
  std::FILE* file_ = nullptr;
};

double number_in(const nlohmann::json& line, const char* key) {
  const auto value = line.find(key);
  return value != line.end() && value->is_number() ? value->get<double>() : NAN;
}

// Adds the epochs up to `last` that the lines of a metrics file describe. Adds none if the file
// does not exist or is, for example, a pipe, whose lines cannot be read again.
void add_epochs(const std::string& path, int last, std::map<int, EpochReport>& epochs) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored) || writes_straight(path)) return;
  std::istringstream lines(read_file(path));
  for (std::string text; std::getline(lines, text) && !lines.eof();) {
    const auto line = parse_json_or_discard<nlohmann::json>(text);
    const auto epoch = line.is_object() ? line.value("epoch", nlohmann::json()) : nlohmann::json();
    if (!epoch.is_number_integer() || epoch < 1 || epoch > last) continue;
    EpochReport report;
    report.epoch = epoch.get<int>();
    report.loss = number_in(line, "loss");
    report.lr = number_in(line, "lr");
    report.seconds = number_in(line, "seconds");
    report.scores = {number_in(line, "train"), number_in(line, "val"), number_in(line, "test"),
                     number_in(line, "val_loss")};
    epochs[report.epoch] = report;
  }
}

}  // namespace

std::map<int, EpochReport> epochs_in_metrics(const EpochLogPlace& place) {
  std::map<int, EpochReport> epochs;
  // Before it was resumed, the run may have written its metrics to metrics.jsonl instead of
  // `metrics`.
  for (const std::string& path : {place.folder + "/metrics.jsonl", place.metrics})
    add_epochs(path, place.resumed_epoch, epochs);
  return epochs;
}

std::unique_ptr<EpochLog> open_csv_log(const EpochLogPlace& place) { return std::make_unique<CsvLog>(place); }

std::unique_ptr<EpochLog> open_epoch_log(const std::string& name, const EpochLogPlace& place) {
  if (name == "csv") return open_csv_log(place);
  if (name == "tensorboard") return open_event_log(place);
  throw UserError("--log", "unknown log '" + name + "'", "choose csv or tensorboard");
}

}  // namespace nacre
