#include "nacre/train/config.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/data/made_features.h"
#include "nacre/model/model_file.h"
#include "nacre/train/batch_schedules.h"
#include "nacre/train/model_paths.h"

namespace nacre {
namespace {

using nlohmann::json;

constexpr const char* kUnusable = "holds no usable configuration";
constexpr const char* kUnusableRemedy = "use the model.safetensors that a run folder holds";

json kinds_json(const std::vector<VertexKind>& kinds) {
  json list = json::array();
  for (const VertexKind& k : kinds)
    list.push_back({{"name", k.name}, {"vertices", k.vertices}, {"features", k.features}});
  return list;
}

json model_json(const ModelOptions& m) {
  json j = {{"model", m.model},
            {"layers", m.layers},
            {"in_dim", m.in_dim},
            {"hidden", m.hidden},
            {"out_dim", m.out_dim},
            {"heads", m.heads},
            {"out_heads", m.out_heads},
            {"dropout", m.dropout},
            {"input_dropout", m.input_dropout},
            {"attention_dropout", m.attention_dropout},
            {"aggregator", m.aggregator},
            {"activation", m.activation},
            {"norm", m.norm},
            {"residual", m.residual},
            {"num_bases", m.num_bases},
            {"num_edge_types", m.num_edge_types},
            {"edge_weighted", m.edge_weighted},
            {"loss", m.loss},
            {"knobs", m.knobs}};
  if (!m.kinds.empty()) j["kinds"] = kinds_json(m.kinds);
  if (const std::string file = file_of_model(m.model); !file.empty()) j["file"] = file;
  return j;
}

json data_json(const RunConfig& c) {
  return {{"data", c.data},
          {"folder", c.folder},
          {"format", c.load.format},
          {"features", c.load.features_file},
          {"labels", c.load.labels_file},
          {"splits", c.load.splits_file},
          {"num_nodes", c.load.num_nodes},
          {"undirected", c.load.undirected},
          {"data_seed", c.load.seed},
          {"split", c.load.split},
          {"split_seed", c.load.split_seed},
          {"ignore_edge_weights", c.load.ignore_edge_weights},
          {"normalize_features", c.normalize_features},
          {"relations", c.relations}};
}

json training_json(const RunConfig& c) {
  const OptimizerOptions& o = c.optimizer;
  const ScheduleOptions& s = c.schedule;
  return {{"optimizer", o.name},
          {"lr", o.lr},
          {"weight_decay", o.weight_decay},
          {"momentum", o.momentum},
          {"beta1", o.beta1},
          {"beta2", o.beta2},
          {"eps", o.epsilon},
          {"lr_schedule", s.name},
          {"warmup", s.warmup},
          {"lr_step", s.step_size},
          {"lr_gamma", s.gamma},
          {"lr_final", s.final_ratio},
          {"lr_patience", s.patience},
          {"clip_grad_norm", o.clip_norm},
          {"ema", o.ema},
          {"label_smoothing", c.model.label_smoothing},
          {"class_weights", c.class_weights},
          {"init", c.init},
          {"epochs", c.epochs},
          {"seed", c.seed},
          {"metric", c.metric},
          {"eval_every", c.eval_every},
          {"patience", c.patience},
          {"select", c.select}};
}

json batches_json(const RunConfig& c) {
  const SampleOptions& s = c.sampling;
  return {{"batch_size", c.batch_size},   {"sampler", s.sampler},         {"fanout", s.fanout},
          {"type_fanout", s.type_fanout}, {"replace", s.replace},         {"weighted", s.weighted},
          {"budget", s.budget},           {"walk_length", s.walk_length}, {"norm_samples", s.norm_samples}};
}

json result_settings(const RunConfig& c) {
  json j = {{"data", data_json(c)}, {"model", model_json(c.model)}, {"training", training_json(c)}};
  if (c.features.type != "f32") j["data"]["feature_type"] = c.features.type;
  if (!c.class_names.empty()) j["model"]["class_names"] = c.class_names;
  if (c.mode == "minibatch") j["batches"] = batches_json(c);
  if (c.mode == "minibatch" && c.shuffle != "always") j["batches"]["shuffle"] = c.shuffle;
  if (c.mode == "minibatch" && c.staleness > 0) j["batches"]["staleness"] = c.staleness;
  if (c.mode == "minibatch" && c.features.locality != "off") j["batches"]["locality"] = c.features.locality;
  return j;
}

template <class T>
void take(const json& j, const char* key, T& value) {
  if (j.contains(key)) value = j.at(key).get<T>();
}

void take_kinds(const json& model, std::vector<VertexKind>& kinds) {
  kinds.clear();
  if (!model.contains("kinds")) return;
  for (const json& k : model.at("kinds")) {
    kinds.push_back(
        {k.at("name").get<std::string>(), k.at("vertices").get<int64_t>(), k.at("features").get<int64_t>()});
  }
}

// Returns the JSON as text. Paths may hold any bytes, but JSON must be UTF-8, so other bytes are
// replaced.
std::string text_of(const json& j, int indent) { return j.dump(indent, ' ', false, json::error_handler_t::replace); }

}  // namespace

void check_most_staleness(int staleness) {
  if (staleness < 0) throw UserError("--staleness", "must not be negative");
  if (staleness > kMostStaleness)
    throw UserError("--staleness",
                    std::to_string(staleness) + " is too much; it may be at most " + std::to_string(kMostStaleness),
                    "give a number that is smaller than the number of batches of an epoch");
}

std::vector<std::string> RankOptions::entries() const {
  if (processes.empty()) return devices;
  std::vector<std::string> all;
  for (size_t r = 0; r < devices.size(); ++r) {
    if (r > 0 && processes[r] == processes[r - 1]) {
      all.back() += "+" + devices[r];
    } else {
      all.push_back(devices[r]);
    }
  }
  return all;
}

std::string config_json(const RunConfig& c) {
  json j = result_settings(c);
  j["execution"] = {{"device", c.device},
                    {"precision", c.precision},
                    {"mode", c.mode},
                    {"threads", c.threads},
                    {"plan", c.plan},
                    {"recompute", c.recompute},
                    {"deterministic", c.deterministic},
                    {"memory_limit", c.memory_limit}};
  if (c.ranks.several()) {
    j["execution"]["devices"] = c.ranks.entries();
    j["execution"]["shares"] = c.ranks.shares.empty() ? json(c.ranks.share_rule) : json(c.ranks.shares);
    j["execution"]["partition"] = partition_method_name(c.ranks.partition.method);
    j["execution"]["halo_rows"] = c.ranks.halo_rows;
    if (c.ranks.comm != "auto") j["execution"]["comm"] = c.ranks.comm;
    j["execution"]["comm_timeout"] = c.ranks.timeout;
    j["execution"]["no_overlap"] = !c.ranks.overlap;
  }
  if (c.reorder != "auto") j["execution"]["reorder"] = c.reorder;
  if (!c.disabled_passes.empty()) j["execution"]["disable_pass"] = c.disabled_passes;
  if (c.mode == "minibatch") {
    j["execution"]["features_on"] = settles(c, "--features-on") ? "auto" : c.features_on;
    j["execution"]["sample_on"] = settles(c, "--sample-on") ? "auto" : c.sample_on;
    if (c.batch_schedule != "auto") j["execution"]["schedule"] = c.batch_schedule;
    if (!c.features.budget.empty()) j["execution"]["feature_budget"] = c.features.budget;
    if (c.features.placement != "auto") j["execution"]["placement"] = c.features.placement;
    if (c.features.host_rows != "auto" && !settles(c, "--host-rows"))
      j["execution"]["host_rows"] = c.features.host_rows;
    if (c.features.cache != "static") j["execution"]["cache"] = c.features.cache;
    if (c.host_budget > 0) {
      j["execution"]["host_budget"] = c.host_budget;
      j["execution"]["pack"] = c.pack;
      j["execution"]["pack_folder"] = c.pack_folder;
    }
  }
  if (!c.recommend.empty()) j["recommend"] = c.recommend;
  return text_of(j, 2);
}

std::string weights_config_json(const RunConfig& c) { return text_of(result_settings(c), -1); }

std::string result_settings_json(const RunConfig& c) {
  json j = result_settings(c);
  // A longer run continues a shorter one bit for bit, unless the learning rate or the choice of the
  // best epoch depends on the total number of epochs. (The choice depends on it if not every epoch
  // is evaluated, because the last epoch always is.)
  const bool same_rate =
      c.schedule.name == "constant" || c.schedule.name == "step" || (c.schedule.name == "plateau" && c.eval_every == 1);
  const bool same_choice = c.eval_every == 1 || (c.select == "last" && c.patience == 0);
  if (same_rate && same_choice) j["training"].erase("epochs");
  // The place of the data does not matter; their fingerprint is compared separately.
  for (const char* key : {"data", "folder", "features", "labels", "splits", "format"}) j["data"].erase(key);
  j["model"].erase("file");  // the place of the model's file does not matter either
  // A checkpoint holds the current weights, so it does not matter what they started from.
  j["training"].erase("init");
  return text_of(j, -1);
}

std::string model_file_again(const std::string& text, const std::string& folder) {
  const size_t colon = text.rfind(':');
  return colon == std::string::npos ? text : found_again(text.substr(0, colon), folder) + text.substr(colon);
}

std::string found_again(const std::string& path, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (path.empty() || folder.empty() || fs::path(path).is_absolute()) return path;
  const fs::path there = fs::path(folder) / path;
  if (!fs::exists(there, ignored)) return path;
  if (!fs::exists(path, ignored)) return there.string();
  if (!fs::equivalent(path, there, ignored))
    log_warning(path + " is read from this folder; the run was started with " + there.string());
  return path;
}

void apply_config_json(const std::string& text, const std::string& where, RunConfig& config) {
  RunConfig& c = config;
  try {
    const json j = parse_json<json>(text, where);
    for (const char* part : {"model", "data", "training"}) {
      if (!j.at(part).is_object()) throw UserError(where, kUnusable, kUnusableRemedy);
    }
    const json& m = j.at("model");
    take(m, "model", c.model.model);
    const json& d = j.at("data");
    if (m.contains("file"))
      c.model.model =
          load_model_file(model_file_again(m.at("file").get<std::string>(), d.value("folder", std::string())));
    take(m, "layers", c.model.layers);
    take(m, "hidden", c.model.hidden);
    take(m, "in_dim", c.model.in_dim);
    take(m, "out_dim", c.model.out_dim);
    take(m, "heads", c.model.heads);
    take(m, "out_heads", c.model.out_heads);
    take(m, "aggregator", c.model.aggregator);
    take(m, "activation", c.model.activation);
    take(m, "norm", c.model.norm);
    take(m, "residual", c.model.residual);
    take(m, "num_bases", c.model.num_bases);
    take(m, "loss", c.model.loss);
    take(m, "knobs", c.model.knobs);
    take_kinds(m, c.model.kinds);
    if (c.data.empty()) {
      take(d, "data", c.data);
      take(d, "format", c.load.format);
      take(d, "features", c.load.features_file);
      take(d, "labels", c.load.labels_file);
      take(d, "splits", c.load.splits_file);
      take(d, "num_nodes", c.load.num_nodes);
      take(d, "data_seed", c.load.seed);
      take(d, "folder", c.folder);
      for (std::string* path : {&c.data, &c.load.features_file, &c.load.labels_file, &c.load.splits_file})
        *path = found_again(*path, c.folder);
    }
    // The model is tested on the same nodes even if its data are found at another place, unless the
    // user gives another split.
    if (c.load.split.empty() && c.load.splits_file.empty()) {
      take(d, "split", c.load.split);
      take(d, "split_seed", c.load.split_seed);
      c.load.split_needed = false;
    }
    take(m, "class_names", c.class_names);
    std::string features;
    take(d, "features", features);
    if (c.load.features_file.empty() && is_made_features(features)) c.load.features_file = features;
    if (!c.load.ignore_edge_weights) take(d, "ignore_edge_weights", c.load.ignore_edge_weights);
    take(d, "undirected", c.load.undirected);
    take(d, "normalize_features", c.normalize_features);
    take(d, "feature_type", c.features.type);
    take(d, "relations", c.relations);
    take(j.at("training"), "metric", c.metric);
  } catch (const json::exception&) {
    throw UserError(where, kUnusable, kUnusableRemedy);
  }
}

}  // namespace nacre
