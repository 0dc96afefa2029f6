#include "nacre/engine/gpu/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/trace.h"
#include "nacre/kernel/cuda/sample.h"

namespace nacre {
namespace {

DeviceTraits traits_of(const DeviceInfo& info, const GpuOptions& options) {
  DeviceTraits traits;
  traits.gpu = true;
  traits.arch = info.arch;
  traits.multiprocessors = info.multiprocessors;
  if (info.whole_multiprocessors > 0) {
    const auto share = [&](int count) { return static_cast<double>(count) / info.whole_multiprocessors; };
    traits.part.own = share(info.multiprocessors);
    traits.part.busy = std::max(share(options.busy_multiprocessors), traits.part.own);
  }
  traits.shared_bytes = info.shared_bytes;
  traits.l2_bytes = info.l2_bytes;
  traits.memory_bytes = std::min(info.memory_bytes, info.free_bytes);
  traits.products = options.precision;
  traits.rates = options.rates;
  traits.tune = options.tune;
  traits.cache_bytes = options.cache_bytes;
  traits.joined_rows = options.whole_products;
  return traits;
}

// Runs a step a few times and returns the seconds of the fastest run.
double time_step(Device& device, const Step& step) {
  step();
  double best = 1e30;
  for (int i = 0; i < 3; ++i) {
    const DeviceEvent from = device.record();
    step();
    best = std::min(best, device.elapsed(from, device.record()));
  }
  return best;
}

}  // namespace

GpuContext::GpuContext(std::shared_ptr<GpuCompiler> compiler, std::shared_ptr<GraphViews> views,
                       const GpuOptions& options)
    : compiler_(std::move(compiler)),
      device_(compiler_->device()),
      views_(std::move(views)),
      options_(options),
      traits_(traits_of(device_->info(), options)),
      step_(allocate_on(device_, cuda::kStepBytes)),
      pinned_(std::make_shared<PinnedPool>(device_)),
      staging_(device_, nullptr) {}

GpuContext::GpuContext(std::shared_ptr<GpuContext> parent)
    : parent_(std::move(parent)),
      compiler_(parent_->compiler_),
      device_(parent_->device_),
      views_(std::make_shared<GraphViews>(parent_->views_)),
      options_(parent_->options_),
      traits_(parent_->traits_),
      cache_(&parent_->cache_),
      step_(parent_->step_),
      pinned_(parent_->pinned_),
      staging_(device_, pinned_) {
  traits_ = traits_.of_batches();
  options_.tune = traits_.tune;
}

GpuContext::~GpuContext() {
  // If the device has failed, these calls fail again. The failure was reported to the caller that
  // met it first, so here it is only logged.
  try {
    arrived();  // others may get the memory next
    for (const int handle : products_) device_->release_gemm(handle);
  } catch (const std::exception& error) {
    log_verbose(std::string("the device did not end its work: ") + error.what());
  }
}

std::shared_ptr<void> GpuContext::place(const void* host, int64_t bytes) {
  // Nobody reads an array without bytes, so any address will do.
  return bytes == 0 ? step_ : staging_.place(host, bytes);
}

int GpuContext::prepare_gemm(const GemmShape& shape, int among) {
  const TraceSpan span("prepare", "product");
  const int handle = device_->prepare_gemm(shape, among);
  if (parent_) products_.push_back(handle);
  return handle;
}

void GpuContext::set_row_ids(const RankLinks& links) {
  const void* now = links.vertex_ids().data();
  if (row_ids_ == now) return;
  const void* const words[2] = {resident(links.vertex_ids()), resident(links.edge_ids())};
  arrived();
  device_->upload_few(static_cast<uint64_t*>(step_.get()) + cuda::kStepVertices, words, sizeof words);
  row_ids_ = now;
}

std::shared_ptr<void> GpuContext::allocate(int64_t bytes) { return allocate_on(device_, bytes); }

const void* GpuContext::keep(const std::string& key, const void* host, int64_t bytes) {
  return cache_
      .get<Resident>(key,
                     [&] {
                       const TraceSpan span("prepare", "stage bytes");
                       resident_bytes_ += bytes;
                       return Resident{place(host, bytes)};
                     })
      .memory.get();
}

std::shared_ptr<void> GpuContext::keep(int64_t bytes, FunctionRef<void(void*)> fill) {
  const TraceSpan span("prepare", "stage bytes");
  resident_bytes_ += bytes;
  return bytes == 0 ? step_ : staging_.place_filled(bytes, fill);
}

const void* GpuContext::resident(const void* host, int64_t bytes) {
  return host == nullptr ? nullptr : keep(fmt::format("{} {}", host, bytes), host, bytes);
}

GpuContext::Derived& GpuContext::derived(const std::string& key, int64_t bytes) {
  return cache_.get<Derived>(key, [&] {
    resident_bytes_ += bytes;
    return Derived{allocate(bytes)};
  });
}

std::vector<double> GpuContext::time_steps(const std::string& key, const std::function<std::vector<Step>()>& make) {
  if (const Times* known = cache_.find<Times>(key)) return known->seconds;
  const std::vector<Step> steps = make();
  if (asking_) return {};
  Times times;
  for (const Step& step : steps) times.seconds.push_back(time_step(*device_, step));
  return cache_.put(key, times).seconds;
}

Step GpuContext::launch(const cuda::Source& source, int64_t blocks, cuda::LaunchParams params) {
  return launch(GpuFunction{compiler_->code(source), source.threads, source.shared_bytes}, blocks, std::move(params));
}

Step GpuContext::launch(const GpuFunction& function, int64_t blocks, cuda::LaunchParams params) {
  cuda::check_params(function.code->source(), params);
  if (blocks <= 0) return [] {};
  // A Step may be copied. All copies share `held`, so the list of addresses is made once and stays
  // valid.
  struct Held {
    cuda::LaunchParams params;
    std::vector<void*> pointers;
  };
  const auto held = std::make_shared<Held>(Held{std::move(params), {}});
  held->pointers = held->params.pointers();
  const LaunchShape shape{blocks, function.threads, function.shared_bytes};
  return [device = device_.get(), code = function.code, shape, held = std::shared_ptr<const Held>(held)] {
    device->launch(code->get(), shape, held->pointers);
  };
}

Step GpuContext::gather_step(const void* table, const NodeId* ids, void* out, const RowsOf& rows) {
  const cuda::Source source = cuda::gather_rows(rows.width);
  const int64_t threads = cuda::gather_threads(rows.count, rows.width);
  const cuda::GatherRowsParams params = {.table = table, .ids = ids, .out = out, .rows = rows.count};
  return launch(source, (threads + source.threads - 1) / source.threads, params);
}

Step GpuContext::scatter_step(const void* from, const NodeId* ids, void* table, const RowsOf& rows) {
  const cuda::Source source = cuda::scatter_rows(rows.width);
  const int64_t threads = cuda::gather_threads(rows.count, rows.width);
  const cuda::ScatterRowsParams params = {.from = from, .ids = ids, .table = table, .rows = rows.count};
  return launch(source, (threads + source.threads - 1) / source.threads, params);
}

void GpuKernel::note(VariantChoice choice) const {
  if (bound == nullptr) return;
  const auto same = [&](const VariantChoice& other) { return other.decision == choice.decision; };
  if (std::none_of(bound->begin(), bound->end(), same)) bound->push_back(std::move(choice));
}

int GpuKernel::time_variants(const char* decision, const std::vector<Judged>& all, const std::string& key,
                             const std::function<Step(int)>& step_of) const {
  const std::string_view planned = planned_variant(kernel, decision);
  if (!planned.empty() || !needs_timing(all)) {
    const int taken = variant_to_run(all, planned);
    note(record_of(decision, all, taken));
    return taken;
  }
  std::vector<int> ways;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].accepts()) ways.push_back(static_cast<int>(i));
  }
  const std::vector<double> seconds = context.time_steps(key, [&] {
    std::vector<Step> steps;
    steps.reserve(ways.size());
    for (const int way : ways) steps.push_back(step_of(way));
    return steps;
  });
  if (seconds.empty()) return ways.back();
  size_t best = 0;  // of equally fast variants, the plainest is taken
  for (size_t i = 1; i < seconds.size(); ++i) best = seconds[i] <= seconds[best] ? i : best;
  VariantChoice record = record_timed(decision, all, ways[best], seconds);
  log_verbose(fmt::format("{} of width {}, {}: {} ({})", kernel_name(kernel.kind), width(kernel.root), decision,
                          record.variant, record.why));
  note(std::move(record));
  return ways[best];
}

Step then(Step first, Step second) {
  if (!first) return second;
  if (!second) return first;
  return [a = std::move(first), b = std::move(second)] {
    a();
    b();
  };
}

}  // namespace nacre
