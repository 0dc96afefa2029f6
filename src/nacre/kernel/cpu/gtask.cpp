#include "nacre/kernel/cpu/gtask.h"

#include <algorithm>
#include <optional>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gtask_tiles.h"
#include "nacre/kernel/cpu/gtask_view.h"

namespace nacre::cpu {
namespace {

constexpr int64_t kSumsPerTask = 64;
// Number of runs whose targets are fetched ahead, because rows summed in place can be anywhere in
// memory.
constexpr int64_t kFetchRuns = 3;

struct Workspace {
  float* packed = nullptr;  // matrices packed for the GEMM
  float* partials = nullptr;
  int32_t* partial_argmax = nullptr;
  float* rows = nullptr;  // the result, if only `post` reads it
};

struct Shape {
  const GTaskView& view;
  const RowProgram& program;
  int value;
  ReduceOp reduce;
  bool stored;
};

Workspace carve(const Shape& shape, Carve& memory) {
  Workspace ws;
  const int64_t packed = gtask_packed_floats(shape.view, shape.program);
  if (packed > 0) ws.packed = memory.take(packed);
  if (shape.value < 0) return ws;
  const int64_t width = shape.program.widths[shape.value];
  ws.partials = memory.take(shape.view.max_partials * width);
  if (shape.reduce == ReduceOp::max) {
    ws.partial_argmax = reinterpret_cast<int32_t*>(memory.take(shape.view.max_partials * width));
  }
  if (!shape.stored) ws.rows = memory.take(shape.view.rows * width);
  return ws;
}

// A row of maxima over rows that come in any order. Of equal values, the one with the smallest
// position wins, as if the rows came in the order of the in-CSR.
struct MaxRow {
  float* best;
  int32_t* argmax;

  void set(const float* value, const int32_t* where, int64_t width) const {
    std::copy_n(value, width, best);
    std::copy_n(where, width, argmax);
  }
  void update(int64_t i, float value, int32_t where) const {
    if (value > best[i] || (value == best[i] && where < argmax[i])) {
      best[i] = value;
      argmax[i] = where;
    }
  }
};

class GTaskRunner {
 public:
  explicit GTaskRunner(const GTaskArgs& args)
      : args_(args),
        view_(*args.view),
        width_(args.value < 0 ? 0 : args.program.program->widths[args.value]),
        segments_(segment_functions()),
        plan_(make_tile_plan(args.program, options(args))) {
    NACRE_CHECK(args.argmax == nullptr || args.reduce == ReduceOp::max, "only a maximum has an argmax");
    NACRE_CHECK(args.value >= 0 || args.post.empty(), "a post program needs a reduction before it");
    Carve memory(static_cast<float*>(args.workspace));
    space_ = carve({view_, *args.program.program, args.value, args.reduce, args.out != nullptr}, memory);
    NACRE_CHECK(memory.used() == 0 || args.workspace != nullptr, "a kernel over gTasks was given no workspace");
    out_ = args.out != nullptr ? args.out : space_.rows;
    if (!args.post.empty()) {
      post_ = make_tile_plan(args.post);
      const int64_t root = root_width(*args.post.program);
      NACRE_CHECK(root == 0 || root == width_, "the post program reads rows of another width than the kernel computes");
    }
    floats_ = gtask_scratch_floats(*args.program.program, args.post.empty() ? nullptr : args.post.program);
  }

  void run() {
    if (space_.packed != nullptr) pack_matrices(plan_, view_.num_types, space_.packed);
    if (args_.value < 0) {
      parallel_tasks(static_cast<int64_t>(view_.units.size()), [&](int64_t u) { run_unit(u); });
      return;
    }
    for (const GTaskView::Window& window : view_.windows) {
      parallel_tasks(window.unit_end - window.unit_begin, [&](int64_t u) { run_unit(window.unit_begin + u); });
      parallel_for(window.sum_end - window.sum_begin, kSumsPerTask, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) combine(window.sum_begin + i);
      });
    }
    const auto rest = static_cast<int64_t>(view_.ranges.size()) - view_.rest_begin;
    parallel_tasks(
        rest, [&](int64_t i) { finish(view_.ranges[view_.rest_begin + i], thread_scratch(args_.scratch, floats_)); });
  }

 private:
  static PlanOptions options(const GTaskArgs& args) {
    PlanOptions options;
    options.keep = args.value;
    options.consecutive = args.view->edge.empty();
    return options;
  }

  float* row(int64_t r) const { return out_ + r * width_; }
  int32_t* argmax_row(int64_t r) const { return args_.argmax == nullptr ? nullptr : args_.argmax + r * width_; }
  float* partial(int64_t number) const { return space_.partials + number * width_; }
  int32_t* partial_argmax(int64_t number) const {
    return args_.argmax == nullptr ? nullptr : space_.partial_argmax + number * width_;
  }

  void run_unit(int64_t u) const {
    const GTaskView::Unit& unit = view_.units[u];
    float* scratch = thread_scratch(args_.scratch, floats_);
    TileRunner runner(plan_, scratch);
    int64_t run = unit.run_begin;
    for_gtask_tiles(view_, unit, runner, [&](const Tile& tile) {
      runner.run(tile);
      if (args_.value >= 0) run = reduce_tile(runner, tile, unit, run);
    });
    for (int64_t i = unit.range_begin; i < unit.range_end; ++i) finish(view_.ranges[i], scratch);
  }

  // Adds the rows of a tile to the targets of its runs; `run` is the run that the tile's first row
  // belongs to. Returns the run that the next tile starts with.
  int64_t reduce_tile(const TileRunner& runner, const Tile& tile, const GTaskView::Unit& unit, int64_t run) const {
    // `first` is the tile's first entry, counted from the unit's first.
    const int64_t first = tile.first - view_.entry_begin(unit);
    for (int64_t at = 0; at < tile.rows;) {
      const GTaskView::Run& target = view_.runs[run];
      const bool last = run + 1 == unit.run_end;
      fetch(run + kFetchRuns, unit);
      const int64_t run_end = last ? first + tile.rows : static_cast<int64_t>(view_.runs[run + 1].begin);
      RowSegment s;
      s.value = &runner.value(args_.value);
      s.begin = at;
      s.end = std::min(tile.rows, run_end - first);
      s.fresh = target.fresh != 0 && target.begin == first + at;
      s.sum = target.partial != 0 ? partial(unit.first_partial + target.target) : row(target.target);
      s.argmax = target.partial != 0 ? partial_argmax(unit.first_partial + target.target) : argmax_row(target.target);
      s.first_position = tile.first;
      s.position = tile.position;
      s.fetch_end = tile.rows;
      reduce(s);
      at = s.end;
      if (!last && run_end == first + at) ++run;
    }
    return run;
  }

  void fetch(int64_t run, const GTaskView::Unit& unit) const {
    if (run >= unit.run_end || view_.runs[run].partial != 0) return;
    const float* target = row(view_.runs[run].target);
    for (int64_t i = 0; i < width_; i += 16) __builtin_prefetch(target + i, 1, 3);
  }

  void reduce(const RowSegment& s) const {
    if (args_.reduce != ReduceOp::max) {
      segments_.add(s);
    } else if (s.argmax == nullptr || view_.ascending) {
      segments_.max(s);
    } else {
      max_in_any_order(s);
    }
  }

  void max_in_any_order(const RowSegment& s) const {
    const MaxRow to = {s.sum, s.argmax};
    for (int64_t r = s.begin; r < s.end; ++r) {
      const float* value = s.value->row(r);
      const auto where = static_cast<int32_t>(s.position != nullptr ? s.position[r] : s.first_position + r);
      if (s.fresh && r == s.begin) {
        std::copy_n(value, width_, to.best);
        std::fill_n(to.argmax, width_, where);
        continue;
      }
      for (int64_t i = 0; i < width_; ++i) to.update(i, value[i], where);
    }
  }

  // Adds up the partial rows of one row of the window.
  void combine(int64_t sum) const {
    const int64_t r = view_.sum_row[sum];
    const int64_t begin = view_.sum_ptr[sum], end = view_.sum_ptr[sum + 1];
    const bool fresh = view_.sum_fresh[sum] != 0;
    if (args_.argmax != nullptr) return combine_argmax(r, begin, end, fresh);
    const Rows partials = {space_.partials, view_.sum_partial.data() + begin, width_, width_};
    RowSegment s;
    s.value = &partials;
    s.end = end - begin;
    s.sum = row(r);
    s.fresh = fresh;
    (args_.reduce == ReduceOp::max ? segments_.max : segments_.add)(s);
  }

  void combine_argmax(int64_t r, int64_t begin, int64_t end, bool fresh) const {
    const MaxRow to = {row(r), argmax_row(r)};
    for (int64_t k = begin; k < end; ++k) {
      const float* value = partial(view_.sum_partial[k]);
      const int32_t* where = partial_argmax(view_.sum_partial[k]);
      if (fresh && k == begin) {
        to.set(value, where, width_);
        continue;
      }
      for (int64_t i = 0; i < width_; ++i) to.update(i, value[i], where[i]);
    }
  }

  void finish(const GTaskView::RowRange& range, float* scratch) const {
    for (int64_t r = range.begin; r < range.end; ++r) {
      const uint32_t degree = view_.degree[r];
      if (degree == 0) {
        std::fill_n(row(r), width_, 0.0f);
        if (int32_t* argmax = argmax_row(r)) std::fill_n(argmax, width_, -1);
      } else if (args_.reduce == ReduceOp::mean) {
        segments_.scale(row(r), width_, 1.0f / static_cast<float>(degree));
      }
    }
    if (post_) TileRunner(*post_, scratch).run_rows(range.begin, range.end, row(range.begin));
  }

  const GTaskArgs& args_;
  const GTaskView& view_;
  int64_t width_;
  const SegmentFunctions& segments_;
  TilePlan plan_;
  std::optional<TilePlan> post_;
  Workspace space_;
  float* out_ = nullptr;
  int64_t floats_ = 0;
};

}  // namespace

int64_t gtask_scratch_floats(const RowProgram& program, const RowProgram* post) {
  const int64_t tail = post == nullptr || post->empty() ? 0 : scratch_floats(*post);
  return std::max(product_scratch_floats(program), tail);
}

int64_t gtask_workspace(const GTaskView& view, const RowProgram& program, int value, ReduceOp reduce, bool stored) {
  Carve count(nullptr);
  carve({view, program, value, reduce, stored}, count);
  return count.used() * static_cast<int64_t>(sizeof(float));
}

void run_gtasks(const GTaskArgs& args) { GTaskRunner(args).run(); }

}  // namespace nacre::cpu
