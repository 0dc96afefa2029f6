#include "nacre/cost/operation_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/philox.h"
#include "nacre/cost/profile.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFormat = "nacre-operation-costs";

// Returns the path of the costs in the cache folder, or an empty text if there is no cache folder.
std::string path_of(const std::string& key) {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  uint64_t hash = 0;
  for (const char c : key) hash = mix_key(hash, static_cast<unsigned char>(c));
  return (fs::path(folder) / fmt::format("operation-costs-{:016x}.json", hash)).string();
}

}  // namespace

std::vector<std::string> batch_operations() {
  return {"sample",    "reindex", "gather",       "prepare",        "bind",  "transfer",
          "aggregate", "combine", "combine_grad", "aggregate_grad", "update"};
}

OperationCosts OperationCosts::fitted(const std::vector<TimedOperation>& timings) {
  std::map<OperationKey, std::vector<MfgTiming>> by_key;
  for (const TimedOperation& t : timings) by_key[t.key].push_back(t.timing);
  OperationCosts costs;
  for (const auto& [key, list] : by_key) {
    const MfgCost cost = MfgCost::fitted(list);
    if (cost.samples() > 0) costs.costs_.emplace(key, cost);
  }
  return costs;
}

double held_out_batch_error(const std::vector<TimedOperation>& timings, const std::string& device) {
  constexpr int kFolds = 5;
  std::vector<double> errors;
  // Only batches that were computed in the plan of the run are predicted; all others were computed
  // in plans with another order of the layers.
  std::set<int> planned;
  for (const TimedOperation& t : timings) {
    if (t.key.device == device && t.key.order == "plan") planned.insert(t.batch);
  }
  for (int fold = 0; fold < kFolds; ++fold) {
    std::vector<TimedOperation> others;
    std::map<int, std::pair<double, double>> sums;  // predicted and measured seconds of each batch
    const auto counts = [&](const TimedOperation& t) {
      const bool once = t.key.operation == "update" || t.key.operation == "transfer";
      return t.key.device == device && !once && (t.key.order.empty() || t.key.order == "plan");
    };
    for (const TimedOperation& t : timings) {
      if (counts(t) && t.batch % kFolds != fold) others.push_back(t);
    }
    const OperationCosts costs = OperationCosts::fitted(others);
    if (costs.empty()) continue;
    for (const TimedOperation& t : timings) {
      if (!counts(t) || t.batch % kFolds != fold || !planned.contains(t.batch)) continue;
      sums[t.batch].first += costs.predict(t.key, t.timing.size);
      sums[t.batch].second += t.timing.seconds;
    }
    for (const auto& [batch, sum] : sums) errors.push_back(std::abs(sum.first / sum.second - 1));
  }
  if (errors.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(errors.begin(), errors.end());
  return errors[errors.size() / 2];
}

const MfgCost* OperationCosts::find(const OperationKey& key) const {
  const auto found = costs_.find(key);
  return found == costs_.end() ? nullptr : &found->second;
}

void OperationCosts::add(const OperationCosts& other) {
  costs_.insert(other.costs_.begin(), other.costs_.end());
  first_transfer_.insert(other.first_transfer_.begin(), other.first_transfer_.end());
}

double OperationCosts::predict(const OperationKey& key, const MfgSize& size) const {
  const MfgCost* cost = find(key);
  return cost == nullptr ? 0 : cost->predict(size);
}

double OperationCosts::first_transfer(const std::string& device) const {
  const auto found = first_transfer_.find(device);
  return found == first_transfer_.end() ? 0 : found->second;
}

double OperationCosts::transfer(const std::string& device, double bytes, double batches) const {
  return predict({device, "transfer", 0, ""}, {bytes, 0}) + first_transfer(device) / std::max(1.0, batches);
}

std::string OperationCosts::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [key, cost] : costs_) {
    list.push_back({{"device", key.device},
                    {"operation", key.operation},
                    {"layer", key.layer},
                    {"order", key.order},
                    {"cost", parse_json<nlohmann::json>(cost.json(), "costs")}});
  }
  return nlohmann::json{{"operations", list}, {"first_transfer", first_transfer_}}.dump();
}

OperationCosts OperationCosts::parse(const std::string& text, const std::string& where) {
  try {
    const auto j = parse_json<nlohmann::json>(text, where);
    OperationCosts costs;
    for (const auto& entry : j.at("operations")) {
      const OperationKey key{entry.at("device").get<std::string>(), entry.at("operation").get<std::string>(),
                             entry.at("layer").get<int>(), entry.at("order").get<std::string>()};
      costs.costs_.emplace(key, MfgCost::parse(entry.at("cost").dump(), where));
    }
    costs.first_transfer_ = j.at("first_transfer").get<std::map<std::string, double>>();
    return costs;
  } catch (const nlohmann::json::exception&) {
    throw UserError(where, "holds no costs of operations");
  }
}

std::optional<OperationCosts> load_operation_costs(const std::string& key) {
  const std::string path = path_of(key);
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return std::nullopt;
  try {
    const auto object = parse_json<nlohmann::json>(read_file(path), path);
    if (!object.is_object() || object.value("format", "") != kFormat)
      throw UserError(path, "is not a file of operation costs");
    if (object.value("key", "") != key) return std::nullopt;
    return OperationCosts::parse(object.value("costs", nlohmann::json()).dump(), path);
  } catch (const std::exception& error) {
    log_warning(
        fmt::format("the costs of operations are not used: {} (measure again with nacre profile)", error.what()));
    return std::nullopt;
  }
}

void save_operation_costs(const std::string& key, const OperationCosts& costs) {
  try {
    const std::string path = path_of(key);
    if (path.empty()) {
      log_verbose("the costs of operations are not kept: none of NACRE_CACHE, XDG_CACHE_HOME and HOME is set");
      return;
    }
    const nlohmann::json object = {
        {"format", kFormat}, {"key", key}, {"costs", parse_json<nlohmann::json>(costs.json(), path)}};
    fs::create_directories(fs::path(path).parent_path());
    write_file(path, object.dump());
  } catch (const std::exception& error) {
    log_warning(fmt::format("the costs of operations cannot be stored: {}", error.what()));
  }
}

}  // namespace nacre
