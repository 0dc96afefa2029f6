// Plans as text for people and as JSON for files.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/plan/early_rows.h"
#include "nacre/plan/narrow.h"
#include "nacre/plan/passes.h"
#include "nacre/plan/variants.h"

namespace nacre {
namespace {

using nlohmann::json;

std::string node_list(const Dfg& dfg, const std::vector<NodeRef>& nodes) {
  std::string text;
  for (const NodeRef v : nodes) text += fmt::format("{}%{} {}", text.empty() ? "" : " + ", v, op_info(dfg[v].op).name);
  return text;
}

std::string refs(const std::vector<NodeRef>& nodes) {
  std::string text;
  for (const NodeRef v : nodes) text += fmt::format("{}%{}", text.empty() ? "" : " ", v);
  return text;
}

std::string kernel_lines(const Plan& plan, size_t i) {
  const Kernel& k = plan.kernels[i];
  std::string text = fmt::format("  [{:>2}] {:<18} ", i, kernel_name(k.kind));
  if (!plan.stored.empty()) {
    text += fmt::format("{} -> {}   {}, {:.3g} GFLOP  ", refs(k.reads), refs(k.writes), human_bytes(k.floor_bytes),
                        k.flops / 1e9);
  } else if (!k.reads.empty()) {
    text += refs(k.reads) + "  ";
  }
  text += fmt::format("({})\n", node_list(plan.dfg, k.nodes));
  if (!k.table.empty()) text += fmt::format("       gTasks: {}\n", k.table.text());
  if (!k.why.empty()) text += fmt::format("       not faster: {}\n", k.why);
  if (const std::string early = early_rows_text(k); !early.empty()) text += fmt::format("       {}\n", early);
  return text + variants_text(k);
}

std::string inlined_line(const Plan& plan, const Blocks& blocks) {
  int64_t inlined = 0;
  for (NodeRef i = 0; i < plan.dfg.size(); ++i) {
    const Node& node = plan.dfg[i];
    if (node.type.space.kind == SpaceKind::edge && !plan.stored[plan.alias[i]]) {
      inlined += blocks.rows(node.type.space) * node.type.row_size() * dtype_size(node.type.dtype);
    }
  }
  return fmt::format("edge values recomputed instead of stored: {}\n", human_bytes(static_cast<double>(inlined)));
}

}  // namespace

bool is_sequence(KernelKind kind) {
  return kind == KernelKind::lstm || kind == KernelKind::lstm_grad || kind == KernelKind::lstm_gates_grad;
}

std::string variants_text(const Kernel& kernel) {
  std::string text;
  for (const VariantChoice& v : kernel.variants) {
    if (v.variant.empty()) {
      text += fmt::format("       variant of {}: {}\n", v.decision, v.why);
    } else {
      text += fmt::format("       variant of {}: {}{}{}\n", v.decision, v.variant, limit_text(v),
                          v.why.empty() ? "" : " (" + v.why + ")");
    }
  }
  return text;
}

std::string_view kernel_name(KernelKind kind) { return kKernelNames[static_cast<size_t>(kind)]; }

std::string plan_text(const Plan& plan, const Blocks& blocks) {
  std::string text = fmt::format("plan {} ({} kernels, fuse={}, hoist={})\n", plan.name, plan.kernels.size(),
                                 plan.options.fuse, plan.options.hoist);
  for (const auto& [site, option] : plan.options.choices) text += fmt::format("  {} by {}\n", site, option);
  const auto has_dots = [](const Kernel& k) { return k.kind == KernelKind::spmm && k.second >= 0; };
  if (std::any_of(plan.kernels.begin(), plan.kernels.end(), has_dots))
    text += "  dot products of edges share the kernel of a sum\n";
  if (plan.options.vertex_factors) text += "  coefficients of edges at their vertices\n";
  if (plan.options.join_products.rows > 0) text += "  products that are added share a kernel\n";
  for (const std::string& value : plan.options.recompute) text += fmt::format("  {} computed again\n", value);
  for (const std::string& pass : plan.options.disabled_passes) text += fmt::format("  without the pass {}\n", pass);
  text += "\n" + print_dfg(plan.dfg) + "\n";
  if (plan.kernels.empty()) return text;
  for (const bool once : {true, false}) {
    text += once ? "computed once, before training\n" : "every step\n";
    for (size_t i = 0; i < plan.kernels.size(); ++i) {
      if (plan.kernels[i].once == once) text += kernel_lines(plan, i);
    }
  }
  if (plan.stored.empty()) return text;
  return text + inlined_line(plan, blocks) + narrow_text(plan, report_narrow(plan, blocks));
}

namespace {

void check_variant(const std::string& decision, const std::string& variant, const std::string& where) {
  if (!is_variant(decision, variant))
    throw UserError(where, fmt::format("names an unknown variant '{}' of {}", variant, decision));
}

void check_limit(const VariantChoice& named, const std::string& where) {
  const LimitKind* kind = limit_kind(named.decision, named.variant);
  if (kind == nullptr) {
    throw UserError(where, fmt::format("names a limit of {} for '{}' of {}, which has none", named.limit, named.variant,
                                       named.decision));
  }
  if (named.limit >= kind->least && named.limit <= kind->most) return;
  throw UserError(where, fmt::format("names a limit of {} for '{}' of {}", named.limit, named.variant, named.decision),
                  kind->most == kMostLimit ? fmt::format("name a number from {} on", kind->least)
                                           : fmt::format("name a number from {} to {}", kind->least, kind->most));
}

// Returns the choice of all sites as a text or, if sites differ, an object with the choice of each.
json placement_object(const RankPlacement& placement) {
  if (placement.sites.empty()) return halo_rows_name(placement.usual);
  json object = {{"usual", halo_rows_name(placement.usual)}};
  for (const auto& [site, rows] : placement.sites) object[rank_site_name(site)] = halo_rows_name(rows);
  return object;
}

RankPlacement placement_of(const json& j) {
  RankPlacement placement;
  if (j.is_string()) return {parse_halo_rows(j.get<std::string>()), {}};
  for (const auto& [name, rows] : j.get<std::map<std::string, std::string>>()) {
    if (name == "usual") {
      placement.usual = parse_halo_rows(rows);
    } else {
      placement.sites[parse_rank_site(name)] = parse_halo_rows(rows);
    }
  }
  return placement;
}

json options_object(const PlanOptions& o) {
  json object = {{"fuse", o.fuse},
                 {"hoist", o.hoist},
                 {"rewrite", o.rewrite},
                 {"choices", o.choices},
                 {"table", o.table.text()},
                 {"tables", o.tables},
                 {"split_outliers", o.split_outliers},
                 {"keep_sums", o.keep_sums},
                 {"recompute", o.recompute},
                 {"vertex_factors", o.vertex_factors},
                 {"join_dots", o.join_dots},
                 {"join_products", {o.join_products.rows, o.join_products.columns}},
                 {"join_typed", o.join_products.typed}};
  if (o.halo_rows != RankPlacement()) object["halo_rows"] = placement_object(o.halo_rows);
  if (!o.variants.empty()) object["variants"] = o.variants;
  if (o.vertex_order != Reorder::none) object["vertex_order"] = reorder_name(o.vertex_order);
  if (!o.disabled_passes.empty()) object["disabled_passes"] = o.disabled_passes;
  return object;
}

PlanOptions options_of(const json& j, const std::string& where) {
  PlanOptions o;
  try {
    o.fuse = j.value("fuse", true);
    o.hoist = j.value("hoist", true);
    o.rewrite = j.value("rewrite", true);
    o.choices = j.value("choices", Choices());
    o.table = PartitionTable::parse(j.value("table", ""));
    o.tables = j.value("tables", std::map<std::string, std::string>());
    // Plan files written before the setting was renamed call it "differentiate".
    o.split_outliers = j.value("split_outliers", j.value("differentiate", true));
    o.keep_sums = j.value("keep_sums", int64_t{0});
    o.recompute = j.value("recompute", std::set<std::string>());
    o.vertex_factors = j.value("vertex_factors", false);
    o.join_dots = j.value("join_dots", false);
    const auto joined = j.value("join_products", std::array<int64_t, 2>{});
    o.join_products = {joined[0], joined[1], j.value("join_typed", false)};
    if (j.contains("halo_rows")) o.halo_rows = placement_of(j.at("halo_rows"));
    o.variants = j.value("variants", std::map<std::string, std::string>());
    for (const auto& [decision, variant] : o.variants) check_variant(decision, variant, "variants");
    o.vertex_order = parse_reorder(j.value("vertex_order", "none"));
    o.disabled_passes = j.value("disabled_passes", std::set<std::string>());
    check_disabled_passes(o.disabled_passes, "disabled_passes");
    for (const auto& [kernel, table] : o.tables) PartitionTable::parse(table);
  } catch (const json::exception&) {
    throw UserError(where, "has damaged options", "write the plan again with nacre plan --output FILE");
  } catch (const UserError& error) {
    throw UserError(where, std::string("holds a bad setting: ") + error.what());
  }
  return o;
}

// Returns whether two nodes are equal on two ranks that aggregate different columns of the same
// values. The widths of what is computed from columns differ, but not those of leaves.
bool equal_but_for_columns(Node a, const Node& b) {
  if (a.type.space != b.type.space) return false;
  if (a.op == Op::to_columns || a.op == Op::to_rows) a.ints = b.ints;
  if (!a.inputs.empty()) a.type = b.type;
  return a == b;
}

bool equal_but_for_columns(const Dfg& a, const Dfg& b) {
  const auto same = [](const Node& x, const Node& y) { return equal_but_for_columns(x, y); };
  return a.outputs() == b.outputs() && a.updates() == b.updates() &&
         std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(), same);
}

}  // namespace

std::string options_json(const PlanOptions& options) { return options_object(options).dump(); }

PlanOptions parse_options(const std::string& text, const std::string& where) {
  const json j = parse_json_or_discard<json>(text);
  if (!j.is_object())
    throw UserError(where, "has damaged options", "write the plan again with nacre plan --output FILE");
  return options_of(j, where);
}

std::optional<PlanOptions> planned_options(const std::string& text, const std::string& where) {
  const json file = parse_json_or_discard<json>(text);
  if (!file.is_object() || !file.contains("options") || !file["options"].is_object()) return std::nullopt;
  return options_of(file["options"], where);
}

Reorder planned_order(const std::string& text, const std::string& where) {
  const auto options = planned_options(text, where);
  return options ? options->vertex_order : Reorder::none;
}

namespace {

json places_object(const BatchPlaces& places) {
  json object = {{"drawn", places.drawn}, {"computed", places.computed}, {"together", places.together}};
  if (places.seconds > 0) object["predicted_s"] = places.seconds;
  if (places.least > 0) object["least_s"] = places.least;
  return object;
}

BatchPlaces places_of(const json& file, const std::string& where) {
  BatchPlaces places;
  const auto found = file.find("batches");
  if (found == file.end()) return places;
  try {
    places.drawn = found->at("drawn").get<std::string>();
    places.computed = found->at("computed").get<std::string>();
    places.together = found->at("together").get<bool>();
    places.seconds = found->value("predicted_s", 0.0);
    places.least = found->value("least_s", 0.0);
  } catch (const json::exception&) {
    places.computed = "?";
  }
  if (!places.valid())
    throw UserError(where, "has damaged places of batches", "write the plan again with nacre plan --output FILE");
  return places;
}

}  // namespace

std::string plan_json(const Plan& plan) {
  json kernels = json::array();
  for (const Kernel& k : plan.kernels) {
    json entry = {{"kind", std::string(kernel_name(k.kind))},
                  {"root", k.root},
                  {"nodes", k.nodes},
                  {"reads", k.reads},
                  {"writes", k.writes},
                  {"once", k.once},
                  {"floor_bytes", k.floor_bytes},
                  {"flops", k.flops}};
    if (!k.table.empty()) entry["table"] = k.table.text();
    if (!k.why.empty()) entry["why"] = k.why;
    if (k.early.rows > 0) entry["early"] = {{"rows", k.early.rows}, {"share", k.early.share}};
    if (!k.early.why.empty()) entry["not_early"] = k.early.why;
    for (const VariantChoice& v : k.variants) {
      entry["variants"].push_back({{"decision", v.decision}, {"variant", v.variant}, {"why", v.why}});
      if (v.limit > 0) entry["variants"].back()["limit"] = v.limit;
    }
    kernels.push_back(std::move(entry));
  }
  json object = {{"format", "nacre-plan"},     {"version", 1},
                 {"name", plan.name},          {"options", options_object(plan.options)},
                 {"dfg", print_dfg(plan.dfg)}, {"kernels", std::move(kernels)}};
  if (!plan.narrow.empty()) object["bf16"] = narrow_values(plan);
  if (!plan.placement.sites.empty())
    object["placement"] = parse_json<json>(placement_json(plan.placement), "placement");
  if (!plan.places.empty()) object["batches"] = places_object(plan.places);
  return object.dump(2);
}

namespace {

// Gives the kernels of a plan the variants that a plan file names for them.
void take_variants(Plan& plan, const json& kernels, const std::string& where) {
  for (size_t i = 0; i < std::min(plan.kernels.size(), kernels.size()); ++i) {
    Kernel& kernel = plan.kernels[i];
    const json& entry = kernels[i];
    // Another version of the planner may have grouped the nodes into other kernels.
    if (entry.value("kind", "") != kernel_name(kernel.kind) || entry.value("root", -1) != kernel.root) continue;
    for (const json& v : entry.value("variants", json::array())) {
      const VariantChoice named{v.at("decision").get<std::string>(), v.at("variant").get<std::string>(), "",
                                v.value("limit", int64_t{0})};
      if (named.variant.empty()) continue;
      check_variant(named.decision, named.variant, where);
      if (v.contains("limit")) check_limit(named, where);
      kernel.variants.push_back(named);
    }
  }
}

// Returns the values that a plan file stores as bf16; nothing if the file was made for a device
// that stores no values as bf16.
std::optional<std::vector<NodeRef>> named_narrow(const json& file, const std::string& where) {
  if (!file.contains("bf16")) return std::nullopt;
  const json& list = file["bf16"];
  const auto is_ref = [](const json& value) {
    return value.is_number_integer() && value.get<int64_t>() == value.get<NodeRef>();
  };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_ref))
    throw UserError(where, "has a damaged list of values stored as bf16",
                    "write the plan again with nacre plan --output FILE");
  return list.get<std::vector<NodeRef>>();
}

// Throws UserError if the file names values that cannot be stored as bf16 on the device. Logs a
// message if the plan stores other values as bf16 than the file names.
void check_narrow(const Plan& plan, const std::optional<std::vector<NodeRef>>& named, const DeviceTraits& device,
                  bool on_rank, const std::string& where) {
  const std::vector<NodeRef> marked = narrow_values(plan);
  const bool without = plan.options.disabled_passes.contains("store_as_bf16");
  if (!named && without) return;
  if (!stores_bf16(device)) {
    if (named && !named->empty())
      log_info(fmt::format("{}: was made for --precision bf16; the {} that it stores as bf16 are f32 on this device",
                           where, counted(std::ssize(*named), "value")));
    return;
  }
  if (!named || (on_rank && marked != *named)) {
    log_info(fmt::format("{}: {}; by the rules, {} stored as bf16", where,
                         named ? "names other values to store as bf16 than the device of this rank can"
                               : "was made for another precision",
                         marked.empty() ? "no value is" : counted(std::ssize(marked), "value is", "values are")));
    return;
  }
  for (const NodeRef value : *named) {
    const std::string why =
        without ? "it also says that the pass store_as_bf16 was left out" : why_not_narrow(plan, value);
    if (!why.empty())
      throw UserError(where, fmt::format("stores %{} as bf16, but {}", value, why),
                      "take it out of \"bf16\", or write the plan again with nacre plan --output FILE");
  }
}

}  // namespace

Plan load_plan(const std::string& text, const std::string& where, const Dfg& dfg, const Blocks& blocks,
               const DeviceTraits* device) {
  const json file = parse_json_or_discard<json>(text);
  if (file.is_discarded() || !file.is_object() || file.value("format", json()) != "nacre-plan") {
    throw UserError(where, "is not a plan file", "write one with nacre plan --output FILE");
  }
  if (file.value("version", json()) != 1)
    throw UserError(where, "has a plan version that this program does not know",
                    "write the plan again with nacre plan --output FILE");
  const json options = file.value("options", json::object());
  if (!options.is_object() || !file.contains("dfg") || !file["dfg"].is_string()) {
    throw UserError(where, "has damaged options or no DFG", "write the plan again with nacre plan --output FILE");
  }
  const std::optional<std::vector<NodeRef>> named = named_narrow(file, where);
  const bool on_rank = blocks.links() != nullptr;
  Plan plan = make_plan(dfg, blocks, options_of(options, where),
                        {.device = device, .variants = false, .narrow = named && !on_rank ? &*named : nullptr});
  const auto same_dfg = [&] {
    try {
      const Dfg planned = parse_dfg(file["dfg"].get<std::string>());
      return planned == plan.dfg || (blocks.links() != nullptr && equal_but_for_columns(planned, plan.dfg));
    } catch (const UserError& error) {
      throw UserError(where, std::string("holds a damaged DFG: ") + error.what());
    }
  };
  if (!same_dfg()) {
    throw UserError(where, "was made for another model or other sizes",
                    "make it again with nacre plan and the options of this run");
  }
  if (device != nullptr) {
    try {
      take_variants(plan, file.value("kernels", json::array()), where);
    } catch (const json::exception&) {
      throw UserError(where, "has damaged kernels", "write the plan again with nacre plan --output FILE");
    }
    check_narrow(plan, named, *device, on_rank, where);
    if (!plan.options.disabled_passes.contains("choose_variants")) choose_variants(plan, blocks, *device);
  }
  plan.name = where;
  plan.places = places_of(file, where);
  return plan;
}

}  // namespace nacre
