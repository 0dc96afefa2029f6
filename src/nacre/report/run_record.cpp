#include "nacre/report/run_record.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/pending_file.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

// Largest number of bytes of a picture file. A larger picture is left out, because it would make
// the page too large.
constexpr uintmax_t kMostPictureBytes = 500'000;

bool there(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string shown(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

double number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : NAN;
}

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<int64_t> nodes(const json& object, const char* key) {
  std::vector<int64_t> all;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return all;
  for (const json& node : *found) {
    if (node.is_number_integer()) all.push_back(node.get<int64_t>());
  }
  return all;
}

void read_settings(const std::string& path, RunRecord& run) {
  const auto config = parse_json<ordered_json>(read_file(path), path);
  if (!config.is_object()) throw UserError(path, "holds no settings");
  for (const auto& [section, values] : config.items()) {
    if (!values.is_object()) continue;
    for (const auto& [key, value] : values.items()) run.settings.emplace_back(section + "." + key, shown(value));
  }
}

void read_ranks(const json& line, RunRecord& run) {
  const auto ranks = line.find("ranks");
  if (ranks == line.end() || !ranks->is_array()) return;
  run.ranks.resize(std::max(run.ranks.size(), ranks->size()));
  const auto seconds = [](double value) { return std::isnan(value) ? 0.0 : value; };
  for (size_t r = 0; r < ranks->size(); ++r) {
    const json& rank = (*ranks)[r];
    if (!rank.is_object()) continue;
    run.ranks[r].computing += seconds(number(rank, "computing_s"));
    run.ranks[r].communication += seconds(number(rank, "communication_s"));
    run.ranks[r].waiting += seconds(number(rank, "waiting_s"));
  }
}

void read_metrics(const std::string& path, RunRecord& run) {
  std::istringstream lines(read_file(path));
  std::string line;
  for (int64_t n = 1; std::getline(lines, line); ++n) {
    // Skip a last line without an end, which a run that was killed may have left.
    if (line.empty() || lines.eof()) continue;
    const auto j = parse_json<json>(line, path + ", line " + std::to_string(n));
    if (!j.is_object()) throw UserError(path, "line " + std::to_string(n) + " is no JSON object");
    run.epochs.push_back({number(j, "epoch"), number(j, "loss"), number(j, "lr"), number(j, "seconds"),
                          number(j, "train"), number(j, "val"), number(j, "test"), number(j, "val_loss")});
    read_ranks(j, run);
  }
}

// Returns the number in a text of at most 9 digits; -1 for other texts.
int64_t number_of(const std::string& digits) {
  if (digits.empty() || digits.size() > 9 || !std::all_of(digits.begin(), digits.end(), ::isdigit)) return -1;
  return std::stoll(digits);
}

// Returns the part of a text from `begin` to the first of the characters `ends` or to its end.
std::string part_of(const std::string& text, size_t begin, const char* ends) {
  return text.substr(begin, text.find_first_of(ends, begin) - begin);
}

// Returns the numbers in "(%1, %2)".
std::vector<int64_t> inputs_of(const std::string& line) {
  std::vector<int64_t> inputs;
  const size_t end = std::min(line.find(')'), line.size());
  const size_t begin = std::min(line.find('('), end);
  for (size_t at = line.find('%', begin); at < end; at = line.find('%', at + 1)) {
    if (const int64_t number = number_of(part_of(line, at + 1, ",)")); number >= 0) inputs.push_back(number);
  }
  return inputs;
}

// Returns the nodes of the DFG's text, in which a line is "%3 = matmul(%1, %2) : v0[8] …".
std::vector<OperationRecord> operations_of(const std::string& dfg) {
  std::vector<OperationRecord> operations;
  std::istringstream lines(dfg);
  std::string line;
  while (std::getline(lines, line)) {
    const size_t equals = line.find(" = ");
    if (!line.starts_with("%") || equals == std::string::npos) continue;
    const int64_t number = number_of(line.substr(1, equals - 1));
    if (number < 0) continue;
    OperationRecord record;
    record.number = number;
    record.line = line;
    record.operation = part_of(line, equals + 3, "( ");
    const size_t type = line.find(" : "), name = line.find(" name=");
    if (type != std::string::npos) record.shape = part_of(line, type + 3, " ");
    if (name != std::string::npos) record.leaf = part_of(line, name + 6, " ");
    record.inputs = inputs_of(line);
    operations.push_back(std::move(record));
  }
  return operations;
}

void read_plan(const std::string& path, RunRecord& run) {
  const auto plan = parse_json<json>(read_file(path), path);
  if (!plan.is_object() || !plan.contains("kernels") || !plan.at("kernels").is_array()) return;
  run.operations = operations_of(text(plan, "dfg"));
  std::map<int64_t, std::string> operations;
  for (const OperationRecord& operation : run.operations) operations.emplace(operation.number, operation.operation);
  for (const json& k : plan.at("kernels")) {
    const auto index = static_cast<int64_t>(&k - &plan.at("kernels").front());
    if (!k.is_object()) continue;
    KernelRecord kernel;
    kernel.index = index;
    kernel.kind = text(k, "kind");
    kernel.why = text(k, "why");
    kernel.floor_bytes = number(k, "floor_bytes");
    kernel.flops = number(k, "flops");
    kernel.once = k.contains("once") && k.at("once").is_boolean() && k.at("once").get<bool>();
    kernel.nodes = nodes(k, "nodes");
    kernel.reads = nodes(k, "reads");
    kernel.writes = nodes(k, "writes");
    const double root = number(k, "root");
    const auto operation = std::isnan(root) ? operations.end() : operations.find(static_cast<int64_t>(root));
    kernel.operation = operation == operations.end() ? "?" : operation->second;
    run.kernels.push_back(std::move(kernel));
  }
}

// Adds the times in result.json to the kernels of `run`. Both lists of kernels have the order of
// the plan.
void read_kernel_times(const ordered_json& result, RunRecord& run) {
  if (!result.contains("kernels") || !result.at("kernels").is_array()) return;
  const json list = result.at("kernels");
  for (KernelRecord& kernel : run.kernels) {
    const auto at = static_cast<size_t>(kernel.index);
    if (at >= list.size() || !list[at].is_object()) continue;
    const double ms = number(list[at], "ms"), floor_ms = number(list[at], "floor_ms");
    if (ms >= 0) kernel.ms = ms;
    if (floor_ms >= 0) kernel.floor_ms = floor_ms;
  }
}

void read_result(const std::string& path, RunRecord& run) {
  const auto result = parse_json<ordered_json>(read_file(path), path);
  if (!result.is_object()) throw UserError(path, "holds no results");
  for (const auto& [key, value] : result.items()) {
    if (!value.is_structured()) run.results.emplace_back(key, shown(value));
  }
  read_kernel_times(result, run);
  if (!result.contains("bill") || !result.at("bill").is_array()) return;
  for (const ordered_json& phase : result.at("bill")) {
    if (!phase.is_object() || !phase.contains("phase") || !phase.contains("items")) continue;
    PhaseRecord record{shown(phase.at("phase")), {}};
    for (const auto& [what, bytes] : phase.at("items").items()) {
      if (bytes.is_number()) record.items.emplace_back(what, bytes.get<double>());
    }
    run.bill.push_back(std::move(record));
  }
}

void read_warnings(const std::string& path, RunRecord& run) {
  std::istringstream lines(read_file(path));
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.empty()) run.warnings.push_back(line);
  }
}

std::string found(const std::vector<std::pair<std::string, std::string>>& values, const std::string& key) {
  const auto at = std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == key; });
  return at == values.end() ? "" : at->second;
}

}  // namespace

double PhaseRecord::bytes() const {
  double sum = 0;
  for (const auto& [what, bytes] : items) sum += bytes;
  return sum;
}

std::string RunRecord::setting(const std::string& path) const { return found(settings, path); }
std::string RunRecord::result(const std::string& key) const { return found(results, key); }

RunRecord read_run_record(const std::string& folder) {
  RunRecord run;
  run.folder = folder;
  const fs::path path = fs::path(folder).lexically_normal();
  run.name = (path.has_filename() ? path : path.parent_path()).filename().string();
  if (run.name.empty() || run.name == "." || run.name == "..") run.name = folder;
  if (!there(folder + "/config.json"))
    throw UserError(folder, "is no run folder: it has no config.json", "name a folder that nacre train has written");
  read_settings(folder + "/config.json", run);
  // If the run had --metrics, its metrics are in the file that the option named.
  const std::string metrics = run.setting("output.metrics");
  const std::string lines = metrics.empty() ? folder + "/metrics.jsonl" : metrics;
  if (there(lines)) read_metrics(lines, run);
  if (there(folder + "/plan.json")) read_plan(folder + "/plan.json", run);
  if (there(folder + "/result.json")) read_result(folder + "/result.json", run);
  std::error_code ignored;
  const std::string picture = folder + "/partition.svg";
  if (there(picture) && fs::file_size(picture, ignored) <= kMostPictureBytes) run.partition_svg = read_file(picture);
  if (there(folder + "/warnings.txt")) read_warnings(folder + "/warnings.txt", run);
  return run;
}

}  // namespace nacre
