// Validates the options: an option is refused if the model does not use it.
#include <algorithm>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/model/registry.h"

namespace nacre {

namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 24;
constexpr int64_t kMaxVertices = int64_t{1} << 40;

std::string text(double number) {
  std::string s = std::to_string(number);
  s.erase(s.find_last_not_of('0') + 1);
  if (!s.empty() && s.back() == '.') s.pop_back();
  return s;
}

void check_number(const char* option, double value, double least, double most) {
  if (value >= least && value <= most) return;
  throw UserError(option, text(value) + " is out of range",
                  "give a number between " + text(least) + " and " + text(most));
}

void check_choice(const char* option, const std::string& value, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  throw UserError(option, "unknown " + std::string(option) + " '" + value + "'", suggest(value, known));
}

void check_share(const char* option, double share) {
  if (!(share >= 0 && share < 1)) {
    throw UserError(option, text(share) + " is not a share", "give a number from 0 to less than 1");
  }
}

void check_general(const ModelOptions& o) {
  check_number("layers", o.layers, 1, 1000);
  check_number("in_dim", static_cast<double>(o.in_dim), 1, static_cast<double>(kMaxWidth));
  check_number("hidden", static_cast<double>(o.hidden), 1, static_cast<double>(kMaxWidth));
  check_number("out_dim", static_cast<double>(o.out_dim), 1, static_cast<double>(kMaxWidth));
  check_share("dropout", o.dropout);
  check_share("input_dropout", o.input_dropout);
  check_share("attention_dropout", o.attention_dropout);
  check_share("label_smoothing", o.label_smoothing);
  check_choice("activation", o.activation, activation_names());
  check_choice("norm", o.norm, {"none", "layer", "batch"});
  check_choice("loss", o.loss, {"cross_entropy", "bce", "weighted_bce", "none"});
}

void check_kinds(const std::vector<VertexKind>& kinds) {
  for (size_t k = 0; k < kinds.size(); ++k) {
    const VertexKind& kind = kinds[k];
    check_number("nodes of a kind", static_cast<double>(kind.vertices), 0, static_cast<double>(kMaxVertices));
    check_number("features of a kind", static_cast<double>(kind.features), 0, static_cast<double>(kMaxWidth));
    const auto same = [&](const VertexKind& other) { return other.name == kind.name; };
    if (std::any_of(kinds.begin(), kinds.begin() + static_cast<std::ptrdiff_t>(k), same))
      throw UserError("kinds", "two kinds of nodes are named '" + kind.name + "'");
  }
}

void refuse(const ModelInfo& info, const std::string& what, const std::string& remedy) {
  throw UserError("model " + info.name, what, remedy);
}

void check_heads(const ModelInfo& info, const ModelOptions& o) {
  if (info.heads == 0) {
    if (o.heads > 1 || o.out_heads > 1 || o.attention_dropout > 0) {
      refuse(info, "has no attention, so heads and attention dropout have no effect", "use gat or gatv2");
    }
    return;
  }
  check_number("heads", o.heads, 1, 1024);
  check_number("out_heads", o.out_heads, 1, 1024);
  if (o.layers > 1 && o.hidden % o.heads != 0) {
    refuse(info,
           "hidden " + std::to_string(o.hidden) + " cannot be divided among " + std::to_string(o.heads) + " heads",
           "--hidden is the width of all heads together; make it a multiple of --heads");
  }
}

void check_graph(const ModelInfo& info, const ModelOptions& o) {
  if (o.edge_weighted && !info.supports_edge_weight) {
    refuse(info, "does not use edge weights, but the graph has them",
           "use a model that does, such as gcn or sage, or add --ignore-edge-weights");
  }
  if (info.needs_types && o.num_edge_types < 1) {
    refuse(info, "needs edge types", "use a graph with edge types, or make some up with --relations");
  }
  if (!info.needs_types && o.num_bases != 0)
    refuse(info, "has no relation weights, so --num-bases has no effect", "use rgcn");
  if (info.needs_types && (o.num_bases < 0 || o.num_bases > o.num_edge_types)) {
    refuse(info, "num_bases " + std::to_string(o.num_bases) + " is out of range",
           "give a number from 0 (off) to the number of edge types, " + std::to_string(o.num_edge_types));
  }
}

void complete_aggregator(const ModelInfo& info, ModelOptions& o) {
  if (info.aggregators.empty()) {
    if (!o.aggregator.empty()) refuse(info, "has no choice of aggregator", "leave --aggr out, or use sage");
    return;
  }
  if (o.aggregator.empty()) o.aggregator = info.aggregators.front();
  check_choice("aggregator", o.aggregator, info.aggregators);
}

void complete_knobs(const ModelInfo& info, ModelOptions& o) {
  std::vector<std::string> known;
  for (const ModelKnob& knob : info.knobs) {
    known.push_back(knob.name);
    const double value = o.knobs.emplace(knob.name, knob.value).first->second;
    if (knob.share) check_share(knob.name.c_str(), value);
  }
  for (const auto& [name, value] : o.knobs) {
    if (known.empty()) refuse(info, "has no setting '" + name + "'", "it has no settings of its own; leave --set out");
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UserError("--set", "model " + info.name + " has no setting '" + name + "'", suggest(name, known));
    if (!std::isfinite(value)) throw UserError("--set " + name, "is not a finite number");
  }
}

}  // namespace

ModelOptions complete_options(ModelOptions options) {
  const ModelInfo& info = find_model(options.model).info;
  if (options.activation.empty()) options.activation = info.activation;
  if (options.in_dim == 0 && !options.kinds.empty()) options.in_dim = options.hidden;
  if (options.heads == 0) options.heads = std::max(1, info.heads);
  complete_aggregator(info, options);
  complete_knobs(info, options);
  check_general(options);
  check_kinds(options.kinds);
  check_heads(info, options);
  check_graph(info, options);
  return options;
}

}  // namespace nacre
