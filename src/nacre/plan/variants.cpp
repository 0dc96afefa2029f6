#include "nacre/plan/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nacre/plan/narrow.h"
#include "nacre/plan/variants/lstm.h"
#include "nacre/plan/variants/place.h"
#include "nacre/plan/variants/products.h"
#include "nacre/plan/variants/sums.h"
#include "nacre/plan/variants/typed.h"

namespace nacre {
namespace {

std::string milliseconds(double seconds) { return fmt::format("{:.3g} ms", seconds * 1e3); }

void add_reason(std::string& why, const std::string& reason) { why += (why.empty() ? "" : "; ") + reason; }

// Collects the decisions about one kernel.
class Decisions {
 public:
  Decisions(const PlannedKernel& kernel, const DeviceTraits& device) : kernel_(kernel), device_(device) {}

  template <class Facts>
  void add(const VariantList<Facts>& list, const Facts& facts) {
    const std::vector<Judged> all = judge(list, facts, device_);
    const std::string_view planned = named_variant(list.decision);
    if (planned.empty() && list.timed && needs_timing(all)) {
      records.push_back(record_untimed(list.decision, all));
      return;
    }
    const int taken = variant_to_run(all, planned);
    records.push_back(record_of(list.decision, all, taken));
    const bool by_list = taken == cheapest(all) && !(list.timed && needs_timing(all));
    if (planned == records.back().variant && !by_list) records.back().why = "the plan file names it";
  }

  std::vector<VariantChoice> records;

 private:
  // Returns the variant that a plan file names, for this kernel or for all kernels.
  std::string_view named_variant(const char* decision) const {
    const std::string_view own = planned_variant(kernel_.kernel, decision);
    if (!own.empty()) return own;
    const auto& all = kernel_.plan.options.variants;
    const auto found = all.find(decision);
    return found == all.end() ? std::string_view() : std::string_view(found->second);
  }

  const PlannedKernel& kernel_;
  const DeviceTraits& device_;
};

void decide_sums(const PlannedKernel& k, const DeviceTraits& device, Decisions& made) {
  const SpmmFacts facts = spmm_facts(k);
  made.add(spmm_tile_variants(), facts);
  if (device.part.shares_cache()) {
    Kernel decided;
    decided.variants = made.records;
    made.add(spmm_source_variants(), {facts, planned_tiles(decided, facts)});
  }
  made.add(spmm_weight_variants(), facts);
}

void decide_pair_sums(const PlannedKernel& k, Decisions& made) {
  const PairSumFacts facts = pair_sum_facts(k);
  made.add(pair_sum_variants(), facts);
  made.add(pair_row_variants(), facts);
}

void decide_typed(const PlannedKernel& k, Decisions& made) {
  switch (k.kernel.kind) {
    case KernelKind::typed_reduce: {
      const TypedReduceFacts facts = typed_reduce_facts(k);
      if (facts.of_pairs) return made.add(pair_product_variants(), facts);
      made.add(typed_reduce_variants(), facts);
      return decide_pair_sums(k, made);
    }
    case KernelKind::typed_weight_grad:
      made.add(typed_grad_variants(), typed_grad_facts(k));
      return decide_pair_sums(k, made);
    case KernelKind::typed_rows:
      return made.add(typed_rows_variants(), typed_rows_facts(k));
    case KernelKind::typed_rows_grad:
      return made.add(typed_rows_grad_variants(), typed_rows_grad_facts(k));
    default:  // a sum over the edges of pairs
      return decide_pair_sums(k, made);
  }
}

void decide_product(const PlannedKernel& k, const DeviceTraits& device, Decisions& made) {
  const ProductFacts facts = product_facts(k, device);
  if (k.kernel.kind == KernelKind::matmul) {
    made.add(product_variants(), facts);
    if (made.records.back().variant == product_variants().variants[0].name)
      return made.add(product_block_variants(), facts);
  }
  made.add(product_run_variants(), facts);
}

template <class Facts>
bool has(const VariantList<Facts>& list, std::string_view decision, std::string_view variant) {
  return decision == list.decision &&
         std::any_of(list.variants.begin(), list.variants.end(), [&](const auto& v) { return variant == v.name; });
}

}  // namespace

int cheapest(const std::vector<Judged>& all) {
  int best = -1;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].accepts()) continue;
    if (best < 0 && all[i].seconds < 0) return static_cast<int>(i);
    if (best < 0 || all[i].seconds <= all[static_cast<size_t>(best)].seconds) best = static_cast<int>(i);
  }
  return best;
}

int variant_to_run(const std::vector<Judged>& all, std::string_view planned) {
  const auto named = std::find_if(all.begin(), all.end(), [&](const Judged& v) { return v.name == planned; });
  if (named == all.end()) return cheapest(all);
  const auto found = std::find_if(named, all.end(), [](const Judged& v) { return v.accepts(); });
  return static_cast<int>(found - all.begin());
}

bool needs_timing(const std::vector<Judged>& all) {
  return std::count_if(all.begin(), all.end(), [](const Judged& v) { return v.accepts(); }) > 1;
}

VariantChoice record_of(const char* decision, const std::vector<Judged>& all, int taken) {
  const Judged& chosen = all[static_cast<size_t>(taken)];
  VariantChoice record{decision, chosen.name, ""};
  for (size_t i = 0; i < all.size(); ++i) {
    const Judged& v = all[i];
    if (!v.accepts()) {
      add_reason(record.why, fmt::format("not {}: {}", v.name, v.declined));
    } else if (i != static_cast<size_t>(taken) && v.seconds >= 0 && chosen.seconds >= 0) {
      add_reason(record.why, fmt::format("not {}: it would take {} instead of {}", v.name, milliseconds(v.seconds),
                                         milliseconds(chosen.seconds)));
    }
  }
  return record;
}

VariantChoice record_untimed(const char* decision, const std::vector<Judged>& all) {
  std::string names;
  for (const Judged& v : all) {
    if (v.accepts()) names += (names.empty() ? "" : " or ") + std::string(v.name);
  }
  return {decision, "", names + "; the GPU times them when the run starts"};
}

VariantChoice record_timed(const char* decision, const std::vector<Judged>& all, int taken,
                           const std::vector<double>& seconds) {
  VariantChoice record{decision, all[static_cast<size_t>(taken)].name, "timed:"};
  size_t next = 0;
  for (const Judged& v : all) {
    if (v.accepts() && next < seconds.size())
      record.why += fmt::format("{} {} {}", next == 0 ? "" : ",", v.name, milliseconds(seconds[next]));
    if (v.accepts()) ++next;
  }
  return record;
}

std::string_view planned_variant(const Kernel& kernel, std::string_view decision) {
  for (const VariantChoice& v : kernel.variants) {
    if (v.decision == decision) return v.variant;
  }
  return {};
}

std::vector<VariantChoice> decide(const PlannedKernel& k, const DeviceTraits& device) {
  if (!device.gpu) return {};
  Decisions made(k, device);
  if (runs_on_host(k.kernel, k.plan.dfg)) {
    made.add(place_variants(), place_facts(k));
    return std::move(made.records);
  }
  switch (k.kernel.kind) {
    case KernelKind::spmm:
      if (sums_pairs(k.kernel)) {
        decide_typed(k, made);
        break;
      }
      decide_sums(k, device, made);
      [[fallthrough]];
    case KernelKind::reduce:
    case KernelKind::gtask:
      made.add(row_shape_variants(), row_shape_facts(k));
      break;
    case KernelKind::matmul:
    case KernelKind::weight_grad:
      decide_product(k, device, made);
      break;
    case KernelKind::typed_reduce:
    case KernelKind::typed_weight_grad:
    case KernelKind::typed_rows:
    case KernelKind::typed_rows_grad:
      decide_typed(k, made);
      break;
    case KernelKind::lstm:
    case KernelKind::lstm_grad:
      made.add(lstm_variants(), lstm_facts(k));
      break;
    default:
      break;
  }
  return std::move(made.records);
}

void choose_variants(Plan& plan, const Blocks& blocks, const DeviceTraits& device) {
  // The engine marks the values that lie in memory as bf16; the variants depend on these marks.
  Plan marked = plan;
  if (device.gpu && device.products == GemmType::bf16) narrow_values(marked);
  for (size_t i = 0; i < marked.kernels.size(); ++i) {
    plan.kernels[i].variants = decide({marked, marked.kernels[i], blocks}, device);
  }
}

bool is_variant(std::string_view decision, std::string_view variant) {
  return has(place_variants(), decision, variant) || has(product_variants(), decision, variant) ||
         has(product_block_variants(), decision, variant) || has(product_run_variants(), decision, variant) ||
         has(spmm_tile_variants(), decision, variant) || has(spmm_weight_variants(), decision, variant) ||
         has(spmm_source_variants(), decision, variant) || has(row_shape_variants(), decision, variant) ||
         has(pair_sum_variants(), decision, variant) || has(pair_row_variants(), decision, variant) ||
         has(lstm_variants(), decision, variant) || has(typed_reduce_variants(), decision, variant) ||
         has(pair_product_variants(), decision, variant) || has(typed_grad_variants(), decision, variant) ||
         has(typed_rows_variants(), decision, variant) || has(typed_rows_grad_variants(), decision, variant);
}

}  // namespace nacre
