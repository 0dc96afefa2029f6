#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/row_block.h"
#include "nacre/kernel/cpu/sparse.h"
#include "nacre/kernel/cpu/tile_runner.h"

namespace nacre::cpu {
namespace {

class Reducer {
 public:
  explicit Reducer(const ReduceArgs& args)
      : args_(args),
        view_(*args.view),
        width_(args.program.program->widths[args.value]),
        segments_(segment_functions()),
        blocks_({args.view, width_, args.out, &args.post}),
        plan_(make_tile_plan(args.program, options(args))),
        program_floats_(scratch_floats(*args.program.program)) {
    NACRE_CHECK(args.argmax == nullptr || args.reduce == ReduceOp::max, "only a maximum has an argmax");
    NACRE_CHECK(view_.num_partials == 0 || args.partials != nullptr,
                "rows that are cut into pieces need memory for partial sums");
  }

  void run() const {
    parallel_tasks(static_cast<int64_t>(view_.chunks.size()), [&](int64_t i) {
      run_chunk(view_.chunks[i], thread_scratch(args_.scratch, program_floats_ + blocks_.floats()));
    });
    parallel_tasks(static_cast<int64_t>(view_.split_rows.size()), [&](int64_t i) {
      combine(view_.split_rows[i], thread_scratch(args_.scratch, program_floats_ + blocks_.floats()));
    });
  }

 private:
  static PlanOptions options(const ReduceArgs& args) {
    PlanOptions options;
    options.keep = args.value;
    options.consecutive = consecutive(*args.view);
    return options;
  }

  int32_t* argmax_row(int64_t row) const { return args_.argmax == nullptr ? nullptr : args_.argmax + row * width_; }
  float* partial(int piece) const { return args_.partials + piece * width_; }
  int32_t* partial_argmax(int piece) const {
    if (args_.argmax == nullptr) return nullptr;
    return reinterpret_cast<int32_t*>(args_.partials + (int64_t{view_.num_partials} + piece) * width_);
  }

  void run_chunk(const RowChunk& chunk, float* scratch) const {
    TileRunner runner(plan_, scratch);
    EdgeTiles tiles(view_, chunk.row_begin, runner);
    if (chunk.partial >= 0) {
      for (int64_t e = chunk.edge_begin; e < chunk.edge_end; e += plan_.rows) {
        const Tile tile = tiles.tile(e, std::min(chunk.edge_end, e + plan_.rows));
        runner.run(tile);
        RowSegment s = segment(runner, tile, 0, tile.rows);
        s.sum = partial(chunk.partial);
        s.argmax = partial_argmax(chunk.partial);
        s.fresh = e == chunk.edge_begin;
        reduce(s);
      }
      return;
    }
    blocks_.for_blocks(chunk, scratch + program_floats_,
                       [&](int64_t begin, int64_t end, float* rows) { reduce_block(runner, tiles, begin, end, rows); });
  }

  // Reduces rows [begin, end) into `rows`. A tile takes the next entries of the block, whichever
  // rows they belong to.
  void reduce_block(TileRunner& runner, EdgeTiles& tiles, int64_t begin, int64_t end, float* rows) const {
    int64_t row = begin;
    const int64_t last = view_.row_ptr[end];
    for (int64_t e = view_.row_ptr[begin]; e < last; e += plan_.rows) {
      const Tile tile = tiles.tile(e, std::min(last, e + plan_.rows));
      runner.run(tile);
      for (int64_t at = e; at < e + tile.rows;) {
        while (view_.row_ptr[row + 1] <= at) finish_row(row++, begin, rows);
        const int64_t stop = std::min(e + tile.rows, view_.row_ptr[row + 1]);
        RowSegment s = segment(runner, tile, at - e, stop - e);
        s.sum = rows + (row - begin) * width_;
        s.argmax = argmax_row(row);
        s.fresh = at == view_.row_ptr[row];
        reduce(s);
        at = stop;
      }
    }
    while (row < end) finish_row(row++, begin, rows);
  }

  RowSegment segment(const TileRunner& runner, const Tile& tile, int64_t begin, int64_t end) const {
    RowSegment s;
    s.value = &runner.value(args_.value);
    s.begin = begin;
    s.end = end;
    s.first_position = tile.first;
    s.position = tile.position;
    s.fetch_end = tile.rows;
    return s;
  }

  void reduce(const RowSegment& s) const { (args_.reduce == ReduceOp::max ? segments_.max : segments_.add)(s); }

  void finish_row(int64_t row, int64_t first, float* rows) const {
    float* out = rows + (row - first) * width_;
    const int64_t length = view_.row_ptr[row + 1] - view_.row_ptr[row];
    if (length == 0) {
      std::fill(out, out + width_, 0.0f);
      if (int32_t* argmax = argmax_row(row)) std::fill(argmax, argmax + width_, -1);
    } else if (args_.reduce == ReduceOp::mean) {
      segments_.scale(out, width_, 1.0f / static_cast<float>(length));
    }
  }

  void combine(const SplitRow& split, float* scratch) const {
    blocks_.one_row(split.row, scratch + program_floats_, [&](float* out) {
      const Rows sums = {partial(split.first_partial), nullptr, width_, width_};
      RowSegment s;
      s.value = &sums;
      s.end = split.num_partials;
      s.sum = out;
      if (args_.argmax == nullptr) {
        reduce(s);
      } else {
        combine_argmax(split, out);
      }
      finish_row(split.row, split.row, out);
    });
  }

  void combine_argmax(const SplitRow& split, float* out) const {
    int32_t* argmax = argmax_row(split.row);
    std::copy_n(partial(split.first_partial), width_, out);
    std::copy_n(partial_argmax(split.first_partial), width_, argmax);
    for (int p = split.first_partial + 1; p < split.first_partial + split.num_partials; ++p) {
      const float* value = partial(p);
      const int32_t* where = partial_argmax(p);
      for (int64_t i = 0; i < width_; ++i) {
        if (value[i] > out[i]) {
          out[i] = value[i];
          argmax[i] = where[i];
        }
      }
    }
  }

  const ReduceArgs& args_;
  const RowView& view_;
  int64_t width_;
  const SegmentFunctions& segments_;
  RowBlocks blocks_;
  TilePlan plan_;
  int64_t program_floats_;
};

}  // namespace

int64_t reduce_scratch_floats(const RowView& view, const RowProgram& program, int value, const RowProgram* post) {
  return scratch_floats(program) + row_block_floats(view, program.widths[value], post);
}

void reduce_rows(const ReduceArgs& args) { Reducer(args).run(); }

}  // namespace nacre::cpu
