// Writes explanations as text.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/plan/early_rows.h"
#include "nacre/plan/explain.h"

namespace nacre {
namespace {

using nlohmann::ordered_json;

constexpr size_t kShownCandidates = 6;  // most candidates that are shown for a group

std::string_view space_name(SpaceKind kind) {
  switch (kind) {
    case SpaceKind::vertex:
      return "nodes";
    case SpaceKind::halo:
      return "nodes and their halo";
    case SpaceKind::edge:
      return "edges";
    case SpaceKind::type:
      return "types";
    case SpaceKind::param:
      return "parameters";
    case SpaceKind::pair_src:
      return "pairs of source and type";
    case SpaceKind::pair_dst:
      return "pairs of destination and type";
    case SpaceKind::rows:
    case SpaceKind::kind:
      return "rows of one kind";
  }
  return "unknown";
}

// Returns how many nodes with the same operation and space each of the two DFGs has. The keys are
// names such as "typed_matmul on edges".
std::map<std::string, std::pair<int, int>> count_operations(const Dfg& before, const Dfg& after) {
  std::map<std::string, std::pair<int, int>> counts;
  const auto name = [](const Node& node) {
    return fmt::format("{} on {}", op_info(node.op).name, space_name(node.type.space.kind));
  };
  for (const Node& node : before.nodes()) ++counts[name(node)].first;
  for (const Node& node : after.nodes()) ++counts[name(node)].second;
  return counts;
}

std::string written_or_chosen(const Explanation& e, const Site& site) {
  const auto choice = e.plan.options.choices.find(site.key);
  return choice == e.plan.options.choices.end() ? site.written : choice->second;
}

std::string operations(const Plan& plan, const Kernel& kernel) {
  std::string text;
  for (const NodeRef v : kernel.nodes) text += (text.empty() ? "" : "+") + std::string(op_info(plan.dfg[v].op).name);
  return text;
}

std::string milliseconds(double seconds) { return seconds < 0 ? "-" : fmt::format("{:.2f}", seconds * 1e3); }

std::string dfg_section(const Explanation& e, bool all) {
  std::string text =
      fmt::format("data flow graph: {} operations as written, {} planned\n", e.written.size(), e.plan.dfg.size());
  for (const auto& [name, count] : count_operations(e.written, e.plan.dfg)) {
    if (count.first != count.second) text += fmt::format("  {}: {} -> {}\n", name, count.first, count.second);
  }
  text += fmt::format("  neural work: {:.4g} -> {:.4g} GFLOP, {:.1f} % removed (matrix products {:.4g} -> {:.4g})\n",
                      e.work_before.neural_flops / 1e9, e.work_after.neural_flops / 1e9,
                      neural_removed(e.work_before, e.work_after), e.work_before.product_flops / 1e9,
                      e.work_after.product_flops / 1e9);
  text += fmt::format("  indexing work: {} -> {} of rows read and written\n", human_bytes(e.work_before.index_bytes),
                      human_bytes(e.work_after.index_bytes));
  if (all) text += "\nas written\n" + print_dfg(e.written) + "\nplanned\n" + print_dfg(e.plan.dfg);
  return text;
}

std::string choices_section(const Explanation& e) {
  if (e.sites.empty()) return "choices: none, because no value can be computed in another order\n";
  std::string text = "choices\n";
  for (const Site& site : e.sites) {
    const std::string chosen = written_or_chosen(e, site);
    std::string others;
    for (const std::string& option : site.options) {
      if (option != chosen) others += (others.empty() ? "" : ", ") + option;
    }
    text +=
        fmt::format("  {}: {}{} (not {})\n", site.key, chosen, chosen == site.written ? ", as written" : "", others);
  }
  return text;
}

std::string kernel_section(const Explanation& e) {
  std::string text = fmt::format("kernels of a step\n  {:>4} {:>9} {:>9} {:>9} {:>7} {:>10}  {}\n", "", "predicted",
                                 "measured", "floor ms", "over", "bytes", "");
  double predicted = 0, measured = 0, floor = 0;
  for (size_t i = 0; i < e.plan.kernels.size(); ++i) {
    const Kernel& k = e.plan.kernels[i];
    const KernelReport& r = e.kernels[i];
    if (k.once) continue;
    predicted += std::max(0.0, r.predicted);
    measured += std::max(0.0, r.measured);
    floor += r.floor;
    text += fmt::format("  [{:>2}] {:>9} {:>9} {:>9} {:>7} {:>10}  {} {} ({})\n", i, milliseconds(r.predicted),
                        milliseconds(r.measured), milliseconds(r.floor),
                        r.measured > 0 && r.floor > 0 ? fmt::format("{:.1f}x", r.measured / r.floor) : "-",
                        human_bytes(k.floor_bytes), kernel_name(k.kind), type_text(e.plan.dfg[k.root].type),
                        operations(e.plan, k));
    if (!k.table.empty()) text += fmt::format("       gTasks: {}\n", k.table.text());
    if (!k.why.empty()) text += fmt::format("       not faster: {}\n", k.why);
    if (const std::string early = early_rows_text(k); !early.empty()) text += fmt::format("       {}\n", early);
    text += variants_text(k);
  }
  text += fmt::format("  all  {:>9} {:>9} {:>9} {:>7}\n", milliseconds(predicted), milliseconds(measured),
                      milliseconds(floor), measured > 0 && floor > 0 ? fmt::format("{:.1f}x", measured / floor) : "-");
  const auto once = std::count_if(e.plan.kernels.begin(), e.plan.kernels.end(), [](const Kernel& k) { return k.once; });
  return text + fmt::format("  and {} computed once, before training\n", once);
}

std::string indented(const std::string& lines, const std::string& by) {
  std::string text;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    text += by + lines.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return text;
}

std::string table_section(const Explanation& e) {
  std::string text = "gTasks\n";
  for (const TableReport& t : e.tables) {
    text += fmt::format("  {} (kernels {})\n{}", t.table.text(), t.kernels, indented(pattern_text(t.patterns), "  "));
  }
  return e.tables.empty() ? "gTasks: no kernel runs over gTasks\n" : text;
}

// Returns how much longer the loser takes than the winner: by timing if both were timed, otherwise
// by prediction.
double lost_by(const Candidate& loser, const Candidate& winner) {
  return loser.measured > 0 && winner.measured > 0 ? loser.measured - winner.measured
                                                   : loser.predicted - winner.predicted;
}

// Returns whether candidate `a` is shown before `b`. The chosen one comes first, then those that
// were timed, then the rest; within these, the fastest first.
bool comes_first(const Candidate& a, const Candidate& b) {
  if (a.chosen != b.chosen) return a.chosen;
  if ((a.measured > 0) != (b.measured > 0)) return a.measured > 0;
  return lost_by(a, b) < 0;
}

std::vector<std::pair<std::string, std::vector<Candidate>>> by_group(const std::vector<Candidate>& candidates) {
  std::vector<std::pair<std::string, std::vector<Candidate>>> groups;
  for (const Candidate& c : candidates) {
    auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == c.group; });
    if (same == groups.end()) same = groups.insert(groups.end(), {c.group, {}});
    same->second.push_back(c);
  }
  for (auto& [name, list] : groups) std::stable_sort(list.begin(), list.end(), comes_first);
  return groups;
}

// Share of a time by which two timings of the same thing may differ.
constexpr double kNoise = 0.02;

// Returns whether the candidate took less time than the chosen one, beyond what chance explains.
// Both must have been timed.
bool timed_faster(const Candidate& c, const Candidate& chosen) {
  return !c.chosen && c.measured > 0 && chosen.measured > 0 && c.measured < chosen.measured * (1 - kNoise);
}

// Returns the text beside an alternative: by how many ms of an epoch it lost, or why it cannot be
// said to have lost.
std::string lost_text(const Candidate& c, const Candidate& chosen) {
  if (timed_faster(c, chosen)) return "faster";
  const double lost = lost_by(c, chosen);
  if (lost >= 0) return fmt::format("{:+.2f}", lost * 1e3);
  return c.measured > 0 && chosen.measured > 0 ? "the same" : "not timed";
}

std::string why_not_faster_ones(const Explanation& e) {
  if (e.source == "searched")
    return "the search times kernels one by one, and keeps the plan by rules unless whole steps gain more than 2 %";
  if (e.source == "cached") return "the plan was stored by an earlier search; --no-plan-cache searches again";
  if (e.source == "file") return "the plan was read from the file; the times were measured now, for comparison";
  if (e.source == "given") return "the plan is the one that --plan asks for";
  return "the plan was made by rules, without timing; a longer run (--epochs) with --plan auto pays for a search";
}

std::string candidate_section(const Explanation& e, bool all) {
  if (e.candidates.empty()) return "alternatives: none were compared\n";
  std::string text =
      fmt::format("alternatives (ms of an epoch)\n    {:>9} {:>9} {:>9}\n", "lost by", "predicted", "measured");
  for (const auto& [name, list] : by_group(e.candidates)) {
    text += "  " + name + "\n";
    const size_t shown = all ? list.size() : std::min(list.size(), kShownCandidates);
    for (size_t i = 0; i < shown; ++i) {
      const Candidate& c = list[i];
      std::string lost = c.chosen ? "chosen" : "";
      if (!c.chosen && list[0].chosen) lost = lost_text(c, list[0]);
      text +=
          fmt::format("    {:>9} {:>9} {:>9}  {}\n", lost, milliseconds(c.predicted), milliseconds(c.measured), c.what);
    }
    if (shown < list.size()) text += fmt::format("    and {} more\n", list.size() - shown);
  }
  return text;
}

ordered_json or_null(double value) { return value < 0 ? ordered_json() : ordered_json(value); }

ordered_json pattern_json(const AttributePattern& p) {
  return {{"unique", p.unique_total},
          {"unique_max", p.unique_max},
          {"unique_mean", p.unique_mean},
          {"duplication", p.duplication},
          {"histogram", p.histogram}};
}

ordered_json table_json(const TableReport& t) {
  const Patterns& p = t.patterns;
  return {{"table", t.table.text()},
          {"kernels", t.kernels},
          {"tasks", p.tasks},
          {"edges", p.edges},
          {"edge_id", pattern_json(p.edge_id)},
          {"src_id", pattern_json(p.src_id)},
          {"dst_id", pattern_json(p.dst_id)},
          {"edge_type", pattern_json(p.edge_type)},
          {"volume_change", p.volume_change},
          {"underfill", {{"tasks", p.underfill}, {"edges", p.underfill_edges}}},
          {"overfill", {{"tasks", p.overfill}, {"edges", p.overfill_edges}}},
          {"frequent", {{"tasks", p.frequent}, {"edges", p.frequent_edges}}}};
}

ordered_json kernel_json(const Explanation& e, size_t i) {
  const Kernel& k = e.plan.kernels[i];
  const KernelReport& r = e.kernels[i];
  ordered_json variants = ordered_json::array();
  for (const VariantChoice& v : k.variants) {
    variants.push_back({{"decision", v.decision}, {"variant", v.variant}, {"why", v.why}});
    if (v.limit > 0) variants.back()["limit"] = v.limit;
  }
  return {{"kind", std::string(kernel_name(k.kind))},
          {"type", type_text(e.plan.dfg[k.root].type)},
          {"operations", operations(e.plan, k)},
          {"table", k.table.text()},
          {"once", k.once},
          {"predicted_ms", or_null(r.predicted * 1e3)},
          {"measured_ms", or_null(r.measured * 1e3)},
          {"floor_ms", r.floor * 1e3},
          {"over_floor", r.measured > 0 && r.floor > 0 ? ordered_json(r.measured / r.floor) : ordered_json()},
          {"floor_bytes", k.floor_bytes},
          {"why", k.why},
          {"variants", variants}};
}

ordered_json dfg_json(const Explanation& e) {
  ordered_json changed = ordered_json::object();
  for (const auto& [name, count] : count_operations(e.written, e.plan.dfg)) {
    if (count.first != count.second) changed[name] = {count.first, count.second};
  }
  return {{"operations", {e.written.size(), e.plan.dfg.size()}},
          {"changed", changed},
          {"neural_flops", {e.work_before.neural_flops, e.work_after.neural_flops}},
          {"product_flops", {e.work_before.product_flops, e.work_after.product_flops}},
          {"index_bytes", {e.work_before.index_bytes, e.work_after.index_bytes}},
          {"neural_removed_percent", neural_removed(e.work_before, e.work_after)},
          {"written", print_dfg(e.written)},
          {"planned", print_dfg(e.plan.dfg)}};
}

}  // namespace

std::string explain_text(const Explanation& e, bool all) {
  std::string text = fmt::format("{} on {}, plan {}: {}{}\n\n", e.model, e.data, e.plan.name, e.source,
                                 e.search_seconds > 0 ? " in " + human_seconds(e.search_seconds) : "");
  text += "attributes of the edges, and the operations that follow them\n";
  text += attribute_text(attribute_roles(e.written)) + "\n" + dfg_section(e, all) + "\n" + choices_section(e) + "\n";
  text += kernel_section(e) + "\n" + table_section(e) + "\n" + candidate_section(e, all) + "\nmemory\n";
  double total = 0;
  for (const auto& [what, bytes] : e.memory) {
    total += bytes;
    text += fmt::format("  {:>10}  {}\n", human_bytes(bytes), what);
  }
  text += fmt::format("  {:>10}  total\n", human_bytes(total));
  return text + peak_text(e.plan, e.peak) + narrow_text(e.plan, e.narrow) + dropped_text(e.dropped);
}

std::string alternatives_text(const Explanation& e) {
  constexpr const char* kRow = "{:<10}{}\n";
  if (e.candidates.empty()) return fmt::format(kRow, "compared", "nothing: there were no alternatives to time");
  int alternatives = 0, timed = 0;
  std::string faster;
  for (const auto& [name, list] : by_group(e.candidates)) {
    for (const Candidate& c : list) {
      alternatives += c.chosen ? 0 : 1;
      timed += !c.chosen && c.measured > 0 ? 1 : 0;
      if (!list[0].chosen || !timed_faster(c, list[0])) continue;
      faster += fmt::format(kRow, "",
                            fmt::format("{}: {} took {} instead of {}", name, c.what, human_seconds(c.measured),
                                        human_seconds(list[0].measured)));
    }
  }
  std::string text =
      fmt::format(kRow, "compared",
                  fmt::format("{}, {} of them timed{}", counted(alternatives, "alternative"), timed,
                              faster.empty() ? ": none was faster by more than 2 %" : "; these were faster:"));
  if (!faster.empty()) text += faster + fmt::format(kRow, "", why_not_faster_ones(e));
  return text;
}

std::string explain_json(const Explanation& e) {
  ordered_json attributes, choices, kernels, tables, candidates, memory;
  constexpr const char* roles[] = {"indexing", "inherent", "unused"};
  for (const AttributeRole& role : attribute_roles(e.written)) {
    attributes[entry_name(role.location, role.attribute)] = roles[static_cast<size_t>(role.role)];
  }
  choices = ordered_json::object();
  for (const Site& site : e.sites) {
    choices[site.key] = {{"chosen", written_or_chosen(e, site)}, {"written", site.written}, {"options", site.options}};
  }
  kernels = tables = candidates = ordered_json::array();
  for (size_t i = 0; i < e.plan.kernels.size(); ++i) kernels.push_back(kernel_json(e, i));
  for (const TableReport& t : e.tables) tables.push_back(table_json(t));
  for (const Candidate& c : e.candidates) {
    candidates.push_back({{"group", c.group},
                          {"what", c.what},
                          {"predicted_ms", c.predicted * 1e3},
                          {"measured_ms", or_null(c.measured * 1e3)},
                          {"chosen", c.chosen}});
  }
  for (const auto& [what, bytes] : e.memory) memory[what] = bytes;
  ordered_json peak = ordered_json::array(), narrow = peak, dropped = peak;
  for (const auto& [node, bytes] : e.peak.values) peak.push_back({{"node", node}, {"bytes", bytes}});
  for (const auto& [node, bytes] : e.narrow.values) narrow.push_back({{"node", node}, {"bytes", bytes}});
  for (const Dropped& d : e.dropped)
    dropped.push_back({{"value", d.value}, {"saved_bytes", d.bytes}, {"added_ms", d.seconds * 1e3}});
  const ordered_json j = {{"data", e.data},
                          {"model", e.model},
                          {"plan", e.plan.name},
                          {"source", e.source},
                          {"search_seconds", e.search_seconds},
                          {"attributes", attributes},
                          {"dfg", dfg_json(e)},
                          {"choices", choices},
                          {"kernels", kernels},
                          {"tables", tables},
                          {"candidates", candidates},
                          {"memory", memory},
                          {"peak", {{"kernel", e.peak.kernel}, {"values", peak}}},
                          {"stored_as_bf16", {{"values", narrow}, {"peak_saved_bytes", e.narrow.saved()}}},
                          {"computed_again", dropped}};
  return j.dump(1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace nacre
