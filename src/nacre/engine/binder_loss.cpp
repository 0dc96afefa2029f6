// This part of Binder binds losses and the moments of columns to CPU implementations.
#include "nacre/engine/binder.h"
#include "nacre/kernel/cpu/loss.h"
#include "nacre/plan/operands.h"

namespace nacre {

std::function<void()> Binder::bind_loss(const Kernel& k, void* workspace) const {
  const auto in = operands<LossOperands>(k);
  cpu::LossArgs a;
  a.rows = rows(in.x);
  a.classes = width(in.x);
  a.x = f32(in.x);
  a.weight = f32(in.weight);
  a.smoothing = node(k.root).alpha;
  a.out = f32(k.root);
  a.workspace = static_cast<double*>(workspace);
  const Op op = node(k.root).op;
  if (op == Op::nll || op == Op::nll_grad) {
    a.label = static_cast<const int32_t*>(ex_.pointer(in.target));
  } else {
    a.target = static_cast<const uint8_t*>(ex_.pointer(in.target));
    a.weight_of_each = !node(in.weight).type.dims.empty();
  }
  if (op == Op::nll) return [a] { cpu::nll(a); };
  if (op == Op::bce) return [a] { cpu::bce(a); };
  a.gradient = f32(in.gradient);
  if (op == Op::nll_grad) return [a] { cpu::nll_grad(a); };
  return [a] { cpu::bce_grad(a); };
}

std::function<void()> Binder::bind_moments(const Kernel& k, void* workspace) const {
  auto* sums = static_cast<double*>(workspace);
  if (node(k.root).op == Op::column_moments) {
    const NodeRef x = operands<ColumnMomentsOperands>(k).x;
    return [from = f32(x), out = f32(k.root), n = rows(x), w = width(x), sums] {
      cpu::column_moments(from, n, w, out, sums);
    };
  }
  const auto in = operands<StandardizeGradOperands>(k);
  const cpu::StandardizeGradArgs a{
      rows(in.x),  width(in.x), f32(in.gradient), f32(in.x), f32(in.moments), static_cast<float>(node(k.root).alpha),
      f32(k.root), sums};
  return [a] { cpu::standardize_grad(a); };
}

}  // namespace nacre
