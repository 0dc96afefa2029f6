// Binds programs over gTasks on a GPU. A table decides the order in which edges are walked and how
// they are cut. The edges of one row in one gTask are a unit of work. Rows that several gTasks
// share are summed from their pieces in order.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/gpu/row_binding.h"
#include "nacre/engine/gpu/step_list.h"
#include "nacre/plan/variants/reductions.h"
#include "nacre/plan/variants/tasks.h"

namespace nacre {
namespace {

int64_t free_bytes(const Device& device) { return device.info().free_bytes - device.used_bytes(); }

// Holds the gTasks over which rows are walked. Each `window` consecutive gTasks are walked as one.
struct TaskWindows {
  const GTasks& tasks;
  bool by_dst;
  int64_t rows;
  int64_t window = 1;

  int64_t count() const { return (tasks.num_tasks() + window - 1) / window; }
  int64_t border(int64_t i) const { return tasks.task_ptr[std::min(i * window, tasks.num_tasks())]; }
  const Array<NodeId>& row_of() const { return by_dst ? tasks.dst : tasks.src; }
};

// Returns the number of pieces of the rows that are in several windows.
int64_t count_pieces(const TaskWindows& w) {
  // last[r] is the number of the last window that had row r, counted from 1.
  std::vector<uint32_t> pieces(w.rows, 0), last(pieces);
  for (int64_t t = 0; t < w.count(); ++t) {
    for (int64_t i = w.border(t); i < w.border(t + 1); ++i) {
      const NodeId row = w.row_of()[i];
      pieces[row] += last[row] != static_cast<uint32_t>(t + 1);
      last[row] = static_cast<uint32_t>(t + 1);
    }
  }
  int64_t sum = 0;
  for (const uint32_t n : pieces) sum += n > 1 ? n : 0;
  return sum;
}

// Returns the smallest power of 4 such that windows of this many gTasks cut the rows that are in
// several windows into at most `most_pieces` pieces.
int64_t narrowest_window(const TaskWindows& w, int64_t most_pieces) {
  std::vector<int64_t> windows = {1};
  while (windows.back() < w.tasks.num_tasks()) windows.push_back(4 * windows.back());
  std::vector<int64_t> pieces(windows.size(), 0);
  // The largest window has all gTasks and cuts no row, so its pieces need not be counted.
  parallel_tasks(static_cast<int64_t>(windows.size()) - 1, [&](int64_t i) {
    TaskWindows mine = w;
    mine.window = windows[i];
    pieces[i] = count_pieces(mine);
  });
  size_t chosen = 0;
  while (pieces[chosen] > most_pieces) ++chosen;
  return windows[chosen];
}

// Holds the runs of equal rows in the windows, and the edges in the order of these runs: for each
// edge the vertex at its other end, and its number.
struct TaskWalk {
  std::vector<uint32_t> col, edge;
  RowCut cut;
};

// Distributes all edges to their windows, writes them to `walk`, and returns the row of each.
// Within a window the edges are ordered by row, then by number, so that sums and maxima meet the
// edges of a row in the same order under any table.
std::vector<uint32_t> deal_edges(const TaskWindows& w, TaskWalk& walk) {
  const Graph& graph = w.tasks.graph;
  const auto edges = static_cast<size_t>(w.tasks.num_edges());
  std::vector<uint32_t> window_of(edges), row(edges);
  std::vector<int64_t> next(w.count());
  parallel_for(w.count(), std::max<int64_t>(1, w.count() / 1024), [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e; ++t) {
      next[t] = w.border(t);
      for (int64_t i = w.border(t); i < w.border(t + 1); ++i) {
        window_of[w.tasks.edge_at(i)] = static_cast<uint32_t>(t);
      }
    }
  });
  walk.col.resize(edges);
  walk.edge.resize(edges);
  const auto deal = [&](int64_t r, int64_t edge, NodeId other) {
    const auto at = static_cast<size_t>(next[window_of[edge]]++);
    row[at] = static_cast<uint32_t>(r);
    walk.col[at] = other;
    walk.edge[at] = static_cast<uint32_t>(edge);
  };
  if (w.by_dst) {
    for (int64_t r = 0; r < w.rows; ++r) {
      for (int64_t e = graph.row_ptr()[r]; e < graph.row_ptr()[r + 1]; ++e) deal(r, e, graph.col_idx()[e]);
    }
  } else {
    const OutCsc& out = graph.out();
    for (int64_t r = 0; r < w.rows; ++r) {
      for (int64_t i = out.row_ptr[r]; i < out.row_ptr[r + 1]; ++i) deal(r, out.edge_id[i], out.dst[i]);
    }
  }
  return row;
}

TaskWalk walk_tasks(const TaskWindows& windows) {
  TaskWalk w;
  const std::vector<uint32_t> row = deal_edges(windows, w);
  const int64_t rows = windows.rows;
  std::vector<int32_t> pieces(rows, 0), length(static_cast<size_t>(rows), 0);
  std::vector<cuda::reduction::Segment>& segments = w.cut.segments;
  for (int64_t t = 0; t < windows.count(); ++t) {
    const int64_t end = windows.border(t + 1);
    for (int64_t i = windows.border(t); i < end;) {
      const uint32_t r = row[i];
      int64_t e = i;
      while (e < end && row[e] == r) ++e;
      segments.push_back({r, pieces[r]++, -1, 0, i, e});
      length[r] += static_cast<int32_t>(e - i);
      i = e;
    }
  }
  // The result of a row in one piece is written directly. The partial results of the pieces of
  // another row get consecutive places.
  std::vector<int32_t> split(rows, -1);
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t n = pieces[r];
    if (n == 0) segments.push_back({static_cast<uint32_t>(r), -1, -1, 0, 0, 0});
    if (n < 2) continue;
    split[r] = static_cast<int32_t>(w.cut.split.size());
    w.cut.split.push_back({static_cast<int32_t>(w.cut.partials), n, length[r], 0});
    w.cut.partials += n;
  }
  for (cuda::reduction::Segment& s : segments) {
    s.split = split[s.row];
    s.partial = s.split < 0 ? -1 : w.cut.split[s.split].first + s.partial;
  }
  return w;
}

const ReduceRows& task_rows(const GpuKernel& g) {
  const Graph& graph = g.graph();
  const bool by_dst = g.kernel.direction == Direction::by_dst;
  // A kernel is asked for its needs first and bound later, and both must take the same variant. So
  // the number of free bytes, which may change in between, is read once and kept.
  const std::string about = fmt::format("free for gtasks {}", static_cast<const void*>(graph.col_idx().data()));
  const auto& free = g.context.once<int64_t>(about, [&] { return free_bytes(g.context.device()); });
  const TaskFacts facts = task_facts(g.planned(), free);
  const auto cut = g.variant<TaskCut>(task_cut_variants(), facts);
  const auto tasks = g.context.host_views().tasks(graph, g.kernel.table, cut == TaskCut::on_device);
  const auto together = g.take<TaskWindow>(task_window_variants(), facts);
  const int64_t most_pieces = together.way == TaskWindow::of_few_pieces ? together.limit : INT64_MAX;
  const std::string key = fmt::format("gtasks {} {} {}", static_cast<const void*>(tasks.get()), by_dst, most_pieces);
  return g.context.once<ReduceRows>(key, [&] {
    const int64_t rows = by_dst ? graph.num_dst() : graph.num_src();
    TaskWindows windows{*tasks, by_dst, rows};
    windows.window = narrowest_window(windows, most_pieces);
    const TaskWalk walk = walk_tasks(windows);
    ReduceRows r;
    place_cut(g.context, key, walk.cut, r);
    r.col = g.context.made("columns " + key, walk.col);
    r.edge_id = g.context.made("edges " + key, walk.edge);
    return r;
  });
}

Reduction task_reduction(const GpuKernel& g) {
  cuda::ReduceSpec spec = reduce_spec(g.planned(), g.kernel.program, g.kernel.value);
  spec.side.edge_ids = true;
  spec.side.mean_degree = mean_row(g);
  return {g, spec, task_rows(g), {}};
}

// ---- Weight gradients. Both factors of a chunk are written to memory; then a product adds to the
// result.
struct GradChunks {
  int64_t k = 0, n = 0;
  int64_t rows = 0;  // rows of a chunk
  bool typed = false;
};

GradChunks grad_chunks(const GpuKernel& g) {
  GradChunks c;
  c.typed = g.node(g.kernel.root).op == Op::typed_weight_grad;
  c.k = g.kernel.program.widths[g.kernel.value];
  c.n = g.kernel.program.widths[g.kernel.second_value];
  c.rows = std::max<int64_t>(1, rows_of_chunk(g, task_chunks(g.planned())));
  return c;
}

GemmShape grad_shape(const GpuKernel& g, const GradChunks& c, int64_t rows, bool add) {
  GemmShape s;
  s.m = c.k;
  s.n = c.n;
  s.k = rows;
  s.transpose_a = true;
  s.lda = c.k;
  s.ldb = c.n;
  s.ldc = c.n;
  s.beta = add ? 1.0F : 0.0F;
  const GemmType type = g.context.options().precision;
  s.type = type == GemmType::bf16 ? GemmType::tf32 : type;  // both factors are f32
  return s;
}

int prepare(const GpuKernel& g, const ProductTiming& timing, const GemmShape& shape) {
  return g.context.prepare_gemm(shape, timing.among(shape));
}

// Calls `f` for every chunk with its type, its first entry, its length, and whether the product
// adds to an earlier result.
template <class F>
void each_chunk(const GpuKernel& g, const GradChunks& c, const F& chunk) {
  const auto by_type = g.context.host_views().by_type(g.graph(), SpaceKind::edge);
  std::vector<int64_t> begin(by_type->num_types, 0), end(begin);
  for (const auto& run : by_type->runs) {
    int64_t& b = begin[run.type];
    int64_t& e = end[run.type];
    if (e == 0) b = run.begin;
    e = run.end;
  }
  if (!c.typed) {
    begin = {0};
    end = {g.graph().num_edges()};
  }
  for (size_t t = 0; t < begin.size(); ++t) {
    for (int64_t b = begin[t]; b < end[t]; b += c.rows)
      chunk(static_cast<int>(t), b, std::min(c.rows, end[t] - b), b > begin[t]);
  }
}

KernelNeeds needs(const GpuKernel& g) {
  KernelNeeds n;
  if (g.kernel.kind == KernelKind::gtask) {
    n.workspace_bytes = reduce_workspace(task_reduction(g));
    return n;
  }
  const GradChunks c = grad_chunks(g);
  const ProductTiming timing = product_timing(g);
  int64_t scratch = 0;
  each_chunk(g, c, [&](int, int64_t, int64_t rows, bool add) {
    scratch = std::max(scratch, g.context.device().gemm_workspace(prepare(g, timing, grad_shape(g, c, rows, add))));
  });
  n.workspace_bytes = (c.rows * (c.k + c.n) * 4 + 511) / 256 * 256 + scratch;
  return n;
}

Step bind_grad(const GpuKernel& g, void* workspace) {
  const GradChunks c = grad_chunks(g);
  const ProductTiming timing = product_timing(g);
  Device& device = g.context.device();
  auto* x = static_cast<float*>(workspace);
  float* y = x + (c.rows * c.k + 63) / 64 * 64;
  void* scratch = static_cast<char*>(workspace) + (c.rows * (c.k + c.n) * 4 + 511) / 256 * 256;
  // This is the program of the kernel, to which stores of both factors are appended.
  RowProgram program = g.kernel.program;
  const auto operands = static_cast<int>(program.operands.size());
  program.operands.insert(program.operands.end(), {g.kernel.root, g.kernel.root});
  for (const auto& [value, operand] :
       {std::pair(g.kernel.value, operands), std::pair(g.kernel.second_value, operands + 1)}) {
    Micro store;
    store.op = MicroOp::store;
    store.a = value;
    store.operand = operand;
    program.code.push_back(store);
  }
  const cuda::RowSource source = cuda::map_listed_edges_source(program);
  const auto by_type = g.context.host_views().by_type(g.graph(), SpaceKind::edge);
  std::vector<uint32_t> own;
  const uint32_t* order = by_type->order;
  if (order == nullptr || !c.typed) {
    own.resize(g.graph().num_edges());
    std::iota(own.begin(), own.end(), 0U);
    order = nullptr;
  }
  const uint32_t* list = order != nullptr
                             ? static_cast<const uint32_t*>(g.context.resident(order, g.graph().num_edges() * 4))
                             : g.context.made(fmt::format("edges 0 … {}", own.size()), own);
  const EdgeEnds edges = edge_ends(g);
  void* const stored[] = {x, y};
  Step all;
  auto* out = static_cast<float*>(g.pointer(g.kernel.root));
  const int64_t bytes = g.rows(g.kernel.root) * g.width(g.kernel.root) * 4;
  // The results of types without edges are 0, so the memory of the result is cleared first.
  all = [&device, out, bytes] { device.fill(out, 0, bytes); };
  each_chunk(g, c, [&](int type, int64_t first, int64_t rows, bool add) {
    cuda::LaunchParams params(cuda::MapListedEdgesParams{.count = rows,
                                                         .order = list,
                                                         .first = first,
                                                         .col = edges.src,
                                                         .edge_dst = edges.dst,
                                                         .edge_type = edges.type,
                                                         .step = g.context.step()});
    params.operands(operands_of(g, g.kernel.program)).operands(stored);
    all = then(all, g.context.launch(source.source, blocks_for(rows, source), params));
    const int handle = prepare(g, timing, grad_shape(g, c, rows, add));
    const GemmArgs product{x, y, out + (c.typed ? type * c.k * c.n : 0), nullptr};
    all = then(all, [&device, handle, product, scratch] { device.run_gemm(handle, product, scratch); });
  });
  return all;
}

Step bind(const GpuKernel& g, void* workspace) {
  if (g.kernel.kind == KernelKind::gtask_grad) return bind_grad(g, workspace);
  return bind_reduce(task_reduction(g), workspace);
}

}  // namespace

const GpuFamily kGpuTasks = {needs, bind};

}  // namespace nacre
