#include "nacre/engine/gpu/compiler.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/engine/gpu/compile_report.h"

namespace nacre {

DeviceFunction GpuCode::wait() { return compiler_.wait(*this); }

GpuCompiler::GpuCompiler(std::shared_ptr<Device> device, Compile compile, int threads, Compile compile_again)
    : device_(std::move(device)),
      compile_(std::move(compile)),
      compile_again_(std::move(compile_again)),
      threads_(threads) {}

GpuCompiler::~GpuCompiler() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    CompileReport::shared().drop(static_cast<int64_t>(queue_.size()));
    queue_.clear();
  }
  for (std::thread& worker : workers_) worker.join();
}

std::shared_ptr<GpuCompiler> GpuCompiler::open(DevicePlugin& plugin, std::shared_ptr<Device> device, int threads) {
  const int arch = device->info().arch;
  const auto compile = [&plugin, arch](const cuda::Source& source) {
    return compile_cached(plugin, source.text, source.name, arch);
  };
  const auto compile_again = [&plugin, arch](const cuda::Source& source) {
    return nacre::compile_again(plugin, source.text, source.name, arch);
  };
  return std::make_shared<GpuCompiler>(std::move(device), compile, threads < 0 ? num_threads() : threads,
                                       compile_again);
}

int64_t GpuCompiler::num_sources() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(codes_.size());
}

GpuCode* GpuCompiler::code(const cuda::Source& source) {
  std::unique_lock lock(mutex_);
  std::unique_ptr<GpuCode>& known = codes_[source.text];
  if (known) return known.get();
  known.reset(new GpuCode(*this, source));
  GpuCode* const code = known.get();
  CompileReport::shared().add();
  ++not_loaded_;
  if (threads_ == 0) {
    compile(lock, *code);
  } else {
    queue_.push_back(code);
    start_worker();
  }
  return code;
}

const GpuFunction& GpuCompiler::function(const std::string& key, FunctionRef<cuda::RowSource()> make) {
  {
    const std::shared_lock lock(known_mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  const cuda::RowSource made = make();
  const GpuFunction known = {code(made.source), made.source.threads, made.source.shared_bytes, made.per_block};
  const std::lock_guard lock(known_mutex_);
  return known_.emplace(key, known).first->second;
}

// Starts a worker unless there are enough. The caller holds the mutex. A worker ends when there is
// nothing to do; ended workers are joined when a new one starts.
void GpuCompiler::start_worker() {
  if (working_ >= threads_) return;
  if (working_ == 0) {
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }
  try {
    workers_.emplace_back([this] { work(); });
    ++working_;
  } catch (const std::system_error& error) {
    // The system gives no more threads. If there is no worker at all, the thread that needs a
    // function compiles it.
    log_verbose(std::string("kernels are compiled on fewer threads: ") + error.what());
  }
}

void GpuCompiler::work() {
  std::unique_lock lock(mutex_);
  while (!queue_.empty()) {
    GpuCode& next = *queue_.front();
    queue_.pop_front();
    compile(lock, next);
  }
  --working_;
}

// Compiles a source. Releases the lock while the compiler runs.
void GpuCompiler::compile(std::unique_lock<std::mutex>& lock, GpuCode& code) {
  code.state_ = GpuCode::State::compiling;
  lock.unlock();
  std::string image;
  std::exception_ptr error;
  try {
    const TraceSpan span("compile", trace_name(code.source_.name));
    image = compile_(code.source_);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  code.image_ = std::move(image);
  code.error_ = error;
  code.state_ = error ? GpuCode::State::failed : GpuCode::State::compiled;
  changed_.notify_all();
  CompileReport::shared().done();
}

DeviceFunction GpuCompiler::wait(GpuCode& code) {
  {
    std::unique_lock lock(mutex_);
    if (code.state_ == GpuCode::State::queued) {
      // This source is needed before the others, so it moves to the head of the queue.
      const auto at = std::find(queue_.begin(), queue_.end(), &code);
      std::rotate(queue_.begin(), at, at + 1);
      if (working_ == 0) {
        queue_.pop_front();
        compile(lock, code);
      }
    }
    while (code.state_ == GpuCode::State::queued || code.state_ == GpuCode::State::compiling) {
      CompileReport::shared().waiting(device_->info().name);
      changed_.wait_for(lock, std::chrono::milliseconds(100));
    }
    if (code.error_) std::rethrow_exception(code.error_);
  }
  const std::lock_guard loading(load_mutex_);
  if (DeviceFunction const loaded = code.loaded_.load(std::memory_order_acquire)) return loaded;
  DeviceFunction const loaded = load(code);
  code.loaded_.store(loaded, std::memory_order_release);
  code.image_ = {};
  --not_loaded_;
  return loaded;
}

// Loads the image of a source and returns its function. The caller holds load_mutex_.
DeviceFunction GpuCompiler::load(const GpuCode& code) {
  if (!compile_again_) return device_->load(code.image_, code.source_.name);
  return load_kernel(*device_, code.image_, code.source_.name, [&] { return compile_again_(code.source_); });
}

void GpuCompiler::settle() {
  if (not_loaded_.load() == 0) return;
  std::vector<GpuCode*> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [text, code] : codes_) all.push_back(code.get());
  }
  for (GpuCode* code : all) code->get();
}

}  // namespace nacre
