// Binder: binds the kernels of a plan to CPU implementations and to memory.
#pragma once

#include <functional>

#include "nacre/engine/backend.h"
#include "nacre/engine/executor.h"

namespace nacre {

class Binder {
 public:
  Binder(const Executor& executor, GraphViews& views, const StepContext& step)
      : ex_(executor), views_(views), step_(step) {}

  KernelNeeds needs(const Kernel& kernel) const;
  // Returns a function that runs the kernel once. All pointers are resolved now; calling it
  // allocates nothing.
  std::function<void()> bind(const Kernel& kernel, const cpu::Scratch& scratch, void* workspace) const;

 private:
  const Node& node(NodeRef i) const { return ex_.plan().dfg[i]; }
  int64_t width(NodeRef i) const { return node(i).type.row_size(); }
  int64_t rows(NodeRef i) const { return ex_.blocks().rows(node(i).type.space); }
  float* f32(NodeRef i) const { return static_cast<float*>(ex_.pointer(i)); }
  float* stored_root(const Kernel& k) const;
  const Graph& graph(const Kernel& k) const;
  std::shared_ptr<const cpu::RowView> rows_view(const Kernel& k) const;
  std::shared_ptr<const cpu::LstmView> lstm_view(const Kernel& k) const;
  std::shared_ptr<const cpu::GTaskView> gtask_view(const Kernel& k) const;
  std::shared_ptr<const cpu::RowsByType> by_type(const Kernel& k) const;
  const uint32_t* pair_gather(const Kernel& k, NodeRef arg) const;
  cpu::BoundProgram bound(const RowProgram& program) const;

  std::function<void()> bind_matmul(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const;
  std::function<void()> bind_edges(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const;
  std::function<void()> bind_typed(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const;
  std::function<void()> bind_pair_products(const Kernel& k, const cpu::Scratch& scratch, float* products) const;
  std::function<void()> bind_typed_rows(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const;
  std::function<void()> bind_gtask(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const;
  // Returns the node of the gates that a forward LSTM kernel writes, or -1 if it keeps no gates.
  NodeRef gates_of(const Kernel& k) const;
  std::function<void()> bind_lstm_gates_grad(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const;
  std::function<void()> bind_lstm(const Kernel& k, const cpu::Scratch& scratch, void* workspace) const;
  std::function<void()> bind_loss(const Kernel& k, void* workspace) const;
  std::function<void()> bind_moments(const Kernel& k, void* workspace) const;
  std::function<void()> bind_copy(const Kernel& k) const;
  std::function<void()> bind_reference(const Kernel& k) const;

  const Executor& ex_;
  GraphViews& views_;
  const StepContext& step_;  // belongs to the back end; bound kernels point at it
};

}  // namespace nacre
