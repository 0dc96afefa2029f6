#include "nacre/engine/step_forecast.h"

#include <algorithm>
#include <map>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/cluster/sums.h"
#include "nacre/plan/early_rows.h"
#include "nacre/plan/narrow.h"
#include "nacre/plan/overlap.h"

namespace nacre {
namespace {

constexpr double kValueBytes = 4, kNarrowBytes = 2;

bool communicates(const Kernel& kernel) { return kernel.kind == KernelKind::exchange && !kernel.once; }

// Sets the numbers of a graph's edges and pairs in `rows`.
template <class Rows>
void count_edges(const Graph& graph, Rows& rows) {
  rows.edges = static_cast<double>(graph.num_edges());
  if (!graph.typed()) return;
  rows.pairs_src = static_cast<double>(graph.count_pairs(End::src));
  rows.pairs_dst = static_cast<double>(graph.count_pairs(End::dst));
}

template <class Rows>
void count_block(const LocalGraph& local, Rows& rows) {
  rows.own = static_cast<double>(local.num_own());
  rows.halo = static_cast<double>(local.num_halo());
  for (const PeerRows& peer : local.peers) {
    const auto sent = static_cast<double>(peer.send.size());
    rows.sent += sent;
    rows.peers.push_back({peer.part, static_cast<double>(peer.halo_end - peer.halo_begin), sent});
  }
  count_edges(local.graph, rows);
}

// Returns the bytes of rows of the halo, and of rows that are sent for the halos of others. Rows
// travel as bf16 if one of the two ranks stores them so.
template <class Rows>
std::pair<double, double> bytes_of_rows(const Plan& plan, const Kernel& kernel, const Rows& rows) {
  const auto width = static_cast<double>(plan.dfg[kernel.root].type.row_size());
  const double stored = stored_bytes(plan, kernel);
  if (kernel.narrow_ranks.empty()) return {rows.halo * width * stored, rows.sent * width * stored};
  double halo = 0, sent = 0;
  for (const PeerCount& peer : rows.peers) {
    const double bytes = width * (kernel.narrow_ranks[peer.rank] != 0 ? kNarrowBytes : stored);
    halo += peer.halo * bytes;
    sent += peer.sent * bytes;
  }
  return {halo, sent};
}

// Sets the bytes of a communication that moves rows or columns.
void count_rows(const Plan& plan, const Kernel& kernel, const RankRows& rows, StepCall& call) {
  const Node& root = plan.dfg[kernel.root];
  const auto width = static_cast<double>(root.type.row_size());
  const auto [halo, sent] = rows.reversed.has(root.type.space) ? bytes_of_rows(plan, kernel, rows.reversed)
                                                               : bytes_of_rows(plan, kernel, rows);
  switch (root.op) {
    case Op::exchange:
      call.received = halo;
      call.sent = sent;
      break;
    case Op::exchange_add:
      call.received = sent;
      call.sent = halo;
      break;
    case Op::to_columns:
    case Op::to_rows: {
      // The rank has `own` columns of the rows of all vertices, and all columns of the rows of its
      // own vertices.
      const bool to_columns = root.op == Op::to_columns;
      const auto own = static_cast<double>(root.ints[2]);
      const double all = to_columns ? static_cast<double>(plan.dfg[root.inputs[0]].type.row_size()) : width;
      const double columns = (rows.whole.own - rows.own) * own * kValueBytes;
      const double others = rows.own * (all - own) * kValueBytes;
      call.received = to_columns ? columns : others;
      call.sent = to_columns ? others : columns;
      break;
    }
    default:
      NACRE_CHECK(false, "the operation must be a communication of rows or columns");
  }
}

}  // namespace

double RankRows::operator()(Space space) const {
  const View* view = whole.has(space) ? &whole : reversed.has(space) ? &reversed : nullptr;
  switch (space.kind) {
    case SpaceKind::param:
      return 1;
    case SpaceKind::type:
      return types;
    case SpaceKind::edge:
      return view != nullptr ? view->edges : edges;
    case SpaceKind::pair_src:
      return view != nullptr ? view->pairs_src : pairs_src;
    case SpaceKind::pair_dst:
      return view != nullptr ? view->pairs_dst : pairs_dst;
    case SpaceKind::rows:
      return static_cast<double>(space.count);
    case SpaceKind::kind:  // ranks refuse models with kinds of vertices (distribute.h)
      return 0;
    case SpaceKind::halo:
      return view != nullptr ? view->own + view->halo : own + halo;
    case SpaceKind::vertex:
      return view != nullptr ? view->own : own;
  }
  return 0;
}

RankRows rows_of(const LocalGraph& local) {
  RankRows rows;
  rows.types = local.graph.num_edge_types();
  count_block(local, rows);
  return rows;
}

RankRows rows_of(const RankPart& part) {
  RankRows rows = rows_of(part.local);
  const RankViews views = part.blocks.views();
  if (views.whole >= 0) {
    const Graph& whole = part.blocks.layer(views.whole);
    rows.whole.layer = views.whole;
    rows.whole.own = static_cast<double>(whole.num_nodes());
    count_edges(whole, rows.whole);
  }
  if (views.reversed >= 0) {
    NACRE_CHECK(part.reversed != nullptr, "a rank whose blocks have reversed edges must give its reversed block");
    rows.reversed.layer = views.reversed;
    count_block(*part.reversed, rows.reversed);
  }
  return rows;
}

std::vector<StepCall> step_calls(const Plan& plan, const RankRows& rows, int rank, int ranks) {
  std::vector<StepCall> calls;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel& kernel = plan.kernels[k];
    if (!communicates(kernel)) continue;
    const Node& root = plan.dfg[kernel.root];
    StepCall call{k, root.op};
    if (root.op == Op::all_reduce) {
      const auto count = static_cast<int64_t>(rows(root.type.space) * static_cast<double>(root.type.row_size()));
      call.sent = static_cast<double>(sum_bytes_sent(SumType::f32, count, rank, ranks));
      call.received = static_cast<double>(sum_bytes_received(SumType::f32, count, rank, ranks));
    } else {
      count_rows(plan, kernel, rows, call);
    }
    calls.push_back(call);
  }
  return calls;
}

double received_row_bytes(const std::vector<StepCall>& calls) {
  double bytes = 0;
  for (const StepCall& call : calls) bytes += call.op == Op::all_reduce ? 0 : call.received;
  return bytes;
}

int64_t received_bytes(const Plan& plan, const RankPart& part) {
  return static_cast<int64_t>(received_row_bytes(step_calls(plan, rows_of(part), 0, 1)));
}

RankStep forecast_rank(const Plan& plan, RowsOf rows, const CostModel& model, int64_t cache_bytes, bool overlap) {
  using Kind = StepAction::Kind;
  using What = PlannedAction::What;
  RankStep step;
  std::map<size_t, int> call_of;  // the number of a communication kernel's call
  for (const auto& [k, what] : step_actions(plan, overlap)) {
    const Kernel& kernel = plan.kernels[k];
    if (what == What::finish) {
      step.actions.push_back({Kind::finish, call_of.at(k), 0});
      continue;
    }
    const double seconds = model.predict(kernel_work(kernel, plan, rows, cache_bytes));
    if (what == What::start) {
      const int call = call_of[k] = static_cast<int>(step.moving.size());
      step.actions.push_back({Kind::start, call, 0});
      step.moving.push_back(seconds);
      continue;
    }
    // Each part of a kernel with early rows is started by itself.
    const double launch = what == What::run ? 0 : launch_seconds(model, kernel);
    const double share = what == What::early ? kernel.early.share : 1 - kernel.early.share;
    step.actions.push_back(
        {Kind::compute, -1, what == What::run ? seconds : launch + share * std::max(0.0, seconds - launch)});
  }
  return step;
}

}  // namespace nacre
