#include "nacre/engine/gpu/gpu_backend.h"

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/engine/gpu/optimizer.h"
#include "nacre/kernel/cuda/exchange.h"
#include "nacre/plan/variants/place.h"

namespace nacre {
namespace {

const GpuFamily& binder_of(const Kernel& kernel, const Dfg& dfg) {
  switch (family_of(kernel, dfg)) {
    case KernelFamily::rows:
      return kGpuRows;
    case KernelFamily::matrix:
      return kGpuMatrix;
    case KernelFamily::typed:
      return kGpuTyped;
    case KernelFamily::tasks:
      return kGpuTasks;
    case KernelFamily::lstm:
      return kGpuLstm;
    case KernelFamily::loss:
      return kGpuLoss;
    case KernelFamily::copy:
      return kGpuCopy;
    case KernelFamily::exchange:  // The executor binds these kernels.
    case KernelFamily::host:
      break;
  }
  return kGpuHost;
}

class GpuBackend : public Backend {
 public:
  explicit GpuBackend(std::shared_ptr<GpuContext> context) : context_(std::move(context)) {}

  std::string name() const override { return "cuda"; }
  bool on_host() const override { return false; }
  bool needs_warm_up() const override { return true; }
  DeviceTraits traits() const override { return context_->traits(); }
  KernelNeeds needs(const Executor& executor, const Kernel& kernel) override {
    return binder_of(kernel, executor.plan().dfg).needs({*context_, executor, kernel});
  }
  Step bind(const Executor& executor, const Kernel& kernel, const cpu::Scratch&, void* workspace,
            std::vector<VariantChoice>& bound) override {
    if (const RankLinks* links = executor.blocks().links()) context_->set_row_ids(*links);
    Step step = binder_of(kernel, executor.plan().dfg).bind({*context_, executor, kernel, &bound}, workspace);
    // A kernel that runs once does so before the first begin_step(), so its step itself waits for
    // the bytes that were sent.
    return kernel.once ? then([context = context_] { context->arrived(); }, std::move(step)) : step;
  }
  // When kernels whose variants are timed are bound, they wait for their compilation one after
  // another. So this function binds each of them without timing first, which requests all their
  // sources.
  void announce(const Executor& executor, const Kernel& kernel, void* workspace) override {
    const GpuFamily& family = binder_of(kernel, executor.plan().dfg);
    if (!context_->options().tune || (&family != &kGpuRows && &family != &kGpuMatrix)) return;
    const GpuContext::Asking asking(*context_);
    family.bind({*context_, executor, kernel}, workspace);
  }

  std::shared_ptr<void> allocate(int64_t bytes) override { return context_->allocate(bytes); }
  int64_t available_bytes() override { return device().info().free_bytes - device().used_bytes(); }
  void write(void* to, const void* host, int64_t bytes) override {
    if (bytes > 0) device().upload(to, host, bytes);
  }
  void send(void* to, const void* host, int64_t bytes) override { context_->send(to, host, bytes); }
  std::shared_ptr<void> place(const void* host, int64_t bytes) override { return context_->place(host, bytes); }
  void flush() override { context_->flush(); }
  void read(void* host, const void* from, int64_t bytes) override {
    if (bytes > 0) device().download(host, from, bytes);
  }
  void copy(void* to, const void* from, int64_t bytes) override {
    if (bytes > 0) device().copy(to, from, bytes);
  }
  void clear(void* to, int64_t bytes) override {
    if (bytes > 0) device().fill(to, 0, bytes);
  }
  void add(float* to, const float* from, int64_t count) override {
    // The arrays are added as matrices with one column, so that one kernel serves arrays of any
    // size.
    const cuda::RowMove move{.floats = 1, .words = 1, .action = cuda::RowAction::add};
    const cuda::MoveRowsParams params = {.from = from,
                                         .from_index = nullptr,
                                         .to = to,
                                         .to_index = nullptr,
                                         .rows = count,
                                         .from_pitch = 1,
                                         .to_pitch = 1};
    context_->launch(cuda::move_rows(move), cuda::move_blocks(move, count), params)();
  }
  int64_t graph_bytes() const override { return context_->resident_bytes(); }

  void prepared() override { context_->constants_changed(); }
  void begin_step(const StepContext& step) override {
    context_->arrived();
    if (started_ && step.seed == step_.seed && step.step == step_.step) return;
    started_ = true;
    step_ = step;
    const uint64_t words[2] = {step.seed, step.step};
    device().upload_few(const_cast<void*>(context_->step()), words, sizeof words);
  }

  bool records(const Executor& executor, const Kernel& kernel) const override {
    return !waits_for_host(kernel, executor.plan().dfg);
  }
  Step record(const std::vector<Step>& steps) override {
    context_->arrived();
    device().begin_capture();
    try {
      for (const Step& step : steps) step();
    } catch (...) {
      drop_recording();
      throw;
    }
    const LaunchGraph graph = device().end_capture();
    return [context = context_, graph] { context->device().replay(graph); };
  }

  double seconds(const Step& step) override {
    context_->compiler().settle();
    context_->arrived();
    const DeviceEvent from = device().record();
    step();
    const DeviceEvent to = device().record();
    return device().elapsed(from, to);
  }
  void settle() override { context_->compiler().settle(); }
  DeviceEvent mark() override { return device().record(); }
  void await(const DeviceEvent& event) override { device().await(event); }
  double elapsed(const DeviceEvent& from, const DeviceEvent& to) override { return device().elapsed(from, to); }
  std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                            const std::vector<TrainedParameter>& parameters,
                                            const OptimizerMemory& memory) override {
    return std::make_unique<GpuOptimizer>(context_, options, parameters, memory);
  }
  std::shared_ptr<Backend> scoped() override { return make_gpu_backend(std::make_shared<GpuContext>(context_)); }

 private:
  Device& device() const { return context_->device(); }
  // Ends a recording in which a step failed. Errors of the recording are ignored, because the error
  // of the step matters more.
  void drop_recording() {
    try {
      device().end_capture();
    } catch (const std::exception& e) {
      log_verbose(std::string("a recording was dropped: ") + e.what());
    }
  }

  std::shared_ptr<GpuContext> context_;
  StepContext step_;
  bool started_ = false;
};

}  // namespace

std::shared_ptr<Backend> make_gpu_backend(std::shared_ptr<GpuContext> context) {
  return std::make_shared<GpuBackend>(std::move(context));
}

}  // namespace nacre
