#include "nacre/data/twin_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/philox.h"
#include "nacre/data/twin_math.h"

namespace nacre {
namespace {

constexpr double kMaxScale = 64;
// The largest share of all pairs of vertices that are joined. In denser graphs, distinct partners
// are hard to draw and communities mean nothing.
constexpr double kMaxDensity = 0.5;
// The largest share of its possible partners that a vertex is joined to.
constexpr double kMaxReach = 0.6;

const TwinSpec& find_spec(std::string_view name, const std::string& where) {
  std::vector<std::string> names;
  for (const TwinSpec& spec : twin_specs()) names.push_back(spec.name);
  const auto known = find_name(std::string(name), names);
  for (const TwinSpec& spec : twin_specs()) {
    if (spec.name == known) return spec;
  }
  throw UserError(where, "no such twin", suggest(std::string(name), names));
}

double parse_scale(std::string_view text, const std::string& where) {
  double scale = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  const bool read = error == std::errc{} && end == text.data() + text.size();
  if (!read || !std::isfinite(scale) || scale <= 0 || scale > kMaxScale) {
    throw UserError(where, fmt::format("\"{}\" is not a scale", text),
                    fmt::format("give a number above 0 and up to {}, as in twin:arxiv@0.1", kMaxScale));
  }
  return scale;
}

int64_t scaled(int64_t count, double scale) { return std::llround(static_cast<double>(count) * scale); }

// Returns the number of communities. Single-label sets have one per class. Multi-label sets have
// fewer if vertices have more neighbours than a community would have members, because edges could
// not stay inside.
int64_t community_count(const TwinPlan& plan) {
  const TwinSpec& spec = *plan.spec;
  if (spec.communities == 0) return spec.num_classes;
  const double mean_degree = static_cast<double>(spec.num_edges) / static_cast<double>(spec.num_nodes);
  const auto most = static_cast<int64_t>(static_cast<double>(plan.num_nodes) / (1.5 * mean_degree));
  return std::clamp<int64_t>(most, 4, spec.communities);
}

void plan_kinds(TwinPlan& plan) {
  plan.kind_begin = {0};
  if (plan.spec->kinds.empty()) {
    plan.kind_begin.push_back(plan.num_nodes);
    return;
  }
  int64_t sum = 0;
  for (const TwinKind& kind : plan.spec->kinds) {
    sum += kind.num_nodes;
    plan.kind_begin.push_back(scaled(sum, plan.scale));
  }
}

std::vector<TwinRelation> relations_of(const TwinSpec& spec) {
  if (!spec.relations.empty()) return spec.relations;
  TwinRelation all{.name = "edges", .from = 0, .to = 0, .num_edges = spec.num_edges, .homophily = spec.homophily};
  all.in = {spec.degree_exponent, spec.max_degree};
  all.out = all.in;
  if (spec.out_exponent > 0) all.out = {spec.out_exponent, spec.max_out_degree};
  return {all};
}

// Returns `tail` with the largest degree at this scale. The largest of n draws from a power law
// grows as n^(1 / (exponent - 1)).
DegreeTail scale_tail(const DegreeTail& tail, double scale, double mean, int64_t reach) {
  const double natural = static_cast<double>(tail.max) * portable_pow(scale, 1 / (tail.exponent - 1));
  const double limit = std::max(kMaxReach * static_cast<double>(reach), mean + 1);
  return {tail.exponent, static_cast<int64_t>(std::min(std::max(natural, 4 * mean + 4), limit))};
}

void plan_relations(TwinPlan& plan) {
  int64_t sum = 0;
  int64_t done = 0;
  for (const TwinRelation& r : relations_of(*plan.spec)) {
    sum += r.num_edges;
    const int64_t from = plan.kind_size(r.from);
    const int64_t to = plan.kind_size(r.to);
    int64_t edges = scaled(sum, plan.scale) - done;
    done += edges;
    const double pairs = static_cast<double>(from) * static_cast<double>(r.from == r.to ? to - 1 : to) *
                         (plan.spec->undirected && r.from != r.to ? 2 : 1);
    if (const auto most = static_cast<int64_t>(kMaxDensity * pairs); edges > most) {
      plan.notes.push_back(fmt::format("{}: {} of {} edges kept, so that at most half of all node pairs are joined",
                                       plan.name, human_count(most), human_count(edges)));
      edges = most;
    }
    PlannedRelation planned{.from = r.from, .to = r.to, .symmetric = plan.spec->undirected, .homophily = r.homophily};
    planned.draws = planned.symmetric ? edges / 2 : edges;
    // Only the full-size set can have an odd number of edges: at other scales, the number is
    // rounded to whole pairs.
    if (planned.symmetric && plan.scale == 1) plan.self_loops += edges % 2;
    const double drawn = static_cast<double>(planned.draws) * (planned.symmetric && r.from == r.to ? 2 : 1);
    planned.out = scale_tail(r.out, plan.scale, drawn / static_cast<double>(std::max<int64_t>(1, from)), to);
    planned.in = scale_tail(r.in, plan.scale, drawn / static_cast<double>(std::max<int64_t>(1, to)), from);
    plan.num_edges += planned.symmetric ? 2 * planned.draws : planned.draws;
    plan.relations.push_back(planned);
  }
  plan.num_edges += plan.self_loops;
}

}  // namespace

uint64_t TwinPlan::key(TwinStream stream, uint64_t index) const {
  return mix_key(mix_key(mix_key(0x7477696E, seed), static_cast<uint64_t>(stream)), index);
}

int TwinPlan::kind_of(int64_t vertex) const {
  return static_cast<int>(std::upper_bound(kind_begin.begin(), kind_begin.end(), vertex) - kind_begin.begin()) - 1;
}

TwinPlan plan_twin(std::string_view name_and_scale, uint64_t seed) {
  const std::string where = "twin:" + std::string(name_and_scale);
  const size_t at = name_and_scale.find('@');
  TwinPlan plan;
  plan.spec = &find_spec(name_and_scale.substr(0, at), where);
  if (at != std::string_view::npos) plan.scale = parse_scale(name_and_scale.substr(at + 1), where);
  plan.name = plan.scale == 1 ? "twin:" + plan.spec->name : where;
  plan.seed = seed;
  plan.num_nodes = scaled(plan.spec->num_nodes, plan.scale);
  plan.communities = community_count(plan);
  const int64_t fewest = std::max<int64_t>(16, 2 * plan.communities);
  if (plan.num_nodes < fewest) {
    throw UserError(where, fmt::format("only {} nodes would be left", plan.num_nodes),
                    fmt::format("this twin needs at least {}: use a scale of {:.2g} or more", fewest,
                                1.01 * static_cast<double>(fewest) / static_cast<double>(plan.spec->num_nodes)));
  }
  if (plan.num_nodes > INT64_C(0xFFFFFFFF))
    throw UserError(where, "would have more than 4,294,967,295 nodes", "scale it down");
  plan_kinds(plan);
  plan_relations(plan);
  return plan;
}

int64_t twin_peak_bytes(const TwinPlan& plan, bool features) {
  int64_t drawn = 0;
  for (const PlannedRelation& r : plan.relations) drawn = std::max(drawn, r.draws);
  const int64_t graph = 8 * plan.num_nodes + (plan.spec->num_edge_types > 1 ? 6 : 4) * plan.num_edges;
  // The lists of all relations are held together with either the pairs that are being transposed
  // (rows and scattered pairs) or the finished graph.
  const int64_t edges = 80 * plan.num_nodes + 4 * plan.num_edges + std::max(12 * drawn, graph);
  const TwinSpec& spec = *plan.spec;
  const int64_t rows = (features ? 4 * spec.num_features : 0) + (spec.multilabel ? spec.num_classes : 4) + 12;
  return std::max(edges, graph + rows * plan.num_nodes);
}

void require_memory(const TwinPlan& plan, int64_t available, bool features) {
  const int64_t needed = twin_peak_bytes(plan, features);
  if (needed <= available) return;
  const double fits = 0.9 * plan.scale * static_cast<double>(available) / static_cast<double>(needed);
  throw UserError(plan.name,
                  fmt::format("generating it takes about {} of memory and {} are free",
                              human_bytes(static_cast<double>(needed)), human_bytes(static_cast<double>(available))),
                  fmt::format("scale it down: twin:{}@{:.2g}", plan.spec->name, fits));
}

}  // namespace nacre
