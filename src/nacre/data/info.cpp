#include "nacre/data/info.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/printable.h"
#include "nacre/base/warnings.h"
#include "nacre/graph/stats.h"

namespace nacre {
namespace {

struct ClassBalance {
  std::vector<int64_t> counts;  // number of vertices of each class
  int64_t unlabelled = 0;
};

struct Info {
  GraphStats graph;
  double homophily = std::nan("");
  ClassBalance classes;
  double zero_share = 0;  // share of zeros among the feature values
};

ClassBalance count_classes(const Dataset& data) {
  ClassBalance balance;
  balance.counts.assign(data.num_classes, 0);
  for (const int32_t label : data.labels) {
    if (label < 0) {
      ++balance.unlabelled;
    } else {
      ++balance.counts[label];
    }
  }
  if (data.multilabel()) {
    const auto* y = data.targets.data<uint8_t>();
    for (int64_t i = 0; i < data.targets.size(); ++i) balance.counts[i % data.num_classes] += y[i];
  }
  return balance;
}

double zero_share(const Tensor& features) {
  if (!features.defined() || features.empty()) return 0;
  constexpr int64_t chunk = 1 << 20;
  std::vector<int64_t> zeros((features.size() + chunk - 1) / chunk, 0);
  const auto* x = features.data<float>();
  parallel_for(features.size(), chunk,
               [&](int64_t b, int64_t e) { zeros[b / chunk] = std::count(x + b, x + e, 0.0F); });
  int64_t sum = 0;
  for (const int64_t z : zeros) sum += z;
  return static_cast<double>(sum) / static_cast<double>(features.size());
}

Info inspect(const Dataset& data) {
  Info info;
  info.graph = compute_stats(data.graph);
  if (!data.labels.empty()) info.homophily = edge_homophily(data.graph, data.labels.span());
  info.classes = count_classes(data);
  info.zero_share = zero_share(data.features);
  return info;
}

std::string degree_line(const char* title, const DegreeStats& d) {
  return fmt::format("{:<12}min {}, median {}, mean {:.2f}, p90 {}, p99 {}, max {}; gini {:.3f}; {} without\n", title,
                     human_count(d.min), human_count(d.median), d.mean, human_count(d.p90), human_count(d.p99),
                     human_count(d.max), d.gini, human_count(d.zeros));
}

std::string graph_text(const Dataset& data, const GraphStats& s) {
  std::string text = fmt::format("{:<12}{}\n", "nodes", human_count(data.num_nodes()));
  text += fmt::format("{:<12}{}{}{}\n", "edges", human_count(data.graph.num_edges()),
                      data.graph.weighted() ? ", weighted" : "",
                      data.graph.typed() ? fmt::format(", {} types", data.graph.num_edge_types()) : "");
  text += degree_line("in-degree", s.in) + degree_line("out-degree", s.out);
  text +=
      fmt::format("{:<12}{}; {} self loops, {} duplicate edges\n", "structure", s.symmetric ? "symmetric" : "directed",
                  human_count(s.self_loops), human_count(s.duplicate_edges));
  text += fmt::format("{:<12}{}, the largest has {} nodes ({:.1f} %); {} nodes have no edge\n", "components",
                      human_count(s.components), human_count(s.largest_component),
                      data.num_nodes() > 0
                          ? 100.0 * static_cast<double>(s.largest_component) / static_cast<double>(data.num_nodes())
                          : 0.0,
                      human_count(s.isolated));
  return text;
}

std::string classes_text(const Dataset& data, const Info& info) {
  if (data.num_classes == 0) return fmt::format("{:<12}none\n", "labels");
  const auto [low, high] = std::minmax_element(info.classes.counts.begin(), info.classes.counts.end());
  std::string text = fmt::format("{:<12}{} classes{}; smallest {}, largest {} nodes; {} unlabelled\n", "labels",
                                 human_count(data.num_classes), data.multilabel() ? ", several per node" : "",
                                 human_count(*low), human_count(*high), human_count(info.classes.unlabelled));
  if (data.num_classes <= 20) {
    std::string balance;
    for (const int64_t count : info.classes.counts) balance += (balance.empty() ? "" : " ") + std::to_string(count);
    text += fmt::format("{:<12}{}\n", "balance", balance);
  }
  if (!std::isnan(info.homophily)) {
    text += fmt::format("{:<12}{:.3f} of the edges join nodes of one class\n", "homophily", info.homophily);
  }
  return text;
}

std::string memory_text(const Dataset& data) {
  const auto bytes = [](int64_t n) { return human_bytes(static_cast<double>(n)); };
  const int64_t features = data.features.defined() ? data.features.bytes() : 0;
  return fmt::format("{:<12}graph {} (+ {} grouped by source, when trained), features {}, all {}\n", "memory",
                     bytes(data.graph.bytes()), bytes(data.graph.out_bytes()), bytes(features), bytes(data.bytes()));
}

std::string relation_text(const Dataset& data, const Relation& r) {
  return fmt::format("{} -{}-> {}", printable(data.node_types[r.src_type]), printable(r.name),
                     printable(data.node_types[r.dst_type]));
}

std::string kinds_text(const Dataset& data) {
  std::string text;
  for (size_t k = 0; k < data.node_types.size(); ++k) {
    const bool features = k < data.type_features.size() && data.type_features[k].defined();
    text += fmt::format("{:<12}{}: {} nodes{}\n", k == 0 ? "kinds" : "", printable(data.node_types[k]),
                        human_count(data.node_offsets[k + 1] - data.node_offsets[k]),
                        features ? fmt::format(", {} features", human_count(data.type_features[k].shape()[1])) : "");
  }
  std::vector<int64_t> edges(data.relations.size(), 0);
  for (const uint16_t type : data.graph.edge_type()) {
    if (type < edges.size()) ++edges[type];
  }
  for (size_t r = 0; r < data.relations.size(); ++r) {
    text += fmt::format("{:<12}{}: {} edges\n", r == 0 ? "relations" : "", relation_text(data, data.relations[r]),
                        human_count(data.graph.typed() ? edges[r] : data.graph.num_edges()));
  }
  if (data.val_edges.size() + data.test_edges.size() > 0) {
    text += fmt::format("{:<12}{} edges for validation, {} for testing\n", "held out",
                        human_count(data.val_edges.size()), human_count(data.test_edges.size()));
  }
  if (!data.original_ids.empty() || !data.node_names.empty()) {
    text += fmt::format("{:<12}{} of the source are kept\n", "ids", data.node_names.empty() ? "numbers" : "names");
  }
  return text;
}

nlohmann::json kinds_json(const Dataset& data) {
  nlohmann::json kinds = nlohmann::json::array();
  for (size_t k = 0; k < data.node_types.size(); ++k) {
    const bool features = k < data.type_features.size() && data.type_features[k].defined();
    kinds.push_back({{"name", data.node_types[k]},
                     {"num_nodes", data.node_offsets[k + 1] - data.node_offsets[k]},
                     {"num_features", features ? data.type_features[k].shape()[1] : 0}});
  }
  return kinds;
}

nlohmann::json degree_json(const DegreeStats& d) {
  return {{"min", d.min}, {"median", d.median}, {"mean", d.mean}, {"p90", d.p90},
          {"p99", d.p99}, {"max", d.max},       {"gini", d.gini}, {"zeros", d.zeros}};
}

}  // namespace

std::string describe(const Dataset& data) {
  const Info info = inspect(data);
  std::string text = fmt::format("{:<12}{}\n", "name", printable(data.name)) + graph_text(data, info.graph);
  if (data.features.defined()) {
    text += fmt::format("{:<12}{} per node, f32, {:.1f} % zeros\n", "features", human_count(data.num_features()),
                        100 * info.zero_share);
  } else {
    text += fmt::format("{:<12}none\n", "features");
  }
  text += kinds_text(data);
  text += classes_text(data, info);
  text += fmt::format("{:<12}{} train, {} val, {} test\n", "splits", human_count(data.splits.train.size()),
                      human_count(data.splits.val.size()), human_count(data.splits.test.size()));
  text += memory_text(data);
  text += fmt::format("{:<12}{:016x}\n", "fingerprint", data.fingerprint());
  const std::string mark = kWarningNote;
  for (const std::string& note : data.notes) {
    const bool warning = note.starts_with(mark);
    text +=
        fmt::format("{:<12}{}\n", warning ? "warning" : "note", printable(warning ? note.substr(mark.size()) : note));
  }
  return text;
}

std::string describe_json(const Dataset& data) {
  const Info info = inspect(data);
  const GraphStats& s = info.graph;
  nlohmann::json json = {
      {"name", data.name},
      {"num_nodes", data.num_nodes()},
      {"num_edges", data.graph.num_edges()},
      {"num_edge_types", data.graph.num_edge_types()},
      {"weighted", data.graph.weighted()},
      {"in_degree", degree_json(s.in)},
      {"out_degree", degree_json(s.out)},
      {"self_loops", s.self_loops},
      {"duplicate_edges", s.duplicate_edges},
      {"symmetric", s.symmetric},
      {"components", s.components},
      {"largest_component", s.largest_component},
      {"isolated", s.isolated},
      {"num_features", data.num_features()},
      {"feature_zero_share", info.zero_share},
      {"num_classes", data.num_classes},
      {"multilabel", data.multilabel()},
      {"class_counts", info.classes.counts},
      {"unlabelled", info.classes.unlabelled},
      {"splits",
       {{"train", data.splits.train.size()}, {"val", data.splits.val.size()}, {"test", data.splits.test.size()}}},
      {"bytes",
       {{"graph", data.graph.bytes()},
        {"out_csc", data.graph.out_bytes()},
        {"features", data.features.defined() ? data.features.bytes() : 0},
        {"total", data.bytes()}}},
      {"fingerprint", fmt::format("{:016x}", data.fingerprint())},
      {"notes", data.notes}};
  json["kinds"] = kinds_json(data);
  json["relations"] = nlohmann::json::array();
  for (const Relation& r : data.relations) json["relations"].push_back(relation_text(data, r));
  json["held_out"] = {{"val", data.val_edges.size()}, {"test", data.test_edges.size()}};
  json["renumbered"] = !data.original_ids.empty() || !data.node_names.empty();
  json["homophily"] = std::isnan(info.homophily) ? nlohmann::json() : nlohmann::json(info.homophily);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace nacre
