// Binds losses and statistics of columns on a GPU.
#include "nacre/engine/gpu/step_list.h"
#include "nacre/kernel/cuda/loss.h"
#include "nacre/kernel/cuda/moments.h"
#include "nacre/plan/operands.h"

namespace nacre {
namespace {

int64_t blocks_of(int64_t elements, int threads) { return (elements + threads - 1) / threads; }

double* doubles(StepList& steps, int64_t count) {
  return static_cast<double*>(steps.carve.take(count * static_cast<int64_t>(sizeof(double))));
}

void add_loss(const GpuKernel& k, StepList& steps) {
  const auto in = operands<LossOperands>(k.kernel);
  const Op op = k.node(k.kernel.root).op;
  const bool nll = op == Op::nll || op == Op::nll_grad;
  const int64_t rows = k.rows(in.x), classes = k.width(in.x);
  const cuda::LossShape loss = {nll ? cuda::LossKind::nll : cuda::LossKind::bce, classes, k.node(k.kernel.root).alpha,
                                !k.node(in.weight).type.dims.empty()};
  void* const x = k.pointer(in.x);
  void* const label = k.pointer(in.target);
  void* const weight = k.pointer(in.weight);
  if (op == Op::nll_grad || op == Op::bce_grad) {
    const cuda::Source grad = cuda::loss_grad(loss);
    steps.launch(grad, blocks_of(rows * classes, grad.threads), [&] {
      return cuda::LossGradParams{.x = x,
                                  .label = label,
                                  .weight = weight,
                                  .gradient = k.pointer(in.gradient),
                                  .out = k.pointer(k.kernel.root),
                                  .elements = rows * classes};
    });
    return;
  }
  const int64_t blocks = cuda::loss_blocks(rows);
  double* sums = doubles(steps, blocks);
  steps.launch(cuda::loss_sum(loss), blocks, [&] {
    return cuda::LossSumParams{.x = x,
                               .label = label,
                               .weight = weight,
                               .places = sums,
                               .rows = rows,
                               .rows_of_block = cuda::loss_rows_of_block(rows)};
  });
  steps.launch(cuda::loss_total(), 1,
               [&] { return cuda::LossTotalParams{.places = sums, .count = blocks, .out = k.pointer(k.kernel.root)}; });
}

// Holds the operands of the sums of columns over all rows. The rows are summed in runs, and each
// run writes its sums to `sums`.
struct Columns {
  int64_t rows, width;
  const void* x;
  const void* g;
  const void* mean;
  double* sums;
};

void add_column_sums(StepList& steps, cuda::ColumnSums kind, const Columns& c) {
  steps.launch(cuda::column_sums(kind, c.width), cuda::moments_tiles(c.width) * cuda::moments_runs(c.rows), [&] {
    return cuda::ColumnSumsParams{.x = c.x,
                                  .g = c.g,
                                  .mean = c.mean,
                                  .places = c.sums,
                                  .rows = c.rows,
                                  .rows_of_run = cuda::moments_rows_of_run(c.rows)};
  });
}

void add_column_moments(const GpuKernel& k, StepList& steps) {
  const NodeRef x = operands<ColumnMomentsOperands>(k.kernel).x;
  Columns c = {k.rows(x), k.width(x), k.pointer(x), nullptr, nullptr, nullptr};
  const int64_t runs = cuda::moments_runs(c.rows);
  c.sums = doubles(steps, runs * c.width);
  auto* out = static_cast<float*>(k.pointer(k.kernel.root));
  // The kernel writes through `to`; clang-tidy does not see that the parameters keep it.
  const auto mean_to = [&](float* to) {  // NOLINT(readability-non-const-parameter)
    steps.launch(cuda::column_mean(c.width), cuda::moments_tiles(c.width),
                 [&] { return cuda::ColumnMeanParams{.places = c.sums, .runs = runs, .rows = c.rows, .out = to}; });
  };
  add_column_sums(steps, cuda::ColumnSums::values, c);
  mean_to(out);
  c.mean = out;
  add_column_sums(steps, cuda::ColumnSums::squares, c);
  mean_to(at(out, c.width));
}

void add_standardize_grad(const GpuKernel& k, StepList& steps) {
  const auto in = operands<StandardizeGradOperands>(k.kernel);
  Columns c = {k.rows(in.x), k.width(in.x), k.pointer(in.x), k.pointer(in.gradient), k.pointer(in.moments), nullptr};
  const int64_t runs = cuda::moments_runs(c.rows);
  c.sums = doubles(steps, runs * 2 * c.width);
  float* terms = steps.carve.floats(3 * c.width);
  add_column_sums(steps, cuda::ColumnSums::grads, c);
  steps.launch(cuda::standardize_grad_terms(c.width), cuda::moments_tiles(c.width), [&] {
    return cuda::StandardizeTermsParams{.places = c.sums,
                                        .runs = runs,
                                        .rows = c.rows,
                                        .moments = c.mean,
                                        .epsilon = static_cast<float>(k.node(k.kernel.root).alpha),
                                        .out = terms};
  });
  const cuda::Source grad = cuda::standardize_grad(c.width);
  steps.launch(grad, blocks_of(c.rows * c.width, grad.threads), [&] {
    return cuda::StandardizeGradParams{.g = c.g,
                                       .x = c.x,
                                       .moments = c.mean,
                                       .terms = terms,
                                       .out = k.pointer(k.kernel.root),
                                       .elements = c.rows * c.width};
  });
}

void add_steps(const GpuKernel& k, StepList& steps) {
  if (k.kernel.kind == KernelKind::loss) return add_loss(k, steps);
  if (k.node(k.kernel.root).op == Op::column_moments) return add_column_moments(k, steps);
  add_standardize_grad(k, steps);
}

KernelNeeds loss_needs(const GpuKernel& k) {
  StepList steps(k.context, nullptr, true);
  add_steps(k, steps);
  return {0, steps.bytes()};
}

Step bind_loss(const GpuKernel& k, void* workspace) {
  StepList steps(k.context, workspace, false);
  add_steps(k, steps);
  return steps.finish(workspace);
}

}  // namespace

const GpuFamily kGpuLoss = {loss_needs, bind_loss};

}  // namespace nacre
