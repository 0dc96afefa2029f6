#include "nacre/train/checkpoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/philox.h"
#include "nacre/data/checksum.h"
#include "nacre/train/safetensors.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kVersion = 1;
constexpr const char* kRunFiles[] = {"config.json", "plan.json", "metrics.jsonl", "model.safetensors"};

// Returns the values of a parameter in `flat`, an array of the values of all parameters, as a
// tensor that borrows the memory.
Tensor piece(const Parameter& p, float* flat) { return {DType::f32, p.shape, nullptr, flat + p.offset}; }

NamedTensors pieces(const Parameters& parameters, const float* flat, const std::string& prefix, bool trained_only) {
  NamedTensors list;
  for (const Parameter& p : parameters.list()) {
    // The cast is safe because these tensors are only read.
    if (p.trained || !trained_only) list.emplace_back(prefix + p.name, piece(p, const_cast<float*>(flat)));
  }
  return list;
}

void append(NamedTensors& to, NamedTensors from) {
  for (auto& entry : from) to.push_back(std::move(entry));
}

// Returns the checksum of a file. Reads the file in pieces, because a checkpoint may be larger than
// the free memory.
std::string file_checksum(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(path, "cannot be read");
  std::vector<char> buffer(1 << 20);
  uint64_t h = 0;
  do {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    h = mix_key(h, checksum64(buffer.data(), file.gcount()));
  } while (file);
  return fmt::format("{:016x}", h);
}

std::string text_checksum(const std::string& text) {
  return fmt::format("{:016x}", checksum64(text.data(), static_cast<int64_t>(text.size())));
}

// Removes a folder at the end of the scope if it was not renamed by then. Removing needs memory,
// too. If an allocation fails, removing is tried once more; a folder that still stays is removed by
// the next checkpoint in the run folder.
struct RemoveAtEnd {
  const fs::path& folder;
  ~RemoveAtEnd() {
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        std::error_code error;
        fs::remove_all(folder, error);
        return;
      } catch (const std::bad_alloc&) {
        continue;
      }
    }
  }
};

struct EpochFolder {
  int64_t epoch = 0;
  int64_t batch = 0;
  fs::path path;
  std::pair<int64_t, int64_t> point() const { return {epoch, batch}; }
};

std::string folder_name(const TrainState& state) {
  return state.batch == 0 ? fmt::format("epoch-{:06}", state.epoch)
                          : fmt::format("epoch-{:06}.{:06}", state.epoch, state.batch);
}

// Returns the checkpoint folders in `folder`, newest first.
std::vector<EpochFolder> epoch_folders(const std::string& folder) {
  std::vector<EpochFolder> list;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("epoch-") || !entry.is_directory(error)) continue;
    EpochFolder found{0, 0, entry.path()};
    const char* end = name.data() + name.size();
    auto parsed = std::from_chars(name.data() + 6, end, found.epoch);
    if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '.') {
      parsed = std::from_chars(parsed.ptr + 1, end, found.batch);
    }
    if (parsed.ec == std::errc() && parsed.ptr == end && found.epoch >= 0) list.push_back(std::move(found));
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.point() > b.point(); });
  return list;
}

// Returns whether a file or folder of this name was left by a killed run: the folder of an
// unfinished checkpoint, or NAME.tmp.PID of a file that was being written.
bool is_leftover(const std::string& name) {
  if (name.starts_with(".tmp-epoch-")) return true;
  return std::any_of(std::begin(kRunFiles), std::end(kRunFiles),
                     [&](const char* file) { return name.starts_with(std::string(file) + ".tmp."); });
}

void copy_into(const NamedTensors& from, const std::string& prefix, const Parameters& parameters, float* flat,
               bool trained_only, const std::string& where) {
  for (const Parameter& p : parameters.list()) {
    if (trained_only && !p.trained) continue;
    const auto found =
        std::find_if(from.begin(), from.end(), [&](const auto& e) { return e.first == prefix + p.name; });
    if (found == from.end())
      throw UserError(where, "has no tensor '" + prefix + p.name + "'", "its weights are those of another model");
    if (found->second.shape() != p.shape || found->second.dtype() != DType::f32) {
      throw UserError(where,
                      "'" + prefix + p.name + "' has shape " + shape_text(found->second.shape()) +
                          ", the model needs " + shape_text(p.shape),
                      "use the model options the weights were trained with");
    }
    std::copy_n(found->second.data<float>(), p.size, flat + p.offset);
  }
}

// Removes what interrupted runs left behind, the checkpoints later than `state`, and all but the
// newest `keep` of the other checkpoints. A later checkpoint must be damaged, because otherwise the
// run would have continued from it.
void clean(const std::string& folder, const TrainState& state, int keep) {
  std::error_code error;
  int kept = 0;
  for (const EpochFolder& found : epoch_folders(folder)) {
    if (found.point() > std::pair<int64_t, int64_t>(state.epoch, state.batch) || ++kept > keep)
      fs::remove_all(found.path, error);
  }
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (is_leftover(entry.path().filename().string())) stale.push_back(entry.path());
  }
  for (const fs::path& path : stale) fs::remove_all(path, error);
}

// Returns the state.json of a checkpoint as JSON. Throws UserError if state.json or a file beside
// it does not match its checksum.
json read_state(const fs::path& path) {
  const std::string file = (path / "state.json").string();
  json j = parse_json<json>(read_file(file), file);
  const auto sum = j.at("checksum").get<std::string>();
  j.erase("checksum");
  if (text_checksum(j.dump()) != sum) throw UserError(file, "does not match its checksum");
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string part = (path / name).string();
    if (file_checksum(part) != j.at("checksums").at(name).get<std::string>()) {
      throw UserError(part, "does not match its checksum");
    }
  }
  return j;
}

bool is_whole(const fs::path& path) {
  try {
    read_state(path);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

json elbow_json(const AccuracyElbow& elbow) {
  json curve = json::array();
  for (const AccuracyElbow::Point& point : elbow.curve) curve.push_back({point.epoch, point.score});
  return {{"epoch", elbow.epoch}, {"known", elbow.known}, {"curve", curve}};
}

TrainState parse_state(const json& j) {
  TrainState s;
  s.epoch = j.at("epoch").get<int>();
  s.batch = j.value("batch", int64_t{0});
  s.loss_sum = j.value("loss_sum", 0.0);
  s.step = j.at("random").at("step").get<int64_t>();
  s.seed = j.at("random").at("seed").get<uint64_t>();
  s.best_val = j.at("best_val").get<double>();
  s.best_loss = j.at("best_loss").get<double>();
  s.best_epoch = j.at("best_epoch").get<int>();
  s.best_test = j.at("best_test").get<double>();
  s.since_best = j.at("since_best").get<int>();
  const json& plateau = j.at("plateau");
  s.plateau = {plateau.at("factor").get<double>(), plateau.at("best").get<double>(), plateau.at("seen").get<bool>(),
               plateau.at("waited").get<int>()};
  s.shuffled_from = j.value("shuffled_from", int64_t{0});
  if (j.contains("elbow")) {
    const json& elbow = j.at("elbow");
    s.elbow.epoch = elbow.at("epoch").get<int>();
    s.elbow.known = elbow.at("known").get<int>();
    for (const json& point : elbow.at("curve"))
      s.elbow.curve.push_back({point.at(0).get<int>(), point.at(1).get<double>()});
  }
  s.config_json = j.at("config").dump();
  s.plan_json = j.at("plan").dump();
  s.fingerprint = j.at("fingerprint").get<std::string>();
  s.unwritten_metrics = j.value("unwritten_metrics", std::string());
  return s;
}

// Returns the number of tracks whose weights a checkpoint holds. At the end of an epoch it is 0,
// because the next epoch begins with the same weights on all tracks.
int64_t stored_tracks(const TrainState& state, const OptimizerState& optimizer) {
  return state.batch > 0 && optimizer.tracks().defined() ? optimizer.tracks().rows() : 0;
}
std::string track_prefix(int64_t track) { return fmt::format("track{}.", track); }
float* track(OptimizerState& optimizer, int64_t number) {
  Tensor& all = optimizer.tracks();
  return all.data<float>() + number * all.row_size();
}

// Returns a text such as "training.seed is 0 there and 1 here" about the first few settings that
// differ; empty if only the data differ.
std::string differences(const std::string& there, const std::string& here) {
  constexpr int kNamed = 3;
  const json theirs = parse_json<json>(there, "configuration").flatten(),
             ours = parse_json<json>(here, "configuration").flatten();
  std::string text;
  int count = 0;
  for (const auto& [path, value] : ours.items()) {
    const json other = theirs.value(path, json());
    if (other == value || ++count > kNamed) continue;
    std::string name = path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    text += fmt::format("{}{} is {} there and {} here", text.empty() ? ": " : ", ", name, other.dump(), value.dump());
  }
  return text + (count > kNamed ? fmt::format(", and {} more", count - kNamed) : "");
}

}  // namespace

void save_checkpoint(const std::string& folder, const TrainState& state, const Parameters& parameters,
                     OptimizerState& optimizer, const Tensor& best, int keep) {
  std::error_code error;
  fs::create_directories(folder, error);
  const std::string name = folder_name(state);
  const fs::path target = fs::path(folder) / name;
  if (fs::exists(target, error)) {
    if (is_whole(target)) {  // the run was resumed before this point and comes to it again
      clean(folder, state, keep);
      return;
    }
    fs::remove_all(target, error);
  }
  const fs::path temporary = fs::path(folder) / fmt::format(".tmp-{}-{}", name, getpid());
  const RemoveAtEnd cleaner{temporary};
  fs::remove_all(temporary, error);
  if (!fs::create_directory(temporary, error))
    throw RuntimeError(temporary.string(), "cannot be created: " + error.message());

  const std::string model_file = (temporary / "model.safetensors").string();
  const std::string optimizer_file = (temporary / "optimizer.safetensors").string();
  write_safetensors(model_file, pieces(parameters, parameters.data(), "", false),
                    {{"format", "pt"}, {"nacre", "model"}});
  NamedTensors moments;
  if (optimizer.first().defined()) append(moments, pieces(parameters, optimizer.first().data<float>(), "first.", true));
  if (optimizer.second().defined())
    append(moments, pieces(parameters, optimizer.second().data<float>(), "second.", true));
  if (optimizer.average().defined())
    append(moments, pieces(parameters, optimizer.average().data<float>(), "average.", true));
  append(moments, pieces(parameters, best.data<float>(), "best.", false));
  for (int64_t t = 0; t < stored_tracks(state, optimizer); ++t)
    append(moments, pieces(parameters, track(optimizer, t), track_prefix(t), false));
  write_safetensors(optimizer_file, moments, {{"nacre", "optimizer"}});

  const OptimizerOptions& o = optimizer.options();
  json j = {
      {"format", "nacre-checkpoint"},
      {"version", kVersion},
      {"epoch", state.epoch},
      {"batch", state.batch},
      {"loss_sum", state.loss_sum},
      {"random", {{"seed", state.seed}, {"step", state.step}}},
      {"best_val", state.best_val},
      {"best_loss", state.best_loss},
      {"best_epoch", state.best_epoch},
      {"best_test", state.best_test},
      {"since_best", state.since_best},
      {"plateau",
       {{"factor", state.plateau.factor},
        {"best", state.plateau.best},
        {"seen", state.plateau.seen},
        {"waited", state.plateau.waited}}},
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
      {"config", parse_json<json>(state.config_json, "configuration")},
      {"plan", parse_json<json>(state.plan_json, "plan")},
      {"checksums",
       {{"model.safetensors", file_checksum(model_file)}, {"optimizer.safetensors", file_checksum(optimizer_file)}}}};
  if (state.shuffled_from != 0) j["shuffled_from"] = state.shuffled_from;
  if (!state.elbow.curve.empty()) j["elbow"] = elbow_json(state.elbow);
  if (!state.unwritten_metrics.empty()) j["unwritten_metrics"] = state.unwritten_metrics;
  j["checksum"] = text_checksum(j.dump());
  write_file((temporary / "state.json").string(), j.dump(1) + "\n");
  sync_folder(temporary.string());
  fs::rename(temporary, target, error);
  if (error) throw RuntimeError(target.string(), "cannot be written: " + error.message());
  sync_folder(folder);
  clean(folder, state, keep);
}

std::optional<TrainState> load_newest_checkpoint(const std::string& folder, const TrainState& fresh,
                                                 Parameters& parameters, OptimizerState& optimizer, Tensor& best) {
  for (const EpochFolder& found : epoch_folders(folder)) {
    const fs::path& path = found.path;
    const std::string model_file = (path / "model.safetensors").string();
    const std::string optimizer_file = (path / "optimizer.safetensors").string();
    TrainState state;
    NamedTensors weights;
    NamedTensors moments;
    int64_t optimizer_steps = 0;
    int version = 0;
    try {
      const json j = read_state(path);
      version = j.at("version").get<int>();
      state = parse_state(j);
      optimizer_steps = j.at("optimizer").at("steps").get<int64_t>();
      weights = read_safetensors(model_file);
      moments = read_safetensors(optimizer_file);
    } catch (const std::exception& e) {
      log_warning(fmt::format("skipping checkpoint {}: {}", path.string(), e.what()));
      continue;
    }
    if (version != kVersion) {
      throw UserError(
          path.string(),
          fmt::format("is a checkpoint of version {}, but this program reads version {}", version, kVersion),
          "use the program that wrote it, or choose another --checkpoint folder");
    }
    if (state.fingerprint != fresh.fingerprint) {
      throw UserError(path.string(),
                      "was written by a run with other data, model or training settings" +
                          differences(state.config_json, fresh.result_json),
                      "repeat the settings of that run (config.json beside it), or choose another --checkpoint folder");
    }
    copy_into(weights, "", parameters, parameters.data(), false, model_file);
    if (optimizer.first().defined()) {
      copy_into(moments, "first.", parameters, optimizer.first().data<float>(), true, optimizer_file);
    }
    if (optimizer.second().defined()) {
      copy_into(moments, "second.", parameters, optimizer.second().data<float>(), true, optimizer_file);
    }
    if (optimizer.average().defined()) {
      copy_into(moments, "average.", parameters, optimizer.average().data<float>(), true, optimizer_file);
    }
    copy_into(moments, "best.", parameters, best.data<float>(), false, optimizer_file);
    for (int64_t t = 0; t < stored_tracks(state, optimizer); ++t)
      copy_into(moments, track_prefix(t), parameters, track(optimizer, t), false, optimizer_file);
    optimizer.set_steps(optimizer_steps);
    return state;
  }
  return std::nullopt;
}

int64_t checkpoint_bytes(const std::string& folder) {
  const std::vector<EpochFolder> found = epoch_folders(folder);
  if (found.empty()) return 0;
  int64_t sum = 0;
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    std::error_code error;
    const auto bytes = fs::file_size(found.front().path / name, error);
    if (!error) sum += static_cast<int64_t>(bytes);
  }
  return sum;
}

void save_weights(const std::string& path, const Parameters& parameters, const Tensor& values,
                  const std::string& config_json) {
  write_safetensors(path, pieces(parameters, values.data<float>(), "", false),
                    {{"format", "pt"}, {"nacre.config", config_json}});
}

void load_weights(const NamedTensors& weights, const std::string& where, Parameters& parameters) {
  for (const auto& [name, tensor] : weights) {
    // Values that are not f32 are not tested here. If the model has a tensor of this name,
    // copy_into() refuses its type below.
    if (tensor.dtype() != DType::f32) continue;
    const float* values = tensor.data<float>();
    if (!std::all_of(values, values + tensor.size(), [](float x) { return std::isfinite(x); }))
      throw RuntimeError(
          where, "tensor '" + name + "' holds values that are not finite; train the model again, with a lower --lr");
  }
  copy_into(weights, "", parameters, parameters.data(), false, where);
}

void load_weights(const std::string& path, Parameters& parameters) {
  load_weights(read_safetensors(path), path, parameters);
}

std::vector<std::string> checkpoint_folders(const std::string& folder) {
  std::vector<std::string> list;
  for (const EpochFolder& found : epoch_folders(folder)) list.push_back(found.path.string());
  return list;
}

std::string checkpoint_state(const std::string& checkpoint) { return read_state(checkpoint).dump(); }

}  // namespace nacre
