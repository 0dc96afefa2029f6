// Does the work of nacre data info --sizes, which says from the headers only what a data set holds
// and how much memory training would take.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "data_work.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/train/estimate.h"

namespace nacre::cli {
namespace {

constexpr int kHidden = 256;
constexpr int kLayers = 3;

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

struct Cost {
  std::string model;
  Bill bill;
  std::string why_not;
};

std::vector<Cost> costs_of(const DataCommand& c, const DataSizes& sizes) {
  std::vector<Cost> costs;
  for (const char* model : {"gcn", "sage", "gin", "gat", "rgcn"}) {
    RunConfig config = c.config;
    config.device = "cpu";
    config.model.model = model;
    config.model.hidden = kHidden;
    config.model.layers = kLayers;
    Cost cost{model, {}, sizes.features == 0 ? "has no node features" : ""};
    try {
      if (cost.why_not.empty()) cost.bill = estimate_bill(config, sizes);
    } catch (const UserError& error) {
      cost.why_not = error.what();
    }
    costs.push_back(cost);
  }
  return costs;
}

}  // namespace

void describe_sizes(const DataCommand& c, const DataSizes& s) {
  const std::vector<Cost> costs = costs_of(c, s);
  if (c.json) {
    nlohmann::ordered_json j = {
        {"name", c.config.data},      {"loaded", false},
        {"num_nodes", s.graph.nodes}, {"num_edges", s.graph.edges},
        {"num_features", s.features}, {"num_classes", s.classes},
        {"exact", s.exact},           {"bytes", {{"mapped", s.mapped}, {"held", s.held}, {"reading", s.reading}}}};
    for (const Cost& cost : costs) {
      j["training_memory"][cost.model] = cost.why_not.empty()
                                             ? nlohmann::ordered_json{{"bytes", cost.bill.bytes()}, {"exact", false}}
                                             : nlohmann::ordered_json{{"not", cost.why_not}};
    }
    fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  const char* about = s.exact ? "" : "about ";
  fmt::print("{:<12}{} (from its headers; the data were not loaded)\n", "name", c.config.data);
  fmt::print("{:<12}{}{}\n", "nodes", about, human_count(s.graph.nodes));
  fmt::print("{:<12}{}{}{}{}\n", "edges", about, human_count(s.graph.edges), s.graph.weighted ? ", weighted" : "",
             s.graph.typed ? fmt::format(", {} types", s.edge_types) : "");
  fmt::print("{:<12}{}\n", "features", s.features > 0 ? human_count(s.features) + " per node" : "none, or by kind");
  if (s.classes > 0) fmt::print("{:<12}{}\n", "classes", human_count(s.classes));
  fmt::print("{:<12}{} at the peak of reading, {} afterwards{}\n", "memory", size_of(s.reading), size_of(s.held),
             s.mapped > 0 ? fmt::format(" and {} of a mapped file", size_of(s.mapped)) : "");
  fmt::print("{:<12}estimates of full-graph training with --hidden {} --layers {}, of {} free\n", "training", kHidden,
             kLayers, size_of(available_memory()));
  for (const Cost& cost : costs) {
    fmt::print("{:<12}{:<6}{}\n", "", cost.model,
               cost.why_not.empty()
                   ? fmt::format("{} (largest while {})", size_of(cost.bill.bytes()), cost.bill.largest().name)
                   : cost.why_not);
  }
}

}  // namespace nacre::cli
