#include "nacre/plan/early_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/plan/operands.h"
#include "nacre/plan/overlap.h"
#include "nacre/plan/variants/place.h"
#include "nacre/plan/work.h"

namespace nacre {
namespace {

bool walks_edges(KernelKind kind) {
  return kind == KernelKind::spmm || kind == KernelKind::reduce || kind == KernelKind::softmax ||
         kind == KernelKind::softmax_grad || kind == KernelKind::map_edges;
}

// Returns whether each row of the kernel's result depends on no other row of the result.
bool has_free_rows(const Kernel& k) {
  if (k.kind == KernelKind::map || k.kind == KernelKind::matmul) return true;
  return walks_edges(k.kind) && k.direction == Direction::by_dst;
}

// Finds out which rows of a kernel that waits for communication can be computed early.
class Waiting {
 public:
  Waiting(const Plan& plan, const Blocks& blocks, const Kernel& kernel, std::vector<const Kernel*> calls)
      : plan_(plan), dfg_(plan.dfg), blocks_(blocks), k_(kernel), calls_(std::move(calls)) {}

  // Returns why no row can be computed before the communication has ended; empty if some can.
  std::string decline(bool gpu) const {
    if (!has_free_rows(k_))
      return fmt::format("a kernel of the kind {} computes all rows at once", kernel_name(k_.kind));
    if (gpu) {
      if (k_.kind == KernelKind::matmul) return "products of fewer rows may be rounded in another way on a GPU";
      if (runs_on_host(k_, dfg_)) return "the kernel runs on the host";
      const auto copied = [](const VariantChoice& v) { return v.variant == "tiles of a copy"; };
      if (std::any_of(k_.variants.begin(), k_.variants.end(), copied))
        return "all rows are copied before they are summed";
    }
    const int layer = dfg_[k_.root].type.space.layer, whole = blocks_.views().whole;
    if (whole >= 0 && (layer == whole || layer == whole + 1)) return "the kernel computes rows of all ranks";
    for (const Kernel* call : calls_) {
      const Op op = dfg_[call->root].op;
      if (op != Op::exchange && op != Op::exchange_add)
        return fmt::format("all rows need the result of {}", op_info(op).name);
      if (!reads_by_row(call->root)) return "each row needs rows of other nodes, which still travel";
    }
    if (rows() == 0) return "every row needs rows of other ranks";
    return "";
  }

  int64_t rows() const {
    int64_t least = walked_rows(plan_, k_, blocks_);
    for (const Kernel* call : calls_) least = std::min(least, complete_rows(call->root));
    return least;
  }

  // Returns the share of the kernel's work that its early rows are.
  double share() const {
    const int64_t early = rows();
    if (!walks_edges(k_.kind)) return ratio(early, walked_rows(plan_, k_, blocks_));
    const Graph& graph = blocks_.layer(walked_layer(dfg_, k_));
    // The work of a kernel that walks edges is counted as its rows plus their edges, because a row
    // and an edge cost about the same time.
    return ratio(graph.row_ptr()[early] + early, graph.num_edges() + graph.num_dst());
  }

 private:
  static double ratio(int64_t part, int64_t all) {
    return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
  }

  bool over_halo() const { return !walks_edges(k_.kind) && dfg_[k_.root].type.space.kind == SpaceKind::halo; }

  // Returns how many rows of the kernel, counted from the first, need nothing that still travels.
  int64_t complete_rows(NodeRef result) const {
    const bool adds = dfg_[result].op == Op::exchange_add;
    const Space space = dfg_[result].type.space;
    if (over_halo()) return adds ? 0 : blocks_.layer(space.layer).num_dst();
    // Before an exchange ends, the rows of inside vertices are complete. An exchange_add changes
    // the rows that an exchange sends, so before it ends, only those of alone vertices are
    // complete. In a reversed block, the two cases change places.
    const EarlyRows early = blocks_.links()->early_rows();
    return adds == blocks_.is_reversed(space) ? early.inside : early.alone;
  }

  // Returns whether the kernel reads the result only at the row that it computes or, if the result
  // is rows of a halo, at the sources of the edges of that row.
  bool reads_by_row(NodeRef result) const {
    const Space space = dfg_[result].type.space;
    if (!space.on_vertices()) return false;
    bool gathered = space.kind == SpaceKind::halo && walks_edges(k_.kind);
    if (gathered || over_halo()) {
      const Space walked = walks_edges(k_.kind) ? Space::halo(walked_layer(dfg_, k_)) : dfg_[k_.root].type.space;
      gathered = gathered && blocks_.is_reversed(walked) == blocks_.is_reversed(space);
      if (over_halo() && blocks_.is_reversed(walked) != blocks_.is_reversed(space)) return false;
    }
    const auto is_result = [&](NodeRef i) { return i >= 0 && plan_.alias[i] == result; };
    const auto used = std::count_if(k_.args.begin(), k_.args.end(), is_result);
    const bool summed = k_.kind == KernelKind::spmm && gathered && is_result(operands<SpmmOperands>(k_).x);
    const bool multiplied = k_.kind == KernelKind::matmul && is_result(operands<ProductOperands>(k_).x);
    if (used > (summed || multiplied ? 1 : 0)) return false;
    return reads_by_row(k_.program, result, gathered) && reads_by_row(k_.tail, result, false);
  }

  static bool reads_by_row(const RowProgram& program, NodeRef result, bool gathered) {
    return std::all_of(program.code.begin(), program.code.end(), [&](const Micro& m) {
      if (m.operand < 0 || program.operands[m.operand] != result) return true;
      return m.op == MicroOp::load || m.op == MicroOp::load_dst || (m.op == MicroOp::load_src && gathered);
    });
  }

  const Plan& plan_;
  const Dfg& dfg_;
  const Blocks& blocks_;
  const Kernel& k_;
  std::vector<const Kernel*> calls_;
};

// Returns how long the bytes of communication kernels travel.
double travel_seconds(const Plan& plan, const Blocks& blocks, const std::vector<const Kernel*>& calls,
                      const NominalProfile& prices) {
  double seconds = 0;
  for (const Kernel* call : calls) {
    Work work = kernel_work(*call, plan, blocks, prices.cache_bytes);
    seconds += prices.model.predict(work);
    work[Feature::far_bytes] = 0;
    seconds -= prices.model.predict(work);
  }
  return seconds;
}

}  // namespace

int64_t walked_rows(const Plan& plan, const Kernel& kernel, const Blocks& blocks) {
  if (walks_edges(kernel.kind)) return blocks.layer(walked_layer(plan.dfg, kernel)).num_dst();
  return blocks.rows(plan.dfg[kernel.root].type.space);
}

void choose_early_rows(Plan& plan, const Blocks& blocks, const NominalProfile* prices, bool gpu) {
  const std::vector<size_t> ends = ends_of_kernels(plan, true);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    Kernel& kernel = plan.kernels[k];
    kernel.early = {};
    std::vector<const Kernel*> calls;
    for (size_t c = 0; c < k; ++c) {
      const Kernel& call = plan.kernels[c];
      if (call.kind == KernelKind::exchange && !call.once && ends[c] == k) calls.push_back(&call);
    }
    if (calls.empty() || kernel.kind == KernelKind::exchange || kernel.once) continue;
    const Waiting waiting(plan, blocks, kernel, calls);
    EarlyPart early{0, 0, waiting.decline(gpu)};
    if (early.why.empty()) early = {waiting.rows(), waiting.share(), ""};
    if (early.rows > 0 && prices != nullptr) {
      const double all = prices->model.predict(kernel_work(kernel, plan, blocks, prices->cache_bytes));
      const double hidden = std::min(travel_seconds(plan, blocks, calls, *prices), early.share * all);
      const double launch = launch_seconds(prices->model, kernel);
      if (hidden <= launch) {
        early = {0, 0,
                 fmt::format("{} of communication could be hidden behind {}, but another start of the kernel costs {}",
                             human_seconds(hidden), counted(waiting.rows(), "row"), human_seconds(launch))};
      }
    }
    kernel.early = std::move(early);
  }
}

double launch_seconds(const CostModel& model, const Kernel& kernel) {
  Work work;
  work.kind = kernel_name(kernel.kind);
  work[Feature::constant] = 1;
  return model.predict(work);
}

std::string early_rows_text(const Kernel& kernel) {
  const EarlyPart& early = kernel.early;
  if (early.rows > 0) {
    return fmt::format("the first {} ({:.0f} % of the work) while rows of other ranks travel",
                       counted(early.rows, "row"), 100 * early.share);
  }
  return early.why.empty() ? "" : "all rows wait for other ranks: " + early.why;
}

}  // namespace nacre
