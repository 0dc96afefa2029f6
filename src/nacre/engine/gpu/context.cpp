#include "nacre/engine/gpu/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/trace.h"
#include "nacre/engine/gpu/rows_parts.h"
#include "nacre/kernel/cuda/sample.h"

namespace nacre {

GpuContext::GpuContext(std::shared_ptr<GpuLoader> loader, std::shared_ptr<GraphViews> views, const GpuOptions& options)
    : loader_(std::move(loader)), device_(loader_->device()), views_(std::move(views)), options_(options) {
  step_ = allocate(cuda::kStepBytes);
  pinned_ = std::make_shared<PinnedPool>(device_);
}

GpuContext::GpuContext(std::shared_ptr<GpuContext> parent)
    : parent_(std::move(parent)),
      loader_(parent_->loader_),
      device_(parent_->device_),
      views_(std::make_shared<GraphViews>(parent_->views_)),
      options_(parent_->options_),
      step_(parent_->step_),
      pinned_(parent_->pinned_) {
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

int64_t GpuContext::stage(int64_t bytes) {
  if (staged_.used + bytes > staged_.bytes) {
    flush();
    staged_ = pinned_->take(bytes);
    staged_for_ = allocate(staged_.bytes);
    flushed_ = 0;
  }
  const int64_t at = staged_.used;
  staged_.used = std::min(staged_.bytes, (at + bytes + 255) / 256 * 256);
  return at;
}

int64_t GpuContext::stage(const void* host, int64_t bytes) {
  const int64_t at = stage(bytes);
  std::memcpy(staged_.memory.get() + at, host, static_cast<size_t>(bytes));
  return at;
}

void GpuContext::send(void* to, const void* host, int64_t bytes) {
  if (bytes == 0) return;
  if (!parent_) return device_->upload(to, host, bytes);
  const int64_t at = stage(host, bytes);
  flush(at);
  device_->upload_beside(to, staged_.memory.get() + at, bytes);
  sent_ = device_->copied();
  flushed_ = staged_.used;
}

std::shared_ptr<void> GpuContext::place(const void* host, int64_t bytes) {
  if (bytes == 0) return step_;  // some address: nobody reads there
  if (!parent_) {
    std::shared_ptr<void> memory = allocate(bytes);
    send(memory.get(), host, bytes);
    return memory;
  }
  const int64_t at = stage(host, bytes);
  return {staged_for_, static_cast<char*>(staged_for_.get()) + at};
}

void GpuContext::flush(int64_t end) {
  if (flushed_ == end) return;
  device_->upload_beside(static_cast<char*>(staged_for_.get()) + flushed_, staged_.memory.get() + flushed_,
                         end - flushed_);
  sent_ = device_->copied();
  flushed_ = end;
}

void GpuContext::arrived() {
  flush();
  if (sent_) device_->wait_for(sent_);
  sent_.reset();
}

int GpuContext::prepare_gemm(const GemmShape& shape, bool tune) {
  const TraceSpan span("prepare", "product");
  const int handle = device_->prepare_gemm(shape, tune);
  if (parent_) products_.push_back(handle);
  return handle;
}

std::shared_ptr<void> GpuContext::allocate(int64_t bytes) {
  return {device_->allocate(std::max<int64_t>(bytes, 16)),
          [device = device_](void* memory) { device->release(memory); }};
}

const void* GpuContext::keep(const std::string& key, const void* host, int64_t bytes) {
  std::shared_ptr<void>& memory = slot(&GpuContext::resident_, key);
  if (!memory) {
    const TraceSpan span("prepare", "stage bytes");
    memory = place(host, bytes);
    resident_bytes_ += bytes;
  }
  return memory.get();
}

std::shared_ptr<void> GpuContext::keep(int64_t bytes, FunctionRef<void(void*)> fill) {
  const TraceSpan span("prepare", "stage bytes");
  resident_bytes_ += bytes;
  if (bytes == 0) return step_;
  if (!parent_) {
    std::vector<char> values(static_cast<size_t>(bytes));
    fill(values.data());
    return place(values.data(), bytes);
  }
  const int64_t at = stage(bytes);
  fill(staged_.memory.get() + at);
  return {staged_for_, static_cast<char*>(staged_for_.get()) + at};
}

const void* GpuContext::resident(const void* host, int64_t bytes) {
  return host == nullptr ? nullptr : keep(fmt::format("{} {}", host, bytes), host, bytes);
}

GpuContext::Derived& GpuContext::derived(const std::string& key, int64_t bytes) {
  Derived& d = slot(&GpuContext::derived_, key);
  if (!d.memory) {
    d.memory = allocate(bytes);
    resident_bytes_ += bytes;
  }
  return d;
}

const ReduceRows& GpuContext::reduce_rows(const std::string& key, const std::function<ReduceRows()>& make) {
  std::shared_ptr<const ReduceRows>& rows = slot(&GpuContext::reduce_rows_, key);
  if (!rows) rows = std::make_shared<ReduceRows>(make());
  return *rows;
}

int GpuContext::choose(const std::string& key, const std::function<std::vector<Step>()>& variants,
                       const std::function<int(const std::vector<Step>&)>& fastest) {
  if (parent_ && parent_->choices_.contains(key)) return parent_->choices_.at(key);
  const auto known = choices_.find(key);
  if (known != choices_.end()) return known->second;
  const std::vector<Step> steps = variants();
  return asking_ ? 0 : choices_[key] = fastest(steps);
}

Step GpuContext::launch(const cuda::Source& source, int64_t blocks, LaunchArgs args) {
  return launch(GpuFunction{loader_->code(source), source.threads, source.shared_bytes}, blocks, std::move(args));
}

Step GpuContext::launch(const GpuFunction& function, int64_t blocks, LaunchArgs args) {
  if (blocks <= 0) return [] {};
  const LaunchShape shape{blocks, function.threads, function.shared_bytes};
  return [device = device_.get(), code = function.code, shape, args = std::move(args)]() mutable {
    device->launch(code->get(), shape, args.pointers());
  };
}

void GpuContext::gather_rows(const void* table, const NodeId* ids, void* out, const RowsOf& rows) {
  const cuda::Source source = cuda::gather_rows(rows.width);
  const int64_t threads = cuda::gather_threads(rows.count, rows.width);
  LaunchArgs args;
  args.add(table).add(ids).add(out).add(rows.count);
  launch(source, (threads + source.threads - 1) / source.threads, args)();
}

int GpuKernel::layer() const {
  const Node& root = node(kernel.root);
  if (root.op == Op::lstm) return root.type.space.layer - 1;
  if (root.op == Op::lstm_grad_z || root.op == Op::lstm_grad_w) return node(root.inputs[1]).type.space.layer;
  for (const NodeRef in : root.inputs) {
    if (node(in).type.space.is_typed()) return node(in).type.space.layer;
  }
  return root.type.space.layer;
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
