#include "nacre/train/step_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/philox.h"
#include "nacre/cost/gpu_profile.h"
#include "nacre/device/device.h"
#include "nacre/engine/calibrate.h"
#include "nacre/train/device.h"
#include "nacre/train/step_features.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "nacre-step-model";
constexpr int kFolds = 10;

// Returns the path of the model in the cache folder; empty if there is no such folder.
std::string path_of(const std::string& key) {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  uint64_t hash = 0;
  for (const char c : key) hash = mix_key(hash, static_cast<unsigned char>(c));
  return (fs::path(folder) / fmt::format("step-model-{:016x}.json", hash)).string();
}

// Returns a name that is equal for devices that are equally fast.
std::string device_label(const RunConfig& config, int threads) {
  const DeviceChoice choice = choose_device(config.device, config.precision);
  if (!choice.gpu) return machine_name(threads);
  const DeviceInfo info = device_plugin()->devices()[choice.index];
  const int multiprocessors = choice.multiprocessors > 0 ? choice.multiprocessors : info.multiprocessors;
  return gpu_label(info.name, multiprocessors) + ", " + config.precision;
}

std::vector<TimedStep> steps_of(const std::vector<TimedPart>& parts) {
  std::vector<TimedStep> steps;
  steps.reserve(parts.size());
  for (const TimedPart& part : parts) steps.push_back(part.step);
  return steps;
}

}  // namespace

std::string step_model_key(const RunConfig& config, int threads) {
  ModelOptions m = config.model;
  const ModelInfo& info = model_info(m.model);
  if (m.heads == 0) m.heads = std::max(1, info.heads);
  if (m.aggregator.empty() && !info.aggregators.empty()) m.aggregator = info.aggregators.front();
  const std::string name = device_label(config, threads);
  std::string features;
  for (const FeatureColumn& column : step_columns()) features += " " + column.name;
  return fmt::format("{}; {}; {} layers {} hidden {} heads {} aggregator {} norm {} residual {} dropout {};{}", name,
                     kProfileVersion, m.model, m.layers, m.hidden, m.heads, m.aggregator, m.norm, m.residual, m.dropout,
                     features);
}

StepModel learn_step_model(std::vector<TimedPart> parts, const std::vector<RegressorScore>& scores, uint64_t seed) {
  const RegressorScore& best = best_score(scores);
  const std::vector<TimedStep> steps = steps_of(parts);
  return {PerformanceModel::fitted(step_columns(), steps, best.regressor, best.target, seed), best, std::move(parts)};
}

std::optional<PerformanceModel> load_step_model(const std::string& key) {
  const std::string path = path_of(key);
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return std::nullopt;
  try {
    const auto object = parse_json<nlohmann::json>(read_file(path), path);
    if (!object.is_object() || object.value("format", "") != kFormat)
      throw UserError(path, "holds no performance model");
    if (object.value("key", "") != key) return std::nullopt;
    PerformanceModel model = PerformanceModel::parse(object.value("model", nlohmann::json()).dump(), path);
    if (model.columns() != step_columns())
      throw UserError(path, "was learned from other features than this program computes");
    return model;
  } catch (const std::exception& error) {
    log_warning(fmt::format("the performance model is not used: {}", error.what()));
    return std::nullopt;
  }
}

void save_step_model(const std::string& key, const StepModel& model) {
  try {
    const std::string path = path_of(key);
    if (path.empty()) {
      log_verbose("the performance model is not kept: none of NACRE_CACHE, XDG_CACHE_HOME and HOME is set");
      return;
    }
    nlohmann::json parts = nlohmann::json::array();
    for (const TimedPart& p : model.parts) {
      parts.push_back({{"graph", p.graph}, {"seconds", p.step.seconds}, {"features", p.step.features}});
    }
    const nlohmann::json object = {{"format", kFormat},
                                   {"key", key},
                                   {"mape", model.score.errors.mape},
                                   {"model", parse_json<nlohmann::json>(model.model.json(), path)},
                                   {"parts", parts}};
    fs::create_directories(fs::path(path).parent_path());
    write_file(path, object.dump());
  } catch (const std::exception& error) {
    log_warning(fmt::format("the performance model cannot be stored: {}", error.what()));
  }
}

PerformanceModel step_model(const RunConfig& config, const std::vector<PartSource>& sources,
                            const PartSampling& sampling) {
  const std::string key = step_model_key(config, num_threads());
  if (std::optional<PerformanceModel> stored = load_step_model(key)) return *std::move(stored);
  std::vector<TimedPart> parts = time_parts(config, sources, sampling);
  const std::vector<TimedStep> steps = steps_of(parts);
  const StepModel learned = learn_step_model(
      std::move(parts), compare_regressors(step_columns(), steps, kFolds, sampling.seed), sampling.seed);
  save_step_model(key, learned);
  return learned.model;
}

}  // namespace nacre
