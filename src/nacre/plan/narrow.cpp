#include "nacre/plan/narrow.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/plan/order.h"
#include "nacre/plan/variants/place.h"

namespace nacre {
namespace {

// Rows of fewer than kNarrowest numbers gain too little as bf16, and products cannot take rows
// whose lengths are not multiples of kMultiple.
constexpr int64_t kNarrowest = 16;
constexpr int64_t kMultiple = 8;

// Says why a value must be f32: one of these reasons, or the number of the kernel that needs it as
// f32.
enum WideReason : int { kNotWide = -1, kWideWithoutMemory = -2, kWideByShape = -3, kWideResult = -4 };

bool suits(const Node& node) {
  const int64_t width = node.type.row_size();
  return node.type.space.on_vertices() && node.type.dtype == DType::f32 && node.op != Op::input &&
         node.op != Op::param && width >= kNarrowest && width % kMultiple == 0;
}

// Returns whether a communication kernel moves whole rows, which may be bf16. Columns of rows are
// moved as f32, because some ranks may have columns that suit no kernel of bf16.
bool moves_rows(const Kernel& kernel, const Dfg& dfg) {
  const Op op = dfg[kernel.root].op;
  return kernel.kind == KernelKind::exchange && (op == Op::exchange || op == Op::exchange_add);
}

// Returns for the owner of each memory why it must be f32. The operand and the result of an
// exchange have the same type, and may share their memory: if one of them must be f32, or is in
// `wide`, then both must.
NodeVector<int> find_reasons(const Plan& plan, const NodeVector<char>& wide) {
  const auto owner = [&](NodeRef i) { return plan.alias[i]; };
  NodeVector<int> reasons(plan.dfg, kNotWide);
  for (NodeRef i = 0; i < plan.dfg.size(); ++i) {
    if (plan.stored[i] == 0 || owner(i) != i) {
      reasons[i] = kWideWithoutMemory;
    } else if (!suits(plan.dfg[i])) {
      reasons[i] = kWideByShape;
    }
  }
  const auto keep = [&](NodeRef i, int reason) {
    if (i >= 0 && reasons[owner(i)] == kNotWide) reasons[owner(i)] = reason;
  };
  for (const auto& [name, node] : plan.dfg.outputs()) keep(node, kWideResult);
  for (const auto& [name, node] : plan.dfg.updates()) keep(node, kWideResult);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel& kernel = plan.kernels[k];
    if (takes_bf16(kernel, plan.dfg) || moves_rows(kernel, plan.dfg)) continue;
    for (const auto* list : {&kernel.reads, &kernel.writes, &kernel.args, &plan.dfg[kernel.root].inputs}) {
      for (const NodeRef i : *list) keep(i, static_cast<int>(k));
    }
  }
  const auto is_wide = [&](NodeRef i) { return reasons[i] != kNotWide || wide[i] != 0; };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      const Kernel& kernel = plan.kernels[k];
      if (!moves_rows(kernel, plan.dfg)) continue;
      const NodeRef from = owner(plan.dfg[kernel.root].inputs[0]), to = owner(kernel.root);
      if (is_wide(from) == is_wide(to)) continue;
      keep(is_wide(from) ? to : from, static_cast<int>(k));
      changed = true;
    }
  }
  return reasons;
}

void mark_operands(RowProgram& program, const Plan& plan) {
  program.narrow.clear();
  for (const NodeRef o : program.operands) program.narrow.push_back(plan.narrow[o]);
}

}  // namespace

bool stores_bf16(const DeviceTraits& device) { return device.gpu && device.products == GemmType::bf16; }

void mark_narrow(Plan& plan, const DeviceTraits& device, const std::vector<NodeRef>* named) {
  if (!stores_bf16(device)) return;
  NodeVector<char> wide(plan.dfg, named == nullptr ? 0 : 1);
  if (named != nullptr) {
    for (const NodeRef i : *named) {
      if (i >= 0 && i < plan.dfg.size()) wide[i] = 0;
    }
  }
  const NodeVector<int> reasons = find_reasons(plan, wide);
  plan.narrow.assign(plan.dfg, 0);
  for (NodeRef i = 0; i < plan.dfg.size(); ++i) {
    const NodeRef owner = plan.alias[i];
    plan.narrow[i] = reasons[owner] == kNotWide && wide[owner] == 0 ? 1 : 0;
  }
  for (Kernel& kernel : plan.kernels) {
    mark_operands(kernel.program, plan);
    mark_operands(kernel.tail, plan);
  }
}

int64_t bytes_in_memory(const Plan& plan, const Blocks& blocks, NodeRef value) {
  const ValueType& type = plan.dfg[value].type;
  return blocks.rows(type.space) * type.row_size() * dtype_size(plan.is_narrow(value) ? DType::bf16 : type.dtype);
}

std::string why_not_narrow(const Plan& plan, NodeRef value) {
  if (value < 0 || value >= plan.dfg.size()) return "there is no such value";
  if (plan.is_narrow(value) && plan.alias[value] == value) return "";
  const int reason = find_reasons(plan, NodeVector<char>(plan.dfg, 0))[value];
  switch (reason) {
    case kNotWide:
      return "the plan stores it as f32";
    case kWideWithoutMemory:
      return "it has no memory of its own";
    case kWideByShape:
      return fmt::format("it does not consist of rows of nodes with at least {} numbers, a multiple of {}", kNarrowest,
                         kMultiple);
    case kWideResult:
      return "it is a result, and results are f32";
    default:
      return fmt::format("kernel {} ({}) takes it as f32 only", reason, kernel_name(plan.kernels[reason].kind));
  }
}

std::vector<NodeRef> narrow_values(const Plan& plan) {
  std::vector<NodeRef> values;
  for (NodeRef i = 0; i < plan.dfg.size(); ++i) {
    if (plan.is_narrow(i) && plan.alias[i] == i) values.push_back(i);
  }
  return values;
}

NarrowReport report_narrow(const Plan& plan, const Blocks& blocks) {
  NarrowReport report;
  if (plan.narrow.empty()) return report;
  for (const NodeRef i : narrow_values(plan)) {
    report.values.emplace_back(i, bytes_in_memory(plan, blocks, i));
    report.bytes += report.values.back().second;
  }
  Plan wide = plan;
  wide.narrow.clear();
  report.peak = peak_live_bytes(plan, blocks);
  report.wide_peak = peak_live_bytes(wide, blocks);
  return report;
}

std::string narrow_text(const Plan& plan, const NarrowReport& report) {
  if (plan.narrow.empty()) return "";
  if (report.values.empty()) return "stored as bf16: no value\n";
  const auto size = [](int64_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  std::string text =
      fmt::format("stored as bf16: {} in {} instead of {}; at its peak, a step has {} of values instead of {}\n",
                  counted(std::ssize(report.values), "value"), size(report.bytes), size(2 * report.bytes),
                  size(report.peak), size(report.wide_peak));
  for (const auto& [node, bytes] : report.values) {
    const Node& n = plan.dfg[node];
    text += fmt::format("  %{} {} {}  {}\n", node, op_info(n.op).name, type_text(n.type), size(bytes));
  }
  return text;
}

bool moves_bf16(const Plan& plan, const Kernel& kernel) {
  return moves_rows(kernel, plan.dfg) && plan.is_narrow(kernel.root);
}

double stored_bytes(const Plan& plan, const Kernel& kernel) { return moves_bf16(plan, kernel) ? 2 : 4; }

}  // namespace nacre
