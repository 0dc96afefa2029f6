#include "nacre/engine/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/engine/binder.h"

namespace nacre {
namespace {

bool is_bound_leaf(const Node& node) { return node.op == Op::input || node.op == Op::param; }

}  // namespace

std::string expression_key(const Dfg& dfg, NodeRef i) {
  const Node& node = dfg[i];
  // Spaces of different layers name the same rows in full-graph training, but keep them apart: blocks may differ.
  std::string key =
      fmt::format("{}:{}{}:{}", op_info(node.op).name, type_text(node.type), attr_name(node.attr), node.alpha);
  for (const int64_t v : node.ints) key += fmt::format(",{}", v);
  key += node.name;
  for (const NodeRef in : node.inputs) key += "(" + expression_key(dfg, in) + ")";
  return key;
}

Executor::Executor(Plan plan, Blocks blocks, std::shared_ptr<GraphViews> views)
    : plan_(std::move(plan)), blocks_(std::move(blocks)), views_(std::move(views)) {
  const auto n = static_cast<size_t>(plan_.dfg.size());
  pointers_.assign(n, nullptr);
  constants_.resize(n);
  times_.resize(plan_.kernels.size());
  pooled_.assign(plan_.kernels.size(), 0);
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    const Kernel& kernel = plan_.kernels[k];
    names_.push_back(trace_name(
        fmt::format("{} %{} {}", kernel_name(kernel.kind), kernel.root, op_info(plan_.dfg[kernel.root].op).name)));
  }
  plan_memory();
}

int64_t Executor::bytes_of(NodeRef i) const {
  const Node& node = plan_.dfg[i];
  return blocks_.rows(node.type.space) * node.type.row_size() * dtype_size(node.type.dtype);
}

// A stored value of a step lives from the kernel that writes it to the last that reads it; results live to the end.
void Executor::plan_memory() {
  const Dfg& dfg = plan_.dfg;
  const int last = static_cast<int>(plan_.kernels.size());
  node_request_.assign(static_cast<size_t>(dfg.size()), -1);
  workspace_request_.assign(plan_.kernels.size(), -1);
  scratch_threads_ = num_threads();
  for (int k = 0; k < last; ++k) {
    const Kernel& kernel = plan_.kernels[static_cast<size_t>(k)];
    const KernelNeeds needs = Binder(*this).needs(kernel);
    scratch_per_thread_ = std::max(scratch_per_thread_, needs.scratch_floats);
    if (needs.workspace_bytes > 0) {
      workspace_request_[static_cast<size_t>(k)] = static_cast<int>(requests_.size());
      requests_.push_back({needs.workspace_bytes, k, k});
    }
    if (kernel.once) continue;
    for (const NodeRef w : kernel.writes) {
      node_request_[static_cast<size_t>(w)] = static_cast<int>(requests_.size());
      requests_.push_back({bytes_of(w), k, k});
    }
    for (const NodeRef r : kernel.reads) {
      const int request = node_request_[static_cast<size_t>(r)];
      if (request >= 0) requests_[static_cast<size_t>(request)].last = k;
    }
  }
  const auto keep = [&](NodeRef node) {
    const int request = node_request_[static_cast<size_t>(plan_.alias[static_cast<size_t>(node)])];
    if (request >= 0) requests_[static_cast<size_t>(request)].last = last;
  };
  for (const auto& [name, node] : dfg.outputs()) keep(node);
  for (const auto& [name, node] : dfg.updates()) keep(node);
  // Rounded to whole cache lines so that threads never share one.
  scratch_per_thread_ = (scratch_per_thread_ + 31) / 16 * 16;
  scratch_request_ = static_cast<int>(requests_.size());
  requests_.push_back({scratch_per_thread_ * scratch_threads_ * static_cast<int64_t>(sizeof(float)), 0, last});
  arena_plan_ = plan_arena(requests_);
}

int64_t Executor::constant_bytes(const ConstantPool& pool) const {
  int64_t sum = 0;
  for (const Kernel& k : plan_.kernels) {
    for (const NodeRef w : k.writes) {
      if (k.once && !pool.contains(expression_key(plan_.dfg, w))) sum += bytes_of(w);
    }
  }
  return sum;
}

void Executor::bind(const std::string& leaf, void* data) { bound_[leaf] = data; }

void* Executor::pointer(NodeRef node) const {
  return node < 0 ? nullptr : pointers_[static_cast<size_t>(plan_.alias[static_cast<size_t>(node)])];
}

void Executor::allocate(std::shared_ptr<void> arena, ConstantPool& pool) {
  NACRE_CHECK(num_threads() == scratch_threads_, "the number of threads changed after the memory was planned");
  const Dfg& dfg = plan_.dfg;
  arena_ = std::move(arena);
  auto* base = static_cast<char*>(arena_.get());
  for (NodeRef i = 0; i < dfg.size(); ++i) {
    if (is_bound_leaf(dfg[i])) {
      const auto found = bound_.find(dfg[i].name);
      NACRE_CHECK(found != bound_.end(), "leaf '" + dfg[i].name + "' is not bound");
      pointers_[static_cast<size_t>(i)] = found->second;
    } else if (node_request_[static_cast<size_t>(i)] >= 0) {
      pointers_[static_cast<size_t>(i)] =
          base + arena_plan_.offsets[static_cast<size_t>(node_request_[static_cast<size_t>(i)])];
    }
  }
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    const Kernel& kernel = plan_.kernels[k];
    if (!kernel.once) continue;
    bool all_known = true;
    for (const NodeRef w : kernel.writes) {
      Tensor& slot = pool[expression_key(dfg, w)];
      all_known &= slot.defined();
      if (!slot.defined()) slot = Tensor(dfg[w].type.dtype, {bytes_of(w) / dtype_size(dfg[w].type.dtype)});
      constants_[static_cast<size_t>(w)] = slot;
      pointers_[static_cast<size_t>(w)] = slot.raw();
    }
    pooled_[k] = all_known ? 1 : 0;
  }
  cpu::Scratch scratch;
  scratch.data = reinterpret_cast<float*>(base + arena_plan_.offsets[static_cast<size_t>(scratch_request_)]);
  scratch.per_thread = scratch_per_thread_;
  steps_.clear();
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    const int request = workspace_request_[k];
    void* workspace = request < 0 ? nullptr : base + arena_plan_.offsets[static_cast<size_t>(request)];
    steps_.push_back(Binder(*this).bind(plan_.kernels[k], scratch, workspace));
  }
}

void Executor::prepare() {
  for (size_t k = 0; k < steps_.size(); ++k) {
    if (!plan_.kernels[k].once || pooled_[k]) continue;
    const TraceSpan span("once", names_[k]);
    steps_[k]();
  }
}

void Executor::run(const StepContext& step) {
  step_ = step;
  for (size_t k = 0; k < steps_.size(); ++k) {
    if (plan_.kernels[k].once) continue;
    const TraceSpan span("kernel", names_[k]);
    const double start = now_seconds();
    steps_[k]();
    times_[k].seconds += now_seconds() - start;
    ++times_[k].runs;
  }
  // State parameters take their new values after every kernel has read the old ones.
  for (const auto& [name, node] : plan_.dfg.updates()) {
    const NodeRef leaf = plan_.dfg.find_leaf(name);
    const auto bytes = static_cast<size_t>(bytes_of(leaf));
    std::copy_n(static_cast<const char*>(pointer(node)), bytes, static_cast<char*>(pointer(leaf)));
  }
}

const float* Executor::value(NodeRef node) const { return static_cast<const float*>(pointer(node)); }

const float* Executor::output(std::string_view name) const { return value(plan_.dfg.output(name)); }

}  // namespace nacre
