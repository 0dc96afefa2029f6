#include "nacre/plan/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nacre/plan/variants/chunks.h"
#include "nacre/plan/variants/lstm.h"
#include "nacre/plan/variants/place.h"
#include "nacre/plan/variants/products.h"
#include "nacre/plan/variants/reductions.h"
#include "nacre/plan/variants/rows.h"
#include "nacre/plan/variants/sums.h"
#include "nacre/plan/variants/tasks.h"
#include "nacre/plan/variants/typed.h"

namespace nacre {
namespace {

std::string milliseconds(double seconds) { return fmt::format("{:.3g} ms", seconds * 1e3); }

void add_reason(std::string& why, const std::string& reason) { why += (why.empty() ? "" : "; ") + reason; }

// Collects the decisions about one kernel.
class Decisions {
 public:
  Decisions(const PlannedKernel& kernel, const DeviceTraits& device) : kernel_(kernel), device_(device) {}

  // Returns the number of the variant taken; -1 if the device must time the variants first.
  template <class Facts>
  int add(const VariantList<Facts>& list, const Facts& facts) {
    const std::vector<Judged> all = judge(list, facts, device_);
    const std::string_view planned = named_variant(list.decision);
    if (planned.empty() && list.timed && needs_timing(all)) {
      records.push_back(record_untimed(list.decision, all));
      return -1;
    }
    const int taken = variant_to_run(all, planned);
    const Judged& chosen = all[static_cast<size_t>(taken)];
    VariantChoice record = record_of(list.decision, all, taken);
    record.limit = limit_to_run(kernel_.kernel, list.decision, chosen);
    const bool by_list = taken == cheapest(all) && !(list.timed && needs_timing(all)) && record.limit == chosen.limit;
    if (planned == record.variant && !by_list) record.why = "the plan file names it";
    records.push_back(std::move(record));
    return taken;
  }
  template <class Way, class Facts>
  Way way(const VariantList<Facts>& list, const Facts& facts) {
    return static_cast<Way>(add(list, facts));
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

// Adds the decisions about a reduction over the edges of rows, in the given tiles of columns.
void decide_rows(const PlannedKernel& k, const ColumnTiles& tiles, Decisions& made) {
  RowFacts facts = row_facts(k);
  facts.shortest = shortest_piece(k, tiles);
  made.add(long_sum_variants(), facts);
  made.add(row_thread_variants(), facts);
  made.add(row_shape_variants(), row_shape_facts(k));
}

void decide_sums(const PlannedKernel& k, const DeviceTraits& device, Decisions& made) {
  const SpmmFacts facts = spmm_facts(k);
  const ColumnTiles tiles = column_tiles(facts, made.way<SpmmTiles>(spmm_tile_variants(), facts));
  if (device.part.shares_cache()) made.add(spmm_source_variants(), {facts, tiles});
  made.add(spmm_weight_variants(), facts);
  decide_rows(k, tiles, made);
}

void decide_softmax(const PlannedKernel& k, Decisions& made) {
  const RowFacts facts = row_facts(k);
  made.add(long_softmax_variants(), facts);
  made.add(row_thread_variants(), facts);
}

void decide_tasks(const PlannedKernel& k, const DeviceTraits& device, Decisions& made) {
  const TaskFacts facts = task_facts(k, device.memory_bytes);
  made.add(task_cut_variants(), facts);
  made.add(task_window_variants(), facts);
  made.add(row_thread_variants(), row_facts(k));
  made.add(row_shape_variants(), row_shape_facts(k));
}

void decide_pair_sums(const PlannedKernel& k, Decisions& made) {
  const PairSumFacts facts = pair_sum_facts(k);
  made.add(pair_sum_variants(), facts);
  made.add(pair_edge_variants(), facts);
  made.add(pair_weight_variants(), facts);
  made.add(pair_row_variants(), facts);
  made.add(long_pair_variants(), facts);
}

// Adds the decisions about the products of the library that a kernel takes: how many rows it takes
// at a time, and their algorithm.
void decide_library(const PlannedKernel& k, const ChunkFacts& chunks, Decisions& made) {
  made.add(chunk_variants(), chunks);
  made.add(algorithm_variants(), algorithm_facts(k.kernel.kind));
}

void decide_typed_reduce(const PlannedKernel& k, const DeviceTraits& device, Decisions& made) {
  const TypedReduceFacts facts = typed_reduce_facts(k);
  if (facts.of_pairs) {
    const auto way = made.way<PairProductWay>(pair_product_variants(), facts);
    if (takes_library(facts, way)) decide_library(k, typed_chunks(facts, device, way), made);
    return;
  }
  const auto way = made.way<TypedReduceWay>(typed_reduce_variants(), facts);
  decide_pair_sums(k, made);
  if (takes_library(facts, way)) decide_library(k, typed_chunks(facts, device, way), made);
}

void decide_typed_rows(const PlannedKernel& k, const DeviceTraits& device, Decisions& made) {
  const TypedRowsFacts facts = typed_rows_facts(k);
  const auto way = made.way<TypedRowsWay>(typed_rows_variants(), facts);
  if (way == TypedRowsWay::tensor_cores) {
    made.add(type_matrix_variants(), facts);
  } else {
    decide_library(k, typed_chunks(facts, device, way), made);
  }
}

void decide_typed(const PlannedKernel& k, const DeviceTraits& device, Decisions& made) {
  switch (k.kernel.kind) {
    case KernelKind::typed_reduce:
      return decide_typed_reduce(k, device, made);
    case KernelKind::typed_weight_grad: {
      const TypedGradFacts facts = typed_grad_facts(k);
      const auto way = made.way<TypedGradWay>(typed_grad_variants(), facts);
      decide_pair_sums(k, made);
      return decide_library(k, typed_chunks(facts, device, way), made);
    }
    case KernelKind::typed_rows:
      return decide_typed_rows(k, device, made);
    case KernelKind::typed_rows_grad: {
      const TypedRowsGradFacts facts = typed_rows_grad_facts(k);
      const auto way = made.way<TypedRowsGradWay>(typed_rows_grad_variants(), facts);
      if (way != TypedRowsGradWay::tensor_cores) decide_library(k, typed_chunks(facts, device, way), made);
      return;
    }
    default:
      return;
  }
}

void decide_product(const PlannedKernel& k, const DeviceTraits& device, Decisions& made) {
  // A weight gradient sums over all rows at once.
  if (k.kernel.kind == KernelKind::matmul) {
    const ProductFacts facts = product_facts(k, device);
    if (made.way<ProductWay>(product_variants(), facts) == ProductWay::own_kernel) {
      made.add(product_block_variants(), facts);
      return;
    }
    made.add(product_run_variants(), facts);
  }
  made.add(algorithm_variants(), algorithm_facts(k.kernel.kind));
}

void decide_lstm(const PlannedKernel& k, const DeviceTraits& device, Decisions& made) {
  const LstmFacts facts = lstm_facts(k);
  made.add(lstm_variants(), facts);
  if (k.kernel.kind != KernelKind::lstm_grad) return;
  made.add(long_source_variants(), facts);
  decide_library(k, lstm_chunks(facts, device), made);
}

// Calls `use` with every list of variants.
template <class Use>
void each_list(const Use& use) {
  use(place_variants());
  use(product_variants());
  use(product_block_variants());
  use(product_run_variants());
  use(chunk_variants());
  use(algorithm_variants());
  use(spmm_tile_variants());
  use(spmm_source_variants());
  use(spmm_weight_variants());
  use(row_shape_variants());
  use(row_thread_variants());
  use(long_sum_variants());
  use(long_softmax_variants());
  use(task_cut_variants());
  use(task_window_variants());
  use(pair_sum_variants());
  use(pair_edge_variants());
  use(pair_weight_variants());
  use(pair_row_variants());
  use(long_pair_variants());
  use(lstm_variants());
  use(long_source_variants());
  use(typed_reduce_variants());
  use(pair_product_variants());
  use(typed_grad_variants());
  use(typed_rows_variants());
  use(type_matrix_variants());
  use(typed_rows_grad_variants());
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
  VariantChoice record{decision, chosen.name, "", chosen.limit};
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

int64_t limit_to_run(const Kernel& kernel, const char* decision, const Judged& taken) {
  for (const VariantChoice& v : kernel.variants) {
    if (v.decision == decision && v.variant == taken.name && v.limit > 0) return v.limit;
  }
  return taken.limit;
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
      sums_pairs(k.kernel) ? decide_pair_sums(k, made) : decide_sums(k, device, made);
      break;
    case KernelKind::reduce:
      decide_rows(k, {}, made);
      break;
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
      decide_softmax(k, made);
      break;
    case KernelKind::gtask:
      decide_tasks(k, device, made);
      break;
    case KernelKind::gtask_grad:
      decide_library(k, task_chunks(k), made);
      break;
    case KernelKind::matmul:
    case KernelKind::weight_grad:
      decide_product(k, device, made);
      break;
    case KernelKind::typed_reduce:
    case KernelKind::typed_weight_grad:
    case KernelKind::typed_rows:
    case KernelKind::typed_rows_grad:
      decide_typed(k, device, made);
      break;
    case KernelKind::lstm:
    case KernelKind::lstm_grad:
      decide_lstm(k, device, made);
      break;
    default:
      break;
  }
  return std::move(made.records);
}

void choose_variants(Plan& plan, const Blocks& blocks, const DeviceTraits& device) {
  for (Kernel& kernel : plan.kernels) kernel.variants = decide({plan, kernel, blocks}, device);
}

bool is_variant(std::string_view decision, std::string_view variant) {
  bool found = false;
  each_list([&](const auto& list) {
    for (const auto& v : list.variants) found |= decision == list.decision && variant == v.name;
  });
  return found;
}

const LimitKind* limit_kind(std::string_view decision, std::string_view variant) {
  const LimitKind* found = nullptr;
  each_list([&](const auto& list) {
    for (const auto& v : list.variants) {
      if (decision == list.decision && variant == v.name && v.limit != nullptr) found = &list.limit;
    }
  });
  return found;
}

std::string limit_text(const VariantChoice& choice) {
  const LimitKind* kind = choice.limit > 0 ? limit_kind(choice.decision, choice.variant) : nullptr;
  return kind == nullptr ? "" : ", " + fmt::format(fmt::runtime(kind->text), choice.limit);
}

}  // namespace nacre
