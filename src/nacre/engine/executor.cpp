#include "nacre/engine/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/engine/exchange_step.h"
#include "nacre/plan/early_rows.h"
#include "nacre/plan/narrow.h"
#include "nacre/plan/overlap.h"

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
    // In full-graph training, spaces of different layers name the same rows. The text tells them
    // apart all the same, because in general the blocks of the layers differ.
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

Executor::Executor(Plan plan, Blocks blocks, std::shared_ptr<Backend> backend, const ExecutorOptions& options)
    : Executor(std::make_shared<const Plan>(std::move(plan)), std::move(blocks), std::move(backend), options) {}

Executor::Executor(std::shared_ptr<const Plan> plan, Blocks blocks, std::shared_ptr<Backend> backend,
                   const ExecutorOptions& options)
    : plan_(std::move(plan)), blocks_(std::move(blocks)), backend_(std::move(backend)), options_(options) {
  NACRE_CHECK(plan_->narrow.empty() || stores_bf16(backend_->traits()),
              "the plan stores values as bf16, and the back end does not");
  pointers_.assign(plan_->dfg, nullptr);
  constants_.assign(plan_->dfg, {});
  times_.resize(plan_->kernels.size());
  pooled_.assign(plan_->kernels.size(), 0);
  bound_variants_.resize(plan_->kernels.size());
  for (const Kernel& kernel : plan_->kernels) {
    names_.push_back(trace_name(
        fmt::format("{} %{} {}", kernel_name(kernel.kind), kernel.root, op_info(plan_->dfg[kernel.root].op).name)));
  }
  for (size_t k = 0; k < plan_->kernels.size(); ++k) {
    const Kernel& kernel = plan_->kernels[k];
    if (!options_.overlap || kernel.early.rows == 0) continue;
    auto& [early, rest] = parts_[k] = {kernel, kernel};
    early.rows = {0, kernel.early.rows};
    rest.rows = {kernel.early.rows, walked_rows(*plan_, kernel, blocks_)};
  }
  plan_memory();
}

int64_t Executor::bytes_of(NodeRef node) const { return bytes_in_memory(*plan_, blocks_, node); }

std::string Executor::pool_key(NodeRef node) const {
  return expression_key(plan_->dfg, node) + (is_narrow(node) ? " bf16" : "");
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
    if (pooled_[k] || plan_->kernels[k].kind == KernelKind::exchange) continue;
    backend_->announce(*this, plan_->kernels[k], workspace_of(k));
  }
  std::map<size_t, ExchangeStep> exchanges;
  std::map<size_t, Parts> parts;
  for (size_t k = 0; k < plan_->kernels.size(); ++k) {
    void* const workspace = workspace_of(k);
    const auto bind_part = [this, k, scratch, workspace](const Kernel& kernel) {
      bound_variants_[k].clear();
      return backend_->bind(*this, kernel, scratch, workspace, bound_variants_[k]);
    };
    const auto bind = [this, k, bind_part] { return bind_part(plan_->kernels[k]); };
    if (plan_->kernels[k].kind == KernelKind::exchange) {
      const ExchangeStep& halves = exchanges[k] = bind_exchange(*this, plan_->kernels[k]);
      steps_.emplace_back([halves] {
        halves.start();
        halves.finish();
      });
    } else if (pooled_[k]) {
      // The results of this kernel are in the pool already, so prepare() does not run it. A caller
      // that times the kernel runs it anyway, and it is bound only then.
      steps_.emplace_back([bind, step = Step()]() mutable {
        if (!step) step = bind();
        step();
      });
    } else if (const auto found = parts_.find(k); found != parts_.end()) {
      const Parts& both = parts[k] = {bind_part(found->second[0]), bind_part(found->second[1])};
      steps_.emplace_back([both] {
        both[0]();
        both[1]();
      });
    } else {
      steps_.push_back(bind());
    }
  }
  list_actions(exchanges, parts);
}

void Executor::list_actions(const std::map<size_t, ExchangeStep>& exchanges, const std::map<size_t, Parts>& parts) {
  using What = PlannedAction::What;
  actions_.clear();
  for (const auto& [k, what] : step_actions(*plan_, options_.overlap)) {
    switch (what) {
      case What::start:
        actions_.push_back({k, exchanges.at(k).start, false, false});
        break;
      case What::finish:
        actions_.push_back({k, exchanges.at(k).finish, true, false});
        break;
      default: {
        const Step& step = what == What::run ? steps_[k] : parts.at(k)[what == What::early ? 0 : 1];
        actions_.push_back({k, step, what != What::early, backend_->records(*this, plan_->kernels[k])});
      }
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

// Returns a step as a list of pieces: each run of recordable actions becomes one recorded piece,
// and each other action is a piece of its own. The update of the state comes last. If no action can
// be recorded, the list is empty.
std::vector<Step> Executor::record_actions() {
  const auto can = [](const Action& a) { return a.recordable; };
  std::vector<Step> pieces;
  if (std::none_of(actions_.begin(), actions_.end(), can)) return pieces;
  std::vector<Step> run;
  const auto end_run = [&] {
    if (!run.empty()) pieces.push_back(backend_->record(run));
    run.clear();
  };
  for (const Action& a : actions_) {
    if (!a.recordable) end_run();
    (a.recordable ? run : pieces).push_back(a.step);
  }
  if (!plan_->dfg.updates().empty()) run.emplace_back([this] { update_state(); });
  end_run();
  return pieces;
}

void Executor::run(const StepContext& step) {
  if (!recorded_ && warm_) {
    // The first step ran kernel by kernel, so the code of all kernels is loaded, and the actions
    // can be recorded.
    pieces_ = record_actions();
    recorded_ = true;
  }
  if (pieces_.empty()) return run_timed(step);
  backend_->begin_step(step);
  const TraceSpan span("kernel", "step");
  for (const Step& piece : pieces_) piece();
}

void Executor::run_once(const StepContext& step) {
  backend_->begin_step(step);
  for (const Action& a : actions_) {
    const TraceSpan span("kernel", names_[a.kernel]);
    a.step();
  }
  update_state();
}

void Executor::run_timed(const StepContext& step) {
  warm_ = true;
  backend_->begin_step(step);
  for (const Action& a : actions_) {
    const TraceSpan span("kernel", names_[a.kernel]);
    times_[a.kernel].seconds += backend_->seconds(a.step);
    if (a.last) ++times_[a.kernel].runs;
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
