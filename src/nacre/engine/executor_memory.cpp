// This part of the executor plans memory by the lifetimes of values in the order of the kernels.
#include <algorithm>

#include "nacre/base/parallel.h"
#include "nacre/engine/executor.h"
#include "nacre/plan/in_place.h"
#include "nacre/plan/overlap.h"

namespace nacre {

// Returns, for each node, the last kernel that reads it. For results, which must outlive the step,
// this is past the last kernel.
NodeVector<int> Executor::last_readers() const {
  NodeVector<int> last(plan_->dfg, -1);
  for (size_t k = 0; k < plan_->kernels.size(); ++k) {
    for (const NodeRef r : plan_->kernels[k].reads) last[r] = static_cast<int>(k);
  }
  const auto keep = [&](NodeRef node) { last[plan_->alias[node]] = static_cast<int>(plan_->kernels.size()); };
  for (const auto& [name, node] : plan_->dfg.outputs()) keep(node);
  for (const auto& [name, node] : plan_->dfg.updates()) keep(node);
  return last;
}

// Returns the place of each kernel in the order in which the kernels run. Constants are computed
// before the first step, wherever their kernels stand in the list.
std::vector<int> Executor::time_of_kernels() const {
  std::vector<int> time;
  int constants = 0, steps = 0;
  for (const Kernel& k : plan_->kernels) time.push_back(k.once ? constants++ : steps++);
  for (size_t k = 0; k < time.size(); ++k) time[k] += plan_->kernels[k].once ? 0 : constants;
  return time;
}

// Returns, for each kernel, the last time at which it uses its operands and results. A
// communication uses them until it has ended. If the kernel that waits for the communication has
// early rows, the communication ends while that kernel runs; otherwise it ends before that kernel.
std::vector<int> Executor::ends_of_kernels(const std::vector<int>& time) const {
  const std::vector<size_t> ends = nacre::ends_of_kernels(*plan_, options_.overlap);
  std::vector<int> until;
  for (size_t k = 0; k < ends.size(); ++k) {
    const bool during = parts_.contains(ends[k]);
    until.push_back(ends[k] == time.size() ? static_cast<int>(time.size())
                                           : std::max(time[k], time[ends[k]] - (during ? 0 : 1)));
  }
  return until;
}

KernelNeeds Executor::needs_of(size_t kernel) const {
  const auto found = parts_.find(kernel);
  if (found == parts_.end()) return backend_->needs(*this, plan_->kernels[kernel]);
  KernelNeeds both;
  for (const Kernel& part : found->second) {
    const KernelNeeds needs = backend_->needs(*this, part);
    both.scratch_floats = std::max(both.scratch_floats, needs.scratch_floats);
    both.workspace_bytes = std::max(both.workspace_bytes, needs.workspace_bytes);
  }
  return both;
}

// Lets the result of a communication begin where its operand begins, so that no rank copies its own
// rows. An exchange needs a place that is large enough for both. Returns false if the operand has
// no place in the arena, if a later kernel reads rows of the operand that the communication
// changes, or if the result has other columns than the operand.
bool Executor::share_place(const Kernel& kernel, int k, NodeVector<int>& last_reader) {
  const NodeRef from = plan_->alias[plan_->dfg[kernel.root].inputs[0]];
  const int request = node_request_[from];
  const Op op = plan_->dfg[kernel.root].op;
  const bool changes = op != Op::exchange;
  const bool read_later = last_reader[from] != k;
  // No kernel may overwrite the operand while other ranks read it.
  last_reader[from] = -1;
  if (request < 0 || (changes && read_later) || op == Op::to_columns || op == Op::to_rows) return false;
  node_request_[kernel.root] = request;
  requests_[request].bytes = std::max(requests_[request].bytes, bytes_of(kernel.root));
  // No later kernel may overwrite the result, because the operand, which lies in the same memory,
  // may be read after the last reader of the result.
  if (!changes) last_reader[kernel.root] = -1;
  return true;
}

// Requests places in the arena for leaves that only constants read, because their bytes may come
// from host memory (bind_host()).
void Executor::request_leaves(int constants) {
  if (backend_->on_host() || constants == 0) return;
  for (NodeRef i = 0; i < plan_->dfg.size(); ++i) {
    const Node& node = plan_->dfg[i];
    if (node.op != Op::input || step_reads(node.name)) continue;
    node_request_[i] = static_cast<int>(requests_.size());
    requests_.push_back({bytes_of(i), 0, constants - 1});
  }
}

// Gives every value memory: a stored value of a step lives from the kernel that writes it to the
// last one that reads it; results live to the end.
void Executor::plan_memory() {
  const Dfg& dfg = plan_->dfg;
  const int last = static_cast<int>(plan_->kernels.size());
  node_request_.assign(dfg, -1);
  workspace_request_.assign(plan_->kernels.size(), -1);
  scratch_threads_ = num_threads();
  NodeVector<int> last_reader = last_readers();
  const std::vector<int> time = time_of_kernels();
  const std::vector<int> ends = ends_of_kernels(time);
  for (int k = 0; k < last; ++k) {
    const int now = time[k];
    const Kernel& kernel = plan_->kernels[k];
    const int until = ends[k];
    const bool communicates = kernel.kind == KernelKind::exchange;
    const KernelNeeds needs = communicates ? KernelNeeds{} : needs_of(static_cast<size_t>(k));
    scratch_per_thread_ = std::max(scratch_per_thread_, needs.scratch_floats);
    if (needs.workspace_bytes > 0) {
      workspace_request_[k] = static_cast<int>(requests_.size());
      requests_.push_back({needs.workspace_bytes, now, now});
    }
    if (kernel.once) continue;
    const bool shared = communicates && share_place(kernel, k, last_reader);
    for (const NodeRef w : kernel.writes) {
      if (shared) continue;
      const NodeRef r = overwritten_operand(*plan_, kernel, w, [&](NodeRef o) {
        return last_reader[o] == k && node_request_[o] >= 0 && bytes_of(o) == bytes_of(w);
      });
      if (r >= 0) {
        // The new value overwrites an operand that no later kernel reads. Both share one request,
        // which now lives as long as the new value.
        node_request_[w] = node_request_[r];
        last_reader[r] = -1;
        continue;
      }
      node_request_[w] = static_cast<int>(requests_.size());
      requests_.push_back({bytes_of(w), now, communicates ? until : now});
    }
    for (const NodeRef r : kernel.reads) {
      const int request = node_request_[r];
      if (request < 0) continue;
      int& used = requests_[request].last;
      used = std::max(used, communicates ? until : now);
    }
  }
  const auto keep = [&](NodeRef node) {
    const int request = node_request_[plan_->alias[node]];
    if (request >= 0) requests_[request].last = last;
  };
  for (const auto& [name, node] : dfg.outputs()) keep(node);
  for (const auto& [name, node] : dfg.updates()) keep(node);
  request_leaves(static_cast<int>(
      std::count_if(plan_->kernels.begin(), plan_->kernels.end(), [](const Kernel& k) { return k.once; })));
  // The size is rounded up to whole cache lines, so that threads never share one.
  if (scratch_per_thread_ > 0) scratch_per_thread_ = (scratch_per_thread_ + 31) / 16 * 16;
  scratch_request_ = static_cast<int>(requests_.size());
  requests_.push_back({scratch_per_thread_ * scratch_threads_ * static_cast<int64_t>(sizeof(float)), 0, last});
  arena_plan_ = plan_arena(requests_);
}

}  // namespace nacre
