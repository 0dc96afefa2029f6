#include "nacre/train/vertex_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "nacre/base/error.h"
#include "nacre/base/file_cache.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/parallel.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/trace.h"
#include "nacre/data/reordered.h"
#include "nacre/engine/calibrate.h"
#include "nacre/engine/executor.h"
#include "nacre/plan/work.h"
#include "nacre/train/room.h"

namespace nacre {
namespace {

// These orders are compared. They are tried from left to right, and the one that gains most on most
// graphs comes first.
constexpr Reorder kOrders[] = {Reorder::rabbit, Reorder::rcm, Reorder::degree};
// Finding an order and sorting the edges by it takes this many seconds for each edge on one core.
constexpr double kSecondsOfEdge = 2e-7;
// A good order may save this share of the time in which rows that are not in the cache are
// gathered.
constexpr double kMaySave = 0.3;
// Comparing orders may take this share of the predicted time of the run.
constexpr double kBudget = 0.015;
// An order is taken only if a sum takes less than this share of its time in the given order.
constexpr double kClearly = 0.97;
// A sum that takes fewer seconds than this is run twice in each order.
constexpr double kShortSum = 0.1;

// Returns why the vertices of this run must keep their numbers; empty if they need not.
std::string obstacle(const OrderQuestion& q) {
  if (q.dfg.num_layers() == 0) return "the model does not read the graph";
  const auto in_sequence = [](const Node& node) { return node.op == Op::lstm || node.op == Op::lstm_gates; };
  if (std::any_of(q.dfg.nodes().begin(), q.dfg.nodes().end(), in_sequence))
    return "the model reads the neighbours of a node in the order of their numbers";
  if (q.run.config.load.features_file == "learned") return "learned features are stored by the nodes' numbers";
  const auto learned = [](const VertexKind& kind) { return kind.features == 0; };
  const std::vector<VertexKind>& kinds = q.run.config.model.kinds;
  if (std::any_of(kinds.begin(), kinds.end(), learned))
    return "kinds of nodes without features learn a row for each node";
  return "";
}

Array<NodeId> find_order(const Dataset& data, Reorder how) {
  const TraceSpan span("prepare", "vertex order");
  return by_kind(vertex_order(data.graph, how), data.node_offsets);
}

// Returns the bytes that are needed while an order is found and applied: those of finding it and of
// another copy of the features.
int64_t bytes_of_order(const RunData& run, Reorder how) {
  int64_t features = 0;
  for (const FeatureLeaf& leaf : run.leaves) features += leaf.values.bytes();
  return reorder_bytes(run.dataset.graph, how) - run.dataset.graph.bytes() + features;
}

// Finds the order `how` without comparing it with others. Throws UserError if there is no room to
// find it.
VertexOrder take(const OrderQuestion& q, Reorder how) {
  VertexOrder taken;
  if (how == Reorder::none) return taken;
  require_room(q.run.config, bytes_of_order(q.run, how), "the nodes in another order", "use --reorder none");
  const double start = now_seconds();
  taken.how = how;
  taken.order = find_order(q.run.dataset, how);
  taken.seconds = now_seconds() - start;
  return taken;
}

// Returns the order of the plan file that the run follows. Returns nothing if the run follows none,
// or if the plan of a resumed run cannot be read, because a new plan is made then.
std::optional<Reorder> order_in_file(const PlanRequest& request) {
  if (!request.resumed_plan.empty()) {
    try {
      return planned_order(read_file(request.resumed_plan), request.resumed_plan);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }
  if (is_plan_name(request.plan)) return std::nullopt;
  return planned_order(read_file(request.plan), request.plan);
}

// Holds the predicted seconds of a step of the plan that makes no choices, and how many of them are
// spent on gathering rows.
struct Predicted {
  double step = 0;
  double gathering = 0;  // seconds of gathered rows that do not fit the cache
  int64_t width = 0;     // columns of the rows of the kernel that gathers longest
};

Predicted predict(const OrderQuestion& q) {
  const NominalProfile& prices = q.backend->traits().gpu ? nominal_gpu() : nominal_cpu();
  const Plan plan = make_plan(without_scores(q.dfg), q.blocks, {});
  Predicted p;
  double longest = 0;
  for (const Kernel& k : plan.kernels) {
    if (k.once) continue;
    Work work = kernel_work(k, plan, q.blocks, prices.cache_bytes);
    const double all = prices.model.predict(work);
    work[Feature::far_bytes] = 0;
    const double gathering = all - prices.model.predict(work);
    p.step += all;
    p.gathering += gathering;
    if (gathering <= longest) continue;
    longest = gathering;
    p.width = plan.dfg[k.root].type.row_size();
  }
  return p;
}

// Returns a DFG that adds up the rows of every vertex's neighbours.
Dfg sum_of_neighbours(int64_t width) {
  Dfg dfg("sum of neighbours");
  const NodeRef x = dfg.add({.op = Op::input, .type = {Space::vertex(0), {width}}, .name = "x"});
  const NodeRef rows = dfg.add({.op = Op::index, .inputs = {x}, .attr = Attr::src});
  dfg.set_output("sum", dfg.add({.op = Op::index_add, .inputs = {rows}, .attr = Attr::dst}));
  return dfg;
}

// Times sums over the neighbours of a graph.
class SumTimer {
 public:
  // The rows of `x` are added up. The result is written to `arena`, which is allocated here if it
  // is null.
  SumTimer(const Graph& graph, int64_t width, const std::shared_ptr<Backend>& backend, const std::shared_ptr<void>& x,
           std::shared_ptr<void>& arena)
      : executor_(plan_on(Blocks::full(graph, 1), width), Blocks::full(graph, 1), backend->scoped()) {
    ConstantPool none;
    executor_.bind("x", x.get());
    const bool fresh = arena == nullptr;
    if (fresh) arena = backend->allocate(executor_.arena_bytes());
    executor_.allocate(arena, none);
    if (fresh || backend->needs_warm_up()) run();  // the first run touches new memory or loads code
  }
  double run() { return executor_.time_kernel(0); }

 private:
  static Plan plan_on(const Blocks& blocks, int64_t width) {
    PlanOptions options;
    options.hoist = false;  // the sum does not depend on a parameter, but it must run each time
    return make_plan(sum_of_neighbours(width), blocks, options);
  }
  Executor executor_;
};

// Compares orders for one run.
class OrderTrials {
 public:
  OrderTrials(const OrderQuestion& q, const Predicted& predicted) : q_(q), predicted_(predicted) {}

  VertexOrder run() {
    const double start = now_seconds();
    const Graph& given = q_.run.dataset.graph;
    const int64_t x_bytes = given.num_nodes() * predicted_.width * 4;
    x_ = q_.backend->allocate(x_bytes);
    q_.backend->clear(x_.get(), x_bytes);
    SumTimer timer(given, predicted_.width, q_.backend, x_, arena_);
    VertexOrder best;
    double best_share = 1;
    best.compared = {candidate(Reorder::none, 1)};
    for (const Reorder how : kOrders) {
      const double begin = now_seconds();
      Array<NodeId> order = find_order(q_.run.dataset, how);
      const double share = share_of(timer, permuted(given, order, inverse_order(order)));
      best.compared.push_back(candidate(how, share));
      if (share < std::min(best_share, kClearly)) {
        best_share = share;
        best.how = how;
        best.order = std::move(order);
      }
      // Stops if the next order would exceed the budget; it is expected to take as long as this
      // one.
      const double now = now_seconds();
      if (now - start + (now - begin) > budget()) break;
    }
    for (Candidate& c : best.compared) c.chosen = c.what == reorder_name(best.how);
    best.space = space_of(static_cast<int64_t>(best.compared.size()));
    best.seconds = now_seconds() - start;
    return best;
  }

  double budget() const { return kBudget * predicted_.step * q_.request.epochs; }

 private:
  // Returns what the comparison looked at if it timed this many orders, the given one included.
  static SpaceGroup space_of(int64_t timed) {
    SpaceGroup space{.name = "order of the nodes", .options = std::ssize(kOrders) + 1, .timed = timed};
    space.left_out["sums over neighbours took longer in this order"] = timed - 1;
    const std::string spent = fmt::format(
        "not compared, because comparing orders may take only {:.1f} % of the predicted run", 100 * kBudget);
    if (timed < space.options) space.left_out[spent] = space.options - timed;
    return space;
  }

  // Returns the time of a sum in another order as a share of its time in the given one.
  double share_of(SumTimer& given, const Graph& graph) {
    SumTimer other(graph, predicted_.width, q_.backend, x_, arena_);
    double least = given.run();
    double least_other = other.run();
    if (least < kShortSum) {
      least = std::min(least, given.run());
      least_other = std::min(least_other, other.run());
    }
    return least_other / std::max(least, 1e-9);
  }

  Candidate candidate(Reorder how, double share) const {
    const double saved = predicted_.gathering * (1 - share);
    return {.group = "node order", .what = std::string(reorder_name(how)), .predicted = predicted_.step - saved};
  }

  const OrderQuestion& q_;
  const Predicted& predicted_;
  std::shared_ptr<void> x_, arena_;
};

// Returns whether comparing orders is likely to gain more than it costs.
bool pays(const OrderQuestion& q, const Predicted& p, double budget) {
  const auto edges = static_cast<double>(q.run.dataset.graph.num_edges());
  // This estimate is ample: a trial runs one sum a few times, but p.gathering is the time of
  // several sums of a step.
  const double sums = 3 * p.gathering;
  const double cost = edges * kSecondsOfEdge + sums;
  return cost <= budget && cost < kMaySave * p.gathering * q.request.epochs;
}

bool has_room_for_trials(const OrderQuestion& q, int64_t width) {
  const int64_t rows = q.run.dataset.num_nodes() * width * 4;
  const int64_t values = q.backend->on_host() ? 3 * rows : 0;
  const bool host =
      has_room(q.run.config, bytes_of_order(q.run, Reorder::rabbit) + values + q.run.dataset.graph.bytes());
  return host && (q.backend->on_host() || 3 * rows < q.backend->available_bytes() / 2);
}

std::string cache_key(const OrderQuestion& q, int64_t width) {
  return fmt::format("node order 2 {} {} {} {:016x} width {}", kProfileVersion, machine_name(num_threads()),
                     q.backend->name(), q.run.dataset.graph.fingerprint(), width);
}

VertexOrder compare(const OrderQuestion& q) {
  const Predicted predicted = predict(q);
  OrderTrials trials(q, predicted);
  if (!pays(q, predicted, trials.budget()) || !has_room_for_trials(q, predicted.width)) return {};
  const std::string folder = q.request.use_cache ? plan_cache() : "";
  const std::string key = cache_key(q, predicted.width);
  const auto known = folder.empty() ? std::nullopt : read_cached(folder, key);
  for (const Reorder how : {Reorder::none, Reorder::degree, Reorder::rcm, Reorder::rabbit}) {
    if (known && *known == reorder_name(how)) return take(q, how);
  }
  VertexOrder found = trials.run();
  if (!folder.empty() && holds_for_longer_runs(found)) write_cached(folder, key, reorder_name(found.how));
  return found;
}

}  // namespace

bool holds_for_longer_runs(const VertexOrder& found) {
  return found.how != Reorder::none || found.space.timed == found.space.options;
}

VertexOrder choose_order(const OrderQuestion& q) {
  const std::string why_not = obstacle(q);
  const std::string& wanted = q.run.config.reorder;
  if (const auto planned = order_in_file(q.request)) {
    if (*planned == Reorder::none || why_not.empty()) return take(q, *planned);
    throw UserError("--plan", "the plan numbers the nodes in another order, but " + why_not,
                    "make a plan for these data");
  }
  if (wanted != kAutomaticOrder) {
    const Reorder how = parse_reorder(wanted);
    if (how == Reorder::none || why_not.empty()) return take(q, how);
    throw UserError("--reorder", "'" + wanted + "' cannot be used here: " + why_not, "leave it out");
  }
  const bool searches = q.request.plan == "auto" && !q.request.deterministic;
  return searches && why_not.empty() ? compare(q) : VertexOrder{};
}

}  // namespace nacre
