#include "nacre/engine/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/plan/in_place.h"

namespace nacre {
namespace {

bool is_bound_leaf(const Node& node) { return node.op == Op::input || node.op == Op::param; }

}  // namespace

// Returns a text for the expression below `node`: its nodes in the order in which a walk from
// `node` finishes them, each with the numbers of its inputs. It has one entry for each node,
// however often the node is used, and does not depend on where the nodes stand in the DFG.
std::string expression_key(const Dfg& dfg, NodeRef node) {
  std::map<NodeRef, int> number;
  std::string key;
  const std::function<void(NodeRef)> walk = [&](NodeRef i) {
    if (number.contains(i)) return;
    const Node& n = dfg[i];
    for (const NodeRef in : n.inputs) walk(in);
    // In full-graph training, spaces of different layers name the same rows. They are still kept
    // apart, because blocks may differ.
    key += fmt::format("{} {} {} {} {}", op_info(n.op).name, type_text(n.type), attr_name(n.attr), n.alpha, n.name);
    for (const int64_t v : n.ints) key += fmt::format(",{}", v);
    for (const NodeRef in : n.inputs) key += fmt::format("(%{})", number[in]);
    key += ";";
    number.emplace(i, static_cast<int>(number.size()));
  };
  walk(node);
  return key;
}

Executor::Executor(Plan plan, Blocks blocks, std::shared_ptr<GraphViews> views)
    : Executor(std::move(plan), std::move(blocks), make_cpu_backend(std::move(views))) {}

Executor::Executor(Plan plan, Blocks blocks, std::shared_ptr<Backend> backend)
    : Executor(
          [&] {
            backend->narrow(plan);
            return std::make_shared<const Plan>(std::move(plan));
          }(),
          std::move(blocks), backend) {}

Executor::Executor(std::shared_ptr<const Plan> plan, Blocks blocks, std::shared_ptr<Backend> backend)
    : plan_(std::move(plan)), blocks_(std::move(blocks)), backend_(std::move(backend)) {
  pointers_.assign(plan_->dfg, nullptr);
  constants_.assign(plan_->dfg, {});
  times_.resize(plan_->kernels.size());
  pooled_.assign(plan_->kernels.size(), 0);
  bound_variants_.resize(plan_->kernels.size());
  for (const Kernel& kernel : plan_->kernels) {
    names_.push_back(trace_name(
        fmt::format("{} %{} {}", kernel_name(kernel.kind), kernel.root, op_info(plan_->dfg[kernel.root].op).name)));
  }
  plan_memory();
}

int64_t Executor::bytes_of(NodeRef node) const {
  const ValueType& type = plan_->dfg[node].type;
  return blocks_.rows(type.space) * type.row_size() * dtype_size(is_narrow(node) ? DType::bf16 : type.dtype);
}

std::string Executor::pool_key(NodeRef node) const {
  return expression_key(plan_->dfg, node) + (is_narrow(node) ? " bf16" : "");
}

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

// Constants are computed before the first step, wherever they stand in the list of kernels.
std::vector<int> Executor::time_of_kernels() const {
  std::vector<int> time;
  int constants = 0, steps = 0;
  for (const Kernel& k : plan_->kernels) time.push_back(k.once ? constants++ : steps++);
  for (size_t k = 0; k < time.size(); ++k) time[k] += plan_->kernels[k].once ? 0 : constants;
  return time;
}

// Requests places for leaves that only constants read, in case they come from the host.
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
  for (int k = 0; k < last; ++k) {
    const int now = time[k];
    const Kernel& kernel = plan_->kernels[k];
    const KernelNeeds needs = backend_->needs(*this, kernel);
    scratch_per_thread_ = std::max(scratch_per_thread_, needs.scratch_floats);
    if (needs.workspace_bytes > 0) {
      workspace_request_[k] = static_cast<int>(requests_.size());
      requests_.push_back({needs.workspace_bytes, now, now});
    }
    if (kernel.once) continue;
    for (const NodeRef w : kernel.writes) {
      const NodeRef r = overwritten_operand(*plan_, kernel, w, [&](NodeRef o) {
        return last_reader[o] == k && node_request_[o] >= 0 && bytes_of(o) == bytes_of(w);
      });
      if (r >= 0) {
        // Both values share one request, which now lives as long as the new value.
        node_request_[w] = node_request_[r];
        last_reader[r] = -1;
        continue;
      }
      node_request_[w] = static_cast<int>(requests_.size());
      requests_.push_back({bytes_of(w), now, now});
    }
    for (const NodeRef r : kernel.reads) {
      const int request = node_request_[r];
      if (request >= 0) {
        int& until = requests_[request].last;
        until = std::max(until, now);
      }
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
  // Rounded up to whole cache lines, so that threads never share one.
  if (scratch_per_thread_ > 0) scratch_per_thread_ = (scratch_per_thread_ + 31) / 16 * 16;
  scratch_request_ = static_cast<int>(requests_.size());
  requests_.push_back({scratch_per_thread_ * scratch_threads_ * static_cast<int64_t>(sizeof(float)), 0, last});
  arena_plan_ = plan_arena(requests_);
}

int64_t Executor::constant_bytes(const ConstantPool& pool) const {
  int64_t sum = 0;
  for (const Kernel& k : plan_->kernels) {
    for (const NodeRef w : k.writes) {
      if (k.once && !pool.contains(pool_key(w))) sum += bytes_of(w);
    }
  }
  return sum;
}

void Executor::bind(const std::string& leaf, void* data) { bound_[leaf] = data; }

void Executor::bind_host(const std::string& leaf, const void* host) {
  NACRE_CHECK(!step_reads(leaf), "leaf '" + leaf + "' is read by every step");
  on_host_[leaf] = host;
}

void* Executor::pointer(NodeRef node) const { return node < 0 ? nullptr : pointers_[plan_->alias[node]]; }

void Executor::allocate(std::shared_ptr<void> arena, ConstantPool& pool) {
  NACRE_CHECK(num_threads() == scratch_threads_, "the number of threads changed after the memory was planned");
  const Dfg& dfg = plan_->dfg;
  arena_ = std::move(arena);
  auto* base = static_cast<char*>(arena_.get());
  for (NodeRef i = 0; i < dfg.size(); ++i) {
    if (is_bound_leaf(dfg[i]) && !on_host_.contains(dfg[i].name)) {
      const auto found = bound_.find(dfg[i].name);
      NACRE_CHECK(found != bound_.end(), "leaf '" + dfg[i].name + "' is not bound");
      pointers_[i] = found->second;
    } else if (node_request_[i] >= 0) {
      pointers_[i] = base + arena_plan_.offsets[node_request_[i]];
    }
  }
  for (const auto& [name, data] : bound_outputs_) {
    pointers_[plan_->alias[dfg.output(name)]] = data;
  }
  for (size_t k = 0; k < plan_->kernels.size(); ++k) {
    const Kernel& kernel = plan_->kernels[k];
    if (!kernel.once) continue;
    bool all_known = true;
    for (const NodeRef w : kernel.writes) {
      Tensor& constant = pool[pool_key(w)];
      all_known &= constant.defined();
      if (!constant.defined()) {
        const std::shared_ptr<void> memory = backend_->allocate(bytes_of(w));
        constant = Tensor(DType::u8, {bytes_of(w)}, memory, memory.get());
      }
      constants_[w] = constant;
      pointers_[w] = constant.raw();
    }
    pooled_[k] = all_known ? 1 : 0;
  }
  cpu::Scratch scratch;
  scratch.data = reinterpret_cast<float*>(base + arena_plan_.offsets[scratch_request_]);
  scratch.per_thread = scratch_per_thread_;
  steps_.clear();
  const auto workspace_of = [&](size_t k) -> void* {
    const int request = workspace_request_[k];
    return request < 0 ? nullptr : base + arena_plan_.offsets[request];
  };
  for (size_t k = 0; k < plan_->kernels.size(); ++k) {
    if (!pooled_[k]) backend_->announce(*this, plan_->kernels[k], workspace_of(k));
  }
  for (size_t k = 0; k < plan_->kernels.size(); ++k) {
    void* const workspace = workspace_of(k);
    const auto bind = [this, k, scratch, workspace] {
      bound_variants_[k].clear();
      return backend_->bind(*this, plan_->kernels[k], scratch, workspace, bound_variants_[k]);
    };
    if (pooled_[k]) {
      // The results of this kernel are shared and already there. A caller that runs it anyway, to
      // time it, waits for the binding.
      steps_.emplace_back([bind, step = Step()]() mutable {
        if (!step) step = bind();
        step();
      });
    } else {
      steps_.push_back(bind());
    }
  }
}

Plan Executor::plan_as_bound() const {
  Plan plan = *plan_;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    for (const VariantChoice& v : bound_variants_[k]) {
      std::vector<VariantChoice>& planned = plan.kernels[k].variants;
      const auto same = std::find_if(planned.begin(), planned.end(),
                                     [&](const VariantChoice& other) { return other.decision == v.decision; });
      if (same == planned.end()) {
        planned.push_back(v);
      } else if (same->variant != v.variant) {
        *same = v;
      }
    }
  }
  return plan;
}

void Executor::prepare() {
  bool any = false;
  for (size_t k = 0; k < steps_.size(); ++k) any |= plan_->kernels[k].once && !pooled_[k];
  if (!any) return;
  for (const auto& [leaf, host] : on_host_) {
    const NodeRef node = plan_->dfg.find_leaf(leaf);
    if (node >= 0) backend_->write(pointer(node), host, bytes_of(node));
  }
  for (size_t k = 0; k < steps_.size(); ++k) {
    if (!plan_->kernels[k].once || pooled_[k]) continue;
    const TraceSpan span("once", names_[k]);
    steps_[k]();
  }
  backend_->prepared();
}

// Gives state parameters their new values after every kernel has read the old ones.
void Executor::update_state() {
  for (const auto& [name, node] : plan_->dfg.updates()) {
    const NodeRef leaf = plan_->dfg.find_leaf(name);
    backend_->copy(pointer(leaf), pointer(node), bytes_of(leaf));
  }
}

void Executor::run(const StepContext& step) {
  if (!recorded_ && warm_) {
    // The first step ran kernel by kernel, so everything is loaded, and nothing in the loop needs
    // the host any more.
    std::vector<Step> all;
    for (size_t k = 0; k < steps_.size(); ++k) {
      if (!plan_->kernels[k].once) all.push_back(steps_[k]);
    }
    all.emplace_back([this] { update_state(); });
    whole_ = backend_->record(all);
    recorded_ = true;
  }
  if (!whole_) return run_timed(step);
  backend_->begin_step(step);
  const TraceSpan span("kernel", "step");
  whole_();
}

void Executor::run_once(const StepContext& step) {
  backend_->begin_step(step);
  for (size_t k = 0; k < steps_.size(); ++k) {
    const TraceSpan span("kernel", names_[k]);
    if (!plan_->kernels[k].once) steps_[k]();
  }
  update_state();
}

void Executor::run_timed(const StepContext& step) {
  warm_ = true;
  backend_->begin_step(step);
  for (size_t k = 0; k < steps_.size(); ++k) {
    if (plan_->kernels[k].once) continue;
    const TraceSpan span("kernel", names_[k]);
    times_[k].seconds += backend_->seconds(steps_[k]);
    ++times_[k].runs;
  }
  update_state();
}

bool Executor::step_reads(const std::string& leaf) const {
  const NodeRef wanted = plan_->dfg.find_leaf(leaf);
  const auto among = [&](const std::vector<NodeRef>& list) {
    return std::any_of(list.begin(), list.end(), [&](NodeRef i) { return i >= 0 && plan_->alias[i] == wanted; });
  };
  return wanted >= 0 && std::any_of(plan_->kernels.begin(), plan_->kernels.end(), [&](const Kernel& k) {
           return !k.once && (among(k.reads) || among(k.args) || among(k.program.operands) || among(k.tail.operands) ||
                              among(plan_->dfg[k.root].inputs));
         });
}

double Executor::time_kernel(size_t kernel) { return backend_->seconds(steps_[kernel]); }

const float* Executor::value(NodeRef node) {
  if (backend_->on_host()) return static_cast<const float*>(pointer(node));
  Tensor& host = fetched_[node];
  if (!host.defined()) host = Tensor(DType::u8, {bytes_of(node)});
  backend_->read(host.raw(), pointer(node), bytes_of(node));
  return static_cast<const float*>(host.raw());
}

const float* Executor::output(std::string_view name) { return value(plan_->dfg.output(name)); }

}  // namespace nacre
