#include <cstring>

#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/engine/backend.h"
#include "nacre/engine/binder.h"
#include "nacre/engine/optimizer.h"

namespace nacre {
namespace {

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(std::shared_ptr<GraphViews> views) : views_(std::move(views)) {}

  std::string name() const override { return "cpu"; }
  bool on_host() const override { return true; }
  bool needs_warm_up() const override { return false; }
  DeviceTraits traits() const override { return {}; }
  KernelNeeds needs(const Executor& executor, const Kernel& kernel) override {
    return Binder(executor, *views_, step_).needs(kernel);
  }
  Step bind(const Executor& executor, const Kernel& kernel, const cpu::Scratch& scratch, void* workspace,
            std::vector<VariantChoice>&) override {
    return Binder(executor, *views_, step_).bind(kernel, scratch, workspace);
  }

  std::shared_ptr<void> allocate(int64_t bytes) override { return allocate_bytes(bytes); }
  std::shared_ptr<void> borrow(const void* host, int64_t) override {
    return {std::shared_ptr<void>(), const_cast<void*>(host)};
  }
  int64_t available_bytes() override { return available_memory(); }
  void write(void* to, const void* host, int64_t bytes) override { copy(to, host, bytes); }
  void read(void* host, const void* from, int64_t bytes) override { copy(host, from, bytes); }
  void copy(void* to, const void* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void clear(void* to, int64_t bytes) override {
    auto* data = static_cast<char*>(to);
    parallel_for(bytes, 1 << 20, [&](int64_t b, int64_t e) { std::memset(data + b, 0, static_cast<size_t>(e - b)); });
  }
  void add(float* to, const float* from, int64_t count) override {
    parallel_for(count, 1 << 16, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) to[i] += from[i];
    });
  }
  int64_t graph_bytes() const override { return views_->bytes(); }
  bool forget(const Graph& graph) override {
    views_->forget(graph);
    return true;
  }

  void begin_step(const StepContext& step) override { step_ = step; }
  Step record(const std::vector<Step>& steps) override {
    return [steps] {
      for (const Step& step : steps) step();
    };
  }
  double seconds(const Step& step) override {
    const double start = now_seconds();
    step();
    return now_seconds() - start;
  }
  std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                            const std::vector<TrainedParameter>& parameters,
                                            const OptimizerMemory& memory) override {
    return make_cpu_optimizer(options, parameters, memory);
  }
  std::shared_ptr<Backend> scoped() override { return make_cpu_backend(std::make_shared<GraphViews>(views_)); }

 private:
  std::shared_ptr<GraphViews> views_;
  StepContext step_;  // bound kernels point at it
};

}  // namespace

std::shared_ptr<Backend> make_cpu_backend(std::shared_ptr<GraphViews> views) {
  return std::make_shared<CpuBackend>(std::move(views));
}

}  // namespace nacre
