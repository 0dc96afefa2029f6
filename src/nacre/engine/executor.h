// Executor: runs a plan on a back end. The constructor prepares the views of the graph and plans
// memory exactly; allocate() takes the memory; prepare() computes what never changes; run() is one
// step and allocates nothing.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/engine/backend.h"
#include "nacre/engine/memory.h"
#include "nacre/plan/plan.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

// Holds values that depend only on the graph and the inputs. The key of a value is the text of the
// expression that computes it. The training plan and the evaluation plan of a model share the
// values.
using ConstantPool = std::map<std::string, Tensor>;

struct ExecutorOptions {
  // Whether kernels run while ranks communicate, and early rows are computed early. If not, every
  // communication kernel ends before the next kernel begins.
  bool overlap = true;
};

struct KernelTime {
  double seconds = 0;  // sum over all runs
  int64_t runs = 0;
};

struct ExchangeStep;

class Executor {
 public:
  // Makes an executor of a plan that it shares with other executors. So a plan can run on many
  // blocks, one after another.
  Executor(std::shared_ptr<const Plan> plan, Blocks blocks, std::shared_ptr<Backend> backend,
           const ExecutorOptions& options = {});
  Executor(Plan plan, Blocks blocks, std::shared_ptr<Backend> backend, const ExecutorOptions& options = {});
  // Makes an executor on the CPU.
  Executor(Plan plan, Blocks blocks, std::shared_ptr<GraphViews> views);
  Executor(const Executor&) = delete;  // bound kernels point into the executor
  Executor& operator=(const Executor&) = delete;

  const Plan& plan() const { return *plan_; }
  // Returns the plan with the variants of its kernels as they were bound. These include variants
  // that were chosen by timing, and those taken because the planned ones declined. Before
  // allocate() this is plan().
  Plan plan_as_bound() const;
  const Blocks& blocks() const { return blocks_; }
  Backend& backend() const { return *backend_; }
  // Returns the memory of a value (in the back end); null for -1 and for values that are not
  // stored.
  void* pointer(NodeRef node) const;
  // Returns whether the value is stored as bf16.
  bool is_narrow(NodeRef node) const { return plan_->is_narrow(node); }
  // Return the bytes that allocate() will take: those of the arena, which executors that never run
  // at the same time may share, and those of the constants that are not in `pool` yet.
  int64_t arena_bytes() const { return arena_plan_.bytes; }
  int64_t constant_bytes(const ConstantPool& pool) const;
  const ArenaPlan& arena_plan() const { return arena_plan_; }

  // Binds a leaf. Leaves must be bound before allocate(); the memory must stay valid and may be
  // written between runs.
  void bind(const std::string& leaf, void* data);
  // Makes the output lie at `data` instead of in the arena. Must be called before allocate().
  void bind_output(const std::string& output, void* data) { bound_outputs_[output] = data; }
  // Binds a leaf that no step reads. Its bytes are copied from host memory into the arena for
  // prepare() only.
  void bind_host(const std::string& leaf, const void* host);
  // Gives all values memory and binds all kernels. `arena` must hold arena_bytes() bytes and be
  // aligned to 64 bytes. Constants that are not in `pool` yet are added to it.
  void allocate(std::shared_ptr<void> arena, ConstantPool& pool);
  // Computes the constants. Must be called again if inputs change.
  void prepare();
  void run(const StepContext& step);
  // Runs a step kernel by kernel without waiting for any of them, for executors that run once.
  void run_once(const StepContext& step);
  // Runs a step kernel by kernel and times each one, even if the back end could run them at once.
  // The time of a communication kernel is that of its two halves.
  void run_timed(const StepContext& step);
  // Runs one kernel by itself, on whatever its operands hold. Returns the seconds.
  double time_kernel(size_t kernel);

  // Returns whether a step reads the leaf, and not only the constants before it.
  bool step_reads(const std::string& leaf) const;

  // Returns a named output in host memory. It is valid after run() until the next run of anything
  // in the same arena.
  const float* output(std::string_view name);
  const float* value(NodeRef node);
  const std::vector<KernelTime>& times() const { return times_; }
  void reset_times() { times_.assign(times_.size(), {}); }

 private:
  int64_t bytes_of(NodeRef node) const;
  std::string pool_key(NodeRef node) const;
  void plan_memory();
  void update_state();
  NodeVector<int> last_readers() const;
  std::vector<int> time_of_kernels() const;
  // Returns, for each kernel, the last time at which it uses its operands and results. `time` has
  // the place of each kernel in the order in which the kernels run.
  std::vector<int> ends_of_kernels(const std::vector<int>& time) const;
  KernelNeeds needs_of(size_t kernel) const;
  void request_leaves(int constants);
  bool share_place(const Kernel& kernel, int k, NodeVector<int>& last_reader);
  using Parts = std::array<Step, 2>;  // the two parts of a kernel with early rows
  void list_actions(const std::map<size_t, ExchangeStep>& exchanges, const std::map<size_t, Parts>& parts);
  std::vector<Step> record_actions();

  // Describes one action of a step (plan/overlap.h).
  struct Action {
    size_t kernel;
    Step step;
    bool last;        // whether the action completes its kernel: false for the first half of a
                      // communication and for the early part of a kernel
    bool recordable;  // whether the back end can record it
  };

  std::shared_ptr<const Plan> plan_;
  Blocks blocks_;
  std::shared_ptr<Backend> backend_;
  ExecutorOptions options_;
  // The two parts of each kernel with early rows. Bound kernels point at them.
  std::map<size_t, std::array<Kernel, 2>> parts_;
  ArenaPlan arena_plan_;
  NodeVector<int> node_request_;        // request of each node in the arena, or -1
  std::vector<int> workspace_request_;  // request of each kernel in the arena, or -1
  int scratch_request_ = -1;
  int64_t scratch_per_thread_ = 0;  // number of floats of scratch memory for each thread
  int scratch_threads_ = 1;
  std::vector<BufferRequest> requests_;

  std::shared_ptr<void> arena_;
  NodeVector<Tensor> constants_;  // keeps pooled memory alive
  NodeVector<void*> pointers_;
  std::map<std::string, void*> bound_;
  std::map<std::string, void*> bound_outputs_;
  std::map<std::string, const void*> on_host_;
  std::vector<Step> steps_;                                 // the bound step of each kernel
  std::vector<std::vector<VariantChoice>> bound_variants_;  // the variants of each kernel
  std::vector<Action> actions_;
  // The actions of a step, recorded in as few pieces as possible. This is empty before the second
  // step, and if the back end cannot record.
  std::vector<Step> pieces_;
  bool recorded_ = false;
  bool warm_ = false;
  std::vector<const char*> names_;  // name of each kernel in the trace
  // For each kernel, whether all its results came from the pool.
  std::vector<char> pooled_;
  std::vector<KernelTime> times_;
  std::map<NodeRef, Tensor> fetched_;  // outputs brought to the host
};

// Returns the expression that computes a node, as text. Equal texts mean equal values for equal
// inputs.
std::string expression_key(const Dfg& dfg, NodeRef node);

}  // namespace nacre
