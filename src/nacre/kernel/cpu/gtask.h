// Fused kernels over gTasks (contract row WG6): a row program runs over the edges of one gTask
// after another, tile by tile, and one of its registers is summed (or averaged, or maximised) into
// the rows of one end of the edges. Any partition table works. Where a row's edges lie in several
// gTasks, sums are accumulated without atomics and in a fixed order. gTasks are run in windows. If
// several units of a window touch a row, each of them leaves a partial row in a workspace that fits
// the cache. Then the partial rows of the window are added up, each row by one task.
//
// Programs may multiply by matrices (MicroOp::gemm and its relatives). A product works on the rows
// of one gTask at a time, so the table decides how well a matrix is reused.
#pragma once

#include <memory>
#include <vector>

#include "nacre/gtask/pattern.h"
#include "nacre/kernel/cpu/sparse.h"

namespace nacre::cpu {

struct GTaskOptions {
  Direction direction = Direction::by_dst;  // the end whose rows the edges are reduced to
  // The width of a reduced row. It decides how many partial rows fit a window.
  int64_t width = 1;
  // If true, overfill gTasks are cut into pieces and started first, and underfill gTasks are pooled
  // and run edge by edge at the end (contract row WG8). If false, every gTask runs alone, in the
  // order of the partition.
  bool split_outliers = true;
  // If true, the edges of a gTask run type by type, for programs with typed products. If false,
  // they run row by row.
  bool by_type = true;
};

// Holds a partition that was prepared for running. It is made once for each pair of gTasks and
// options.
struct GTaskView;
std::shared_ptr<const GTaskView> make_gtask_view(std::shared_ptr<const GTasks> tasks, const GTaskOptions& options);
int64_t gtask_view_bytes(const GTaskView& view);

struct GTaskArgs {
  const GTaskView* view = nullptr;
  BoundProgram program;  // program over edges; it may store edge values
  int value = -1;        // register that is reduced; -1: the program only stores
  ReduceOp reduce = ReduceOp::sum;
  float* out = nullptr;       // rows × width; null: the result is only read by `post`
  int32_t* argmax = nullptr;  // used by max only, as in ReduceArgs
  BoundProgram post;          // program over the reduced rows; may be empty
  void* workspace = nullptr;  // gtask_workspace(...) bytes
  Scratch scratch;            // per_thread >= gtask_scratch_floats(...)
};
int64_t gtask_scratch_floats(const RowProgram& program, const RowProgram* post);
// Returns the bytes of workspace that run_gtasks() needs. With `stored`, the result is written to
// `out`; otherwise the workspace holds it until `post` has run.
int64_t gtask_workspace(const GTaskView& view, const RowProgram& program, int value, ReduceOp reduce, bool stored);
void run_gtasks(const GTaskArgs& args);

// Computes dw = Σ over edges of xᵀ·g, separately for each edge type if `typed` is set; x and g are
// registers of the program. The gTasks are cut into a fixed number of shares whose sums are added
// in order.
struct GTaskWeightGradArgs {
  const GTaskView* view = nullptr;
  BoundProgram program;
  int x = -1, g = -1;
  bool typed = false;
  float* dw = nullptr;        // (typed ? types : 1) × [K, N], overwritten
  void* workspace = nullptr;  // gtask_weight_grad_workspace(...) bytes
  Scratch scratch;            // per_thread >= gtask_scratch_floats(program, nullptr)
};
int64_t gtask_weight_grad_workspace(const GTaskView& view, const RowProgram& program, int x, int g, bool typed);
void gtask_weight_grad(const GTaskWeightGradArgs& args);

}  // namespace nacre::cpu
