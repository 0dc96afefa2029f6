// Backend: where a plan's kernels run and its values live. The executor plans memory and order; a back end knows what a
// kernel needs, binds it to memory, and moves bytes. Pointers are the back end's own: only read() brings values to the
// host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "nacre/device/device.h"
#include "nacre/engine/views.h"
#include "nacre/plan/plan.h"

namespace nacre {

class Executor;
class Optimizer;
struct OptimizerMemory;
struct OptimizerOptions;
struct TrainedParameter;

struct KernelNeeds {
  int64_t scratch_floats = 0;   // per thread of the host
  int64_t workspace_bytes = 0;  // shared, for the duration of the kernel
};

// Runs one kernel, or a whole step. All pointers are resolved when it is made; calling it allocates nothing.
using Step = std::function<void()>;

class Backend {
 public:
  virtual ~Backend() = default;
  // The name of the kind of device, "cpu" or "cuda", for messages and cache keys. Code that behaves differently on
  // different devices asks the functions below.
  virtual std::string name() const = 0;
  // Whether kernels run on the host and values lie in its memory, where pointers can be read and written in place.
  virtual bool on_host() const = 0;
  // Whether the first run of a kernel takes longer than the later ones, for example because its code is loaded then.
  // Such a run must not be timed.
  virtual bool needs_warm_up() const = 0;
  // Says which values it stores as bf16 (Plan::narrow).
  virtual void narrow(Plan&) const {}
  // Returns what planning knows of the device that kernels run on.
  virtual DeviceTraits traits() const = 0;
  virtual KernelNeeds needs(const Executor& executor, const Kernel& kernel) = 0;
  // Adds to `bound` how the kernel runs, for each decision about it (plan/variants.h).
  virtual Step bind(const Executor& executor, const Kernel& kernel, const cpu::Scratch& scratch, void* workspace,
                    std::vector<VariantChoice>& bound) = 0;
  // The kernel will be bound soon: what takes long and can be done beside other work (compiling) may begin. Called for
  // all kernels before the first bind(), which may have to wait for its own.
  virtual void announce(const Executor& /*executor*/, const Kernel& /*kernel*/, void* /*workspace*/) {}

  virtual std::shared_ptr<void> allocate(int64_t bytes) = 0;
  virtual int64_t available_bytes() = 0;
  virtual void write(void* to, const void* host, int64_t bytes) = 0;
  // The same from any thread, beside what runs: seen by steps after the next begin_step(). `host` may change at once.
  virtual void send(void* to, const void* host, int64_t bytes) { write(to, host, bytes); }
  // The same to memory of its own; it need not be on its way before flush() or the next begin_step().
  virtual std::shared_ptr<void> place(const void* host, int64_t bytes) {
    std::shared_ptr<void> memory = allocate(bytes);
    send(memory.get(), host, bytes);
    return memory;
  }
  virtual void flush() {}
  // Returns memory in which kernels find these bytes: on the host the bytes themselves, which must stay as they are, on
  // a device a copy.
  virtual std::shared_ptr<void> borrow(const void* host, int64_t bytes) {
    std::shared_ptr<void> memory = allocate(bytes);
    write(memory.get(), host, bytes);
    return memory;
  }
  virtual void read(void* host, const void* from, int64_t bytes) = 0;  // waits for the steps before it
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  virtual void clear(void* to, int64_t bytes) = 0;
  // The graph's forms this back end holds, for the memory bill.
  virtual int64_t graph_bytes() const = 0;

  // The constants of an executor are there, or have changed.
  virtual void prepared() {}
  // What the random numbers of the following steps depend on.
  virtual void begin_step(const StepContext& step) = 0;
  // The steps as one, launched at once; null: they are called one by one.
  virtual Step record(const std::vector<Step>& steps) = 0;
  virtual double seconds(const Step& step) = 0;
  // Waits until the code of all kernels that were bound is compiled, so that no step has to wait for it.
  virtual void settle() {}
  // Returns the end of all that was queued so far; null where work is done when the call that asks for it returns.
  virtual DeviceEvent mark() { return nullptr; }
  // Waits until the device has come to `event`.
  virtual void await(const DeviceEvent& /*event*/) {}
  // Returns the seconds of the device from one event to another; waits for both.
  virtual double elapsed(const DeviceEvent& /*from*/, const DeviceEvent& /*to*/) { return 0; }

  // Returns an optimiser of weights in this back end's memory.
  virtual std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                                    const std::vector<TrainedParameter>& parameters,
                                                    const OptimizerMemory& memory) = 0;

  // The same back end for one batch: it sees every form of graphs that this one holds (which must not change while it
  // lives) and drops with itself what it makes. Nothing is tuned for it: its shapes do not come again.
  virtual std::shared_ptr<Backend> scoped() = 0;
};

// The host: values in ordinary memory, kernels on the threads of base/parallel.h.
std::shared_ptr<Backend> make_cpu_backend(std::shared_ptr<GraphViews> views);

}  // namespace nacre
