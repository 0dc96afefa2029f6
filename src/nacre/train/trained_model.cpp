#include "nacre/train/trained_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/train/checkpoint.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// In a checkpoint, the names of the best weights so far begin with this prefix.
constexpr const char* kBest = "best.";

TrainedModel from_file(const std::string& file) {
  const Metadata metadata = read_safetensors_header(file).metadata;
  const auto settings =
      std::find_if(metadata.begin(), metadata.end(), [](const auto& m) { return m.first == "nacre.config"; });
  if (settings == metadata.end())
    throw UserError(file, "does not say how the model was built", "use the model.safetensors of a run folder");
  return {file, settings->second, ""};
}

TrainedModel from_checkpoint(const std::string& folder) {
  const json state = parse_json<json>(checkpoint_state(folder), folder);
  try {
    const json& config = state.at("config");
    const bool last = config.at("training").value("select", std::string()) == "last";
    const int best_epoch = state.at("best_epoch").get<int>();
    TrainedModel model{folder, config.dump(), ""};
    if (last || best_epoch < 0) {
      model.file += "/model.safetensors";
      log_info(fmt::format("{}: weights after epoch {}", folder, state.at("epoch").get<int>()));
    } else {
      model.file += "/optimizer.safetensors";
      model.prefix = kBest;
      log_info(fmt::format("{}: best weights so far, of epoch {}", folder, best_epoch));
    }
    return model;
  } catch (const json::exception&) {
    throw UserError(folder, "is a damaged checkpoint", "name another epoch-… folder of the run");
  }
}

}  // namespace

int64_t TrainedModel::bytes() const { return read_safetensors_header(file, prefix).bytes; }

NamedTensors TrainedModel::read_weights() const {
  NamedTensors weights = read_safetensors(file, prefix);
  for (auto& [name, tensor] : weights) name.erase(0, prefix.size());
  return weights;
}

TrainedModel read_trained_model(const std::string& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return from_file(path);
  if (fs::exists(path + "/state.json", ignored)) return from_checkpoint(path);
  if (const std::string final_weights = path + "/model.safetensors"; fs::exists(final_weights, ignored))
    return from_file(final_weights);
  for (const std::string& folder : checkpoint_folders(path)) {
    try {
      return from_checkpoint(folder);
    } catch (const UserError& error) {
      log_warning("skipping checkpoint " + folder + ": " + error.what());
    }
  }
  throw UserError("--checkpoint", "there are no trained weights in '" + path + "'",
                  "name a run folder, one of its epoch-… folders, or a .safetensors file");
}

}  // namespace nacre
