#include "nacre/train/checkpoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/philox.h"
#include "nacre/train/safetensors.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A parameter's part of a flat block, as a tensor that borrows it.
Tensor piece(const Parameter& p, float* flat) { return {DType::f32, p.shape, nullptr, flat + p.offset}; }

NamedTensors pieces(const Parameters& parameters, const float* flat, const std::string& prefix, bool trained_only) {
  NamedTensors list;
  for (const Parameter& p : parameters.list()) {
    // Tensors are only read from here on.
    if (p.trained || !trained_only) list.emplace_back(prefix + p.name, piece(p, const_cast<float*>(flat)));
  }
  return list;
}

void append(NamedTensors& to, NamedTensors from) {
  for (auto& entry : from) to.push_back(std::move(entry));
}

std::string file_checksum(const std::string& path) {
  const std::string bytes = read_file(path);
  uint64_t h = bytes.size();
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    h = mix_key(h, word);
  }
  for (; i < bytes.size(); ++i) h = mix_key(h, static_cast<unsigned char>(bytes[i]));
  return fmt::format("{:016x}", h);
}

// Epoch folders, newest first.
std::vector<fs::path> epoch_folders(const std::string& folder) {
  std::vector<fs::path> list;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("epoch-") && entry.is_directory()) list.push_back(entry.path());
  }
  std::sort(list.rbegin(), list.rend());
  return list;
}

void copy_into(const NamedTensors& from, const std::string& prefix, const Parameters& parameters, float* flat,
               bool trained_only, const std::string& where) {
  for (const Parameter& p : parameters.list()) {
    if (trained_only && !p.trained) continue;
    const auto found =
        std::find_if(from.begin(), from.end(), [&](const auto& e) { return e.first == prefix + p.name; });
    if (found == from.end())
      throw UserError(where, "has no tensor '" + prefix + p.name + "'", "it belongs to another model");
    if (found->second.shape() != p.shape || found->second.dtype() != DType::f32) {
      throw UserError(where,
                      "'" + prefix + p.name + "' has shape " + shape_text(found->second.shape()) +
                          ", the model needs " + shape_text(p.shape),
                      "use the model options the weights were trained with");
    }
    std::copy_n(found->second.data<float>(), p.size, flat + p.offset);
  }
}

// Removes what interrupted runs left behind, and all but the newest `keep` checkpoints.
void clean(const std::string& folder, int keep) {
  std::error_code error;
  const auto folders = epoch_folders(folder);
  for (size_t i = static_cast<size_t>(keep); i < folders.size(); ++i) fs::remove_all(folders[i], error);
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(".tmp-epoch-")) stale.push_back(entry.path());
  }
  for (const fs::path& path : stale) fs::remove_all(path, error);
}

TrainState parse_state(const json& j) {
  TrainState s;
  s.epoch = j.at("epoch").get<int>();
  s.step = j.at("random").at("step").get<int64_t>();
  s.seed = j.at("random").at("seed").get<uint64_t>();
  s.best_val = j.at("best_val").get<double>();
  s.best_epoch = j.at("best_epoch").get<int>();
  s.best_test = j.at("best_test").get<double>();
  s.since_best = j.at("since_best").get<int>();
  s.config_json = j.at("config").dump();
  s.plan_json = j.at("plan").dump();
  s.fingerprint = j.at("fingerprint").get<std::string>();
  return s;
}

}  // namespace

void save_checkpoint(const std::string& folder, const TrainState& state, const Parameters& parameters,
                     Optimizer& optimizer, const Tensor& best, int keep) {
  fs::create_directories(folder);
  const std::string name = fmt::format("epoch-{:06}", state.epoch);
  const fs::path target = fs::path(folder) / name;
  if (fs::exists(target)) return;  // a resumed run meets its own checkpoint again
  const fs::path temporary = fs::path(folder) / fmt::format(".tmp-{}-{}", name, getpid());
  std::error_code error;
  fs::remove_all(temporary, error);
  if (!fs::create_directory(temporary, error))
    throw RuntimeError(temporary.string(), "cannot be made: " + error.message());

  const std::string model_file = (temporary / "model.safetensors").string();
  const std::string optimizer_file = (temporary / "optimizer.safetensors").string();
  write_safetensors(model_file, pieces(parameters, parameters.data(), "", false),
                    {{"format", "pt"}, {"nacre", "model"}});
  NamedTensors moments;
  if (optimizer.first().defined()) append(moments, pieces(parameters, optimizer.first().data<float>(), "first.", true));
  if (optimizer.second().defined())
    append(moments, pieces(parameters, optimizer.second().data<float>(), "second.", true));
  append(moments, pieces(parameters, best.data<float>(), "best.", false));
  write_safetensors(optimizer_file, moments, {{"nacre", "optimizer"}});

  const OptimizerOptions& o = optimizer.options();
  const json j = {
      {"format", "nacre-checkpoint"},
      {"version", 1},
      {"epoch", state.epoch},
      {"random", {{"seed", state.seed}, {"step", state.step}}},
      {"best_val", state.best_val},
      {"best_epoch", state.best_epoch},
      {"best_test", state.best_test},
      {"since_best", state.since_best},
      {"optimizer",
       {{"name", o.name},
        {"steps", optimizer.steps()},
        {"lr", o.lr},
        {"weight_decay", o.weight_decay},
        {"momentum", o.momentum},
        {"beta1", o.beta1},
        {"beta2", o.beta2},
        {"epsilon", o.epsilon}}},
      {"fingerprint", state.fingerprint},
      {"config", json::parse(state.config_json)},
      {"plan", json::parse(state.plan_json)},
      {"checksums",
       {{"model.safetensors", file_checksum(model_file)}, {"optimizer.safetensors", file_checksum(optimizer_file)}}}};
  write_file((temporary / "state.json").string(), j.dump(1) + "\n");
  sync_folder(temporary.string());
  fs::rename(temporary, target);
  sync_folder(folder);
  clean(folder, keep);
}

std::optional<TrainState> load_newest_checkpoint(const std::string& folder, const std::string& fingerprint,
                                                 Parameters& parameters, Optimizer& optimizer, Tensor& best) {
  for (const fs::path& path : epoch_folders(folder)) {
    const std::string model_file = (path / "model.safetensors").string();
    const std::string optimizer_file = (path / "optimizer.safetensors").string();
    TrainState state;
    NamedTensors weights;
    NamedTensors moments;
    int64_t optimizer_steps = 0;
    try {
      const json j = json::parse(read_file((path / "state.json").string()));
      for (const auto& [file, sum] : j.at("checksums").items()) {
        if (file_checksum((path / file).string()) != sum.get<std::string>()) {
          throw UserError((path / file).string(), "does not match its checksum");
        }
      }
      state = parse_state(j);
      optimizer_steps = j.at("optimizer").at("steps").get<int64_t>();
      weights = read_safetensors(model_file);
      moments = read_safetensors(optimizer_file);
    } catch (const std::exception& e) {
      log_warning(fmt::format("skipping checkpoint {}: {}", path.string(), e.what()));
      continue;
    }
    if (state.fingerprint != fingerprint) {
      throw UserError(path.string(), "was written by a run with other data, model or training settings",
                      "repeat the settings of that run (config.json beside it), or choose another --checkpoint folder");
    }
    copy_into(weights, "", parameters, parameters.data(), false, model_file);
    if (optimizer.first().defined()) {
      copy_into(moments, "first.", parameters, optimizer.first().data<float>(), true, optimizer_file);
    }
    if (optimizer.second().defined()) {
      copy_into(moments, "second.", parameters, optimizer.second().data<float>(), true, optimizer_file);
    }
    copy_into(moments, "best.", parameters, best.data<float>(), false, optimizer_file);
    optimizer.set_steps(optimizer_steps);
    return state;
  }
  return std::nullopt;
}

void save_weights(const std::string& path, const Parameters& parameters, const Tensor& values,
                  const std::string& config_json) {
  write_safetensors(path, pieces(parameters, values.data<float>(), "", false),
                    {{"format", "pt"}, {"nacre.config", config_json}});
}

void load_weights(const std::string& path, Parameters& parameters) {
  copy_into(read_safetensors(path), "", parameters, parameters.data(), false, path);
}

}  // namespace nacre
