// Fused kernels over gTasks (WG6): a row program runs over the edges of one gTask after another,
// tile by tile, and one of its registers is summed (or averaged, or maximised) into the rows of one
// end of the edges. Any partition table works. Where a row's edges lie in several gTasks, sums are
// accumulated without atomics and in a fixed order: gTasks are cut into windows; a window's gTasks
// leave one partial row per (gTask, row) in a workspace that fits the cache, then the window's rows
// are added up, each by one task.
//
// Programs may multiply by matrices (MicroOp::gemm and its relatives), so the batch a product works
// on is the gTask's: the table decides how well a matrix is reused.
#pragma once

#include <memory>
#include <vector>

#include "nacre/gtask/pattern.h"
#include "nacre/kernel/cpu/sparse.h"

namespace nacre::cpu {

struct GTaskOptions {
  Direction direction = Direction::by_dst;  // whose rows are reduced to
  int64_t width = 1;                        // of a reduced row: how many partial rows fit a window
  // Overfill gTasks are cut into pieces and started first, underfill gTasks are run together, edge
  // by edge, at the end (WG8). false: every gTask runs alone, in the order of the partition.
  bool split_outliers = true;
  // The edges of a gTask are run type by type, for programs with typed products. false: row by row.
  bool by_type = true;
};

// Prepared once per (gTasks, options).
struct GTaskView;
std::shared_ptr<const GTaskView> make_gtask_view(std::shared_ptr<const GTasks> tasks, const GTaskOptions& options);
int64_t gtask_view_bytes(const GTaskView& view);

struct GTaskArgs {
  const GTaskView* view = nullptr;
  BoundProgram program;  // over edges; may store edge values
  int value = -1;        // the register that is reduced; -1: the program only stores
  Reduce reduce = Reduce::sum;
  float* out = nullptr;       // rows × width; null: the result only feeds `post`
  int32_t* argmax = nullptr;  // max only, as in ReduceArgs
  BoundProgram post;          // over the reduced rows, may be empty
  void* workspace = nullptr;  // gtask_workspace(...) bytes
  Scratch scratch;            // per_thread >= gtask_scratch_floats(...)
};
int64_t gtask_scratch_floats(const RowProgram& program, const RowProgram* post);
// `stored`: the result is written to `out` (otherwise the workspace holds it until `post` has run).
int64_t gtask_workspace(const GTaskView& view, const RowProgram& program, int value, Reduce reduce, bool stored);
void run_gtasks(const GTaskArgs& args);

// dw = Σ over edges of xᵀ·g, by edge type where `typed`: x and g are registers of the program. The
// gTasks are cut into a fixed number of lanes whose sums are added in order.
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
