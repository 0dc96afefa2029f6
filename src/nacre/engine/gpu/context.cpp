#include "nacre/engine/gpu/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/trace.h"
#include "nacre/kernel/cuda/sample.h"

namespace nacre {

GpuContext::GpuContext(std::shared_ptr<GpuLoader> loader, std::shared_ptr<GraphViews> views, const GpuOptions& options)
    : loader_(std::move(loader)),
      device_(loader_->device()),
      views_(std::move(views)),
      options_(options),
      step_(allocate_on(device_, cuda::kStepBytes)),
      pinned_(std::make_shared<PinnedPool>(device_)),
      staging_(device_, nullptr) {}

GpuContext::GpuContext(std::shared_ptr<GpuContext> parent)
    : parent_(std::move(parent)),
      loader_(parent_->loader_),
      device_(parent_->device_),
      views_(std::make_shared<GraphViews>(parent_->views_)),
      options_(parent_->options_),
      cache_(&parent_->cache_),
      step_(parent_->step_),
      pinned_(parent_->pinned_),
      staging_(device_, pinned_) {
  options_.tune = false;
}

GpuContext::~GpuContext() {
  // A device that has failed fails here again. Whoever called it first was told.
  try {
    arrived();  // the memory is given to others now
    for (const int handle : products_) device_->release_gemm(handle);
  } catch (const std::exception& error) {
    log_verbose(std::string("the device did not end its work: ") + error.what());
  }
}

std::shared_ptr<void> GpuContext::place(const void* host, int64_t bytes) {
  return bytes == 0 ? step_ : staging_.place(host, bytes);  // of no bytes any address will do: nobody reads there
}

int GpuContext::prepare_gemm(const GemmShape& shape, bool tune) {
  const TraceSpan span("prepare", "product");
  const int handle = device_->prepare_gemm(shape, tune);
  if (parent_) products_.push_back(handle);
  return handle;
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

int GpuContext::choose(const std::string& key, const std::function<std::vector<Step>()>& variants,
                       const std::function<int(const std::vector<Step>&)>& fastest) {
  if (const Choice* known = cache_.find<Choice>(key)) return known->variant;
  const std::vector<Step> steps = variants();
  return asking_ ? 0 : cache_.put(key, Choice{fastest(steps)}).variant;
}

Step GpuContext::launch(const cuda::Source& source, int64_t blocks, cuda::LaunchParams params) {
  return launch(GpuFunction{loader_->code(source), source.threads, source.shared_bytes}, blocks, std::move(params));
}

Step GpuContext::launch(const GpuFunction& function, int64_t blocks, cuda::LaunchParams params) {
  cuda::check_params(function.code->source(), params);
  if (blocks <= 0) return [] {};
  // Copies of the step share the values, so that each launch passes the same list of addresses.
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

void GpuContext::gather_rows(const void* table, const NodeId* ids, void* out, const RowsOf& rows) {
  const cuda::Source source = cuda::gather_rows(rows.width);
  const int64_t threads = cuda::gather_threads(rows.count, rows.width);
  const cuda::GatherRowsParams params = {.table = table, .ids = ids, .out = out, .rows = rows.count};
  launch(source, (threads + source.threads - 1) / source.threads, params)();
}

void GpuContext::scatter_rows(const void* from, const NodeId* ids, void* table, const RowsOf& rows) {
  const cuda::Source source = cuda::scatter_rows(rows.width);
  const int64_t threads = cuda::gather_threads(rows.count, rows.width);
  const cuda::ScatterRowsParams params = {.from = from, .ids = ids, .table = table, .rows = rows.count};
  launch(source, (threads + source.threads - 1) / source.threads, params)();
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
