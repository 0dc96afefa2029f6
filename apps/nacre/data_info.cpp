// Does the work of nacre data info, which says what was found, what was assumed, and what training
// costs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "data_work.h"
#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/printable.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/info.h"
#include "nacre/data/native.h"
#include "nacre/data/native_floats.h"
#include "nacre/train/recommend_batches.h"
#include "nacre/train/session.h"
#include "options.h"

namespace nacre::cli {
namespace {

constexpr int kHidden = 256;
constexpr int kLayers = 3;
// Largest number of edges for which the engine makes its own plans, which prepares the graph. For
// graphs with more edges, memory is estimated.
constexpr int64_t kMostPlanned = 20'000'000;

struct Cost {
  std::string model;
  int64_t bytes = 0;
  bool exact = false;
  std::string why_not;  // reason if the data cannot be trained
};

// Estimates the memory of training: the graph in both directions, the features and, for every
// layer, an activation, its gradient and one more value kept for the backward pass. Weights are not
// counted.
int64_t reckoned(const Dataset& d) {
  const int64_t rows = d.num_nodes() * int64_t{kHidden} * 4;
  return d.bytes() + d.graph.out_bytes() + kLayers * 3 * rows;
}

Cost cost_of(const Dataset& dataset, const std::string& model) {
  Cost cost{model};
  if (dataset.graph.num_edges() > kMostPlanned) {
    cost.bytes = reckoned(dataset);
    return cost;
  }
  RunConfig config;
  config.model.model = model;
  config.model.hidden = kHidden;
  config.model.layers = kLayers;
  config.device = "cpu";
  config.plan = "off";
  config.plan_cache = false;
  try {
    const Session session(dataset, config);
    cost.bytes = total_bytes(session.memory());
    cost.exact = true;
  } catch (const UserError& error) {
    cost.why_not = error.what();
  }
  return cost;
}

std::vector<Cost> costs_of(const Dataset& dataset) {
  std::vector<Cost> costs;
  for (const char* model : {"gcn", "sage", "gin", "gat", "rgcn"}) {
    const auto list = model_list();
    const bool known = std::any_of(list.begin(), list.end(), [&](const ModelInfo* m) { return m->name == model; });
    if (known) costs.push_back(cost_of(dataset, model));
  }
  return costs;
}

// Returns the lines on training for data of users and items: how to train a recommender. They say
// nothing about memory, which nacre train reports.
std::string how_to_recommend(const RunConfig& config) {
  return fmt::format(
      "{:<12}recommendation, from users and items with held-out pairs (docs/recommend.md):\n"
      "{:<12}nacre train --data {} --model lightgcn --layers 3 --hidden 64 --batch-size 2048 --lr 2e-3\n",
      "training", "", config.data);
}

std::string training_costs_text(const std::vector<Cost>& costs) {
  const bool one_reason = std::all_of(costs.begin(), costs.end(), [&](const Cost& c) {
    return !c.why_not.empty() && c.why_not == costs.front().why_not;
  });
  if (one_reason && !costs.empty()) return fmt::format("{:<12}not as it is: {}\n", "training", costs.front().why_not);
  std::string text = fmt::format("{:<12}memory of full-graph training with --hidden {} --layers {}, of {} free\n",
                                 "training", kHidden, kLayers, human_bytes(static_cast<double>(available_memory())));
  for (const Cost& c : costs) {
    text += fmt::format(
        "{:<12}{:<6}{}\n", "", c.model,
        !c.why_not.empty() ? c.why_not : human_bytes(static_cast<double>(c.bytes)) + (c.exact ? "" : " (an estimate)"));
  }
  return text;
}

// Describes where the data come from: what a .nacre file says about itself, or the recognised
// layout of other data.
struct Origin {
  std::string format;
  std::string stored;  // element type of the features in the file
  std::string conversion;
};

Origin origin_of(const RunConfig& config) {
  if (config.data.starts_with("twin:")) return {"a generated twin", "", ""};
  const DataSource data_source(config.data);
  const Choice choice = choose_format(data_source, config.load.format);
  Origin origin{choice.format->name + std::string(": ") + choice.format->about, "", ""};
  if (std::string_view(choice.format->name) != "nacre") return origin;
  const NativeContents contents = native_contents(data_source.file());
  origin.format += fmt::format(", version {}, {} sections", contents.version, contents.sections.size());
  origin.conversion = contents.conversion;
  for (const NativeSection& s : contents.sections) {
    if (s.name.starts_with("features")) origin.stored = native::float_name(s.element);
  }
  return origin;
}

void print_json(const Dataset& dataset, const Origin& origin, const std::vector<Cost>& costs) {
  nlohmann::json json = parse_json<nlohmann::json>(describe_json(dataset), "description");
  // These entries depend on the file and not on the data set in it.
  nlohmann::json& file = json["file"] = {{"format", origin.format}};
  if (!origin.stored.empty()) file["features"] = origin.stored;
  if (!origin.conversion.empty()) file["conversion"] = parse_json_or_discard<nlohmann::json>(origin.conversion);
  json["task"] = is_recommendation(dataset) ? "recommendation" : "node classification";
  nlohmann::json& training = json["training_memory"] = nlohmann::json::object();
  for (const Cost& c : costs) {
    training[c.model] =
        c.why_not.empty() ? nlohmann::json{{"bytes", c.bytes}, {"exact", c.exact}} : nlohmann::json{{"not", c.why_not}};
  }
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void describe_data(const DataCommand& c) {
  const std::optional<DataSizes> sizes = data_sizes(c.config.data, c.config.load);
  if (c.sizes && !(sizes && sizes->counted)) {
    throw UserError("--sizes", "the sizes of " + c.config.data + " are not known before it is read",
                    "leave --sizes out, or convert it to a .nacre file");
  }
  if (c.sizes) return describe_sizes(c, *sizes);
  if (sizes && sizes->counted && sizes->reading > available_memory()) {
    log_warning("the data do not fit in memory; only their headers were read");
    return describe_sizes(c, *sizes);
  }
  const Dataset dataset = open_data(c.config);
  const Origin origin = origin_of(c.config);
  const bool pairs = is_recommendation(dataset);
  const std::vector<Cost> costs = pairs ? std::vector<Cost>{} : costs_of(dataset);
  if (c.json) {
    print_json(dataset, origin, costs);
    return;
  }
  fmt::print("{:<12}{}\n{}", "format", origin.format, describe(dataset));
  if (!origin.stored.empty() && origin.stored != "f32") {
    fmt::print("{:<12}features are {} in the file; they are read as f32, which the engine computes in\n", "stored",
               origin.stored);
  }
  if (!origin.conversion.empty()) fmt::print("{:<12}{}\n", "made with", printable(origin.conversion));
  fmt::print("{}", pairs ? how_to_recommend(c.config) : training_costs_text(costs));
}

}  // namespace nacre::cli
