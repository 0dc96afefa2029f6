// A Backend is where the kernels of a plan run and its values live. The executor plans memory and
// order. A back end knows what a kernel needs, binds it to memory, and moves bytes. Pointers are
// addresses in the memory of the back end: only read() brings values to the host.
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
  int64_t scratch_floats = 0;   // floats of scratch memory for each thread of the host
  int64_t workspace_bytes = 0;  // shared by all threads while the kernel runs
};

// A Step is a function that runs one kernel, or a whole step. All pointers are resolved when the
// function is made; calling it allocates nothing.
using Step = std::function<void()>;

class Backend {
 public:
  virtual ~Backend() = default;
  // Returns the name of the kind of device, "cpu" or "cuda", for messages and cache keys. Code that
  // behaves differently on different devices must use the functions below instead.
  virtual std::string name() const = 0;
  // Returns whether kernels run on the host and values are in its memory, where pointers can be
  // read and written in place.
  virtual bool on_host() const = 0;
  // Returns whether the first run of a kernel takes longer than later ones, for example because its
  // code is loaded then. Such a run must not be timed.
  virtual bool needs_warm_up() const = 0;
  // Returns what planning knows of the device that kernels run on.
  virtual DeviceTraits traits() const = 0;
  virtual KernelNeeds needs(const Executor& executor, const Kernel& kernel) = 0;
  // Adds to `bound` how the kernel runs, for each decision about it (plan/variants.h).
  virtual Step bind(const Executor& executor, const Kernel& kernel, const cpu::Scratch& scratch, void* workspace,
                    std::vector<VariantChoice>& bound) = 0;
  // Tells the back end that the kernel will be bound soon, so that it may begin work that takes
  // long and can run in the background (compiling). Called for all kernels before the first bind(),
  // which may have to wait for that work.
  virtual void announce(const Executor& /*executor*/, const Kernel& /*kernel*/, void* /*workspace*/) {}

  virtual std::shared_ptr<void> allocate(int64_t bytes) = 0;
  virtual int64_t available_bytes() = 0;
  virtual void write(void* to, const void* host, int64_t bytes) = 0;
  // Writes bytes as write() does, but may be called from any thread and while steps run. Steps
  // after the next begin_step() see the bytes. `host` may change as soon as the call returns.
  virtual void send(void* to, const void* host, int64_t bytes) { write(to, host, bytes); }
  // Sends bytes as send() does, to new memory, and returns that memory. The bytes need not be under
  // way before flush() or the next begin_step().
  virtual std::shared_ptr<void> place(const void* host, int64_t bytes) {
    std::shared_ptr<void> memory = allocate(bytes);
    send(memory.get(), host, bytes);
    return memory;
  }
  virtual void flush() {}
  // Returns memory in which kernels find these bytes: on the host the bytes themselves, which must
  // stay as they are; on a device a copy.
  virtual std::shared_ptr<void> borrow(const void* host, int64_t bytes) {
    std::shared_ptr<void> memory = allocate(bytes);
    write(memory.get(), host, bytes);
    return memory;
  }
  // Waits for the steps that were begun before, and copies the bytes to the host.
  virtual void read(void* host, const void* from, int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  virtual void clear(void* to, int64_t bytes) = 0;
  // Adds the `count` numbers at `from` to those at `to`.
  virtual void add(float* to, const float* from, int64_t count) = 0;
  // Returns the bytes of the forms of graphs that this back end holds, for the memory bill.
  virtual int64_t graph_bytes() const = 0;
  // Drops the forms of a graph that will be freed. No executor may use them any more. Returns false
  // if the back end cannot do that; the graph must then stay as long as the back end.
  virtual bool forget(const Graph& /*graph*/) { return false; }

  // An executor calls this function when it has computed its constants.
  virtual void prepared() {}
  // Sets what the random numbers of the following steps depend on.
  virtual void begin_step(const StepContext& step) = 0;
  // Returns whether record() can record the kernel. The kernels of a step that it cannot record run
  // between the recordings of the others.
  virtual bool records(const Executor& /*executor*/, const Kernel& /*kernel*/) const { return false; }
  // Returns one step that launches all `steps` at once. They must be kernels that records()
  // accepts, or copies within the back end.
  virtual Step record(const std::vector<Step>& steps) = 0;
  virtual double seconds(const Step& step) = 0;
  // Waits until the code of all bound kernels is compiled, so that no step has to wait for it.
  virtual void settle() {}
  // Returns an event at the end of everything queued so far; null if calls return only when their
  // work is done.
  virtual DeviceEvent mark() { return nullptr; }
  // Waits until the device has reached `event`.
  virtual void await(const DeviceEvent& /*event*/) {}
  // Returns the device's seconds from one event to another; waits for both.
  virtual double elapsed(const DeviceEvent& /*from*/, const DeviceEvent& /*to*/) { return 0; }

  // Returns an optimiser for weights in this back end's memory.
  virtual std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                                    const std::vector<TrainedParameter>& parameters,
                                                    const OptimizerMemory& memory) = 0;

  // Returns a back end for one batch. It reads the forms of graphs that this back end holds, which
  // must not change while the returned one lives; forms that the returned one makes end with it. It
  // times no variants of kernels, because the shapes of a batch do not come again.
  virtual std::shared_ptr<Backend> scoped() = 0;
};

// Makes the back end of the host, with values in ordinary memory and kernels on the threads of
// base/parallel.h.
std::shared_ptr<Backend> make_cpu_backend(std::shared_ptr<GraphViews> views);

}  // namespace nacre
