// GpuCompiler: compiles sources and loads them as functions of a device. A function can be
// requested long before it is launched. Threads of the compiler compile many sources at once, and
// only the first launch of a function waits for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/device/device.h"
#include "nacre/kernel/cuda/rows.h"

namespace nacre {

class GpuCompiler;

// GpuCode: holds a requested source, and its function when that is loaded. An object lives as long
// as its compiler.
class GpuCode {
 public:
  // Returns the function. If it is not loaded yet, waits for the compiler, and throws its error if
  // it failed.
  DeviceFunction get() {
    DeviceFunction const loaded = loaded_.load(std::memory_order_acquire);
    return loaded != nullptr ? loaded : wait();
  }
  const cuda::Source& source() const { return source_; }

 private:
  friend class GpuCompiler;
  enum class State : uint8_t { queued, compiling, compiled, failed };
  GpuCode(GpuCompiler& compiler, const cuda::Source& source) : compiler_(compiler), source_(source) {}
  DeviceFunction wait();

  GpuCompiler& compiler_;
  cuda::Source source_;
  std::atomic<DeviceFunction> loaded_{nullptr};
  // The mutex of the compiler protects the following members.
  State state_ = State::queued;
  std::string image_;
  std::exception_ptr error_;
};

// Holds a function and the shape in which it is launched.
struct GpuFunction {
  GpuCode* code = nullptr;
  int threads = 0;           // threads of a block
  int64_t shared_bytes = 0;  // dynamic shared memory of a block
  int per_block = 1;         // units of work of a block
};

// Everything that runs on a device shares one compiler. Equal sources are compiled and loaded once.
// Any thread may call it.
class GpuCompiler {
 public:
  // A function of this type returns the image of a source.
  using Compile = std::function<std::string(const cuda::Source&)>;
  // `threads` is the number of sources that are compiled at once in the background. With 0, code()
  // compiles a new source itself. `compile_again` returns an image that does not come from the
  // cache on disk; it is called if an image cannot be loaded. Without it, such an image is an
  // error.
  GpuCompiler(std::shared_ptr<Device> device, Compile compile, int threads = 0, Compile compile_again = nullptr);
  // Waits for the sources that are being compiled now and drops the others.
  ~GpuCompiler();
  GpuCompiler(const GpuCompiler&) = delete;
  GpuCompiler& operator=(const GpuCompiler&) = delete;
  // Returns a GpuCompiler that uses the compiler of the plug-in and the cache on disk; -1 threads
  // means num_threads().
  static std::shared_ptr<GpuCompiler> open(DevicePlugin& plugin, std::shared_ptr<Device> device, int threads = -1);

  const std::shared_ptr<Device>& device() const { return device_; }
  // Requests a source, and does not wait until it is compiled (unless there are no threads).
  GpuCode* code(const cuda::Source& source);
  DeviceFunction function(const cuda::Source& source) { return code(source)->get(); }
  // Returns the function that is kept under `key`. If there is none, requests the source that
  // make() returns. Writing the text of a kernel takes longer than everything else that a launch
  // needs, so equal kernels are recognised by a key, which must contain all that the text depends
  // on.
  const GpuFunction& function(const std::string& key, FunctionRef<cuda::RowSource()> make);
  // Waits until all requested sources are compiled and loaded, so that a timing that follows does
  // not include compilation.
  void settle();
  // Returns the number of sources that were requested so far.
  int64_t num_sources() const;

 private:
  friend class GpuCode;
  DeviceFunction wait(GpuCode& code);
  DeviceFunction load(const GpuCode& code);
  void compile(std::unique_lock<std::mutex>& lock, GpuCode& code);
  void start_worker();
  void work();

  std::shared_ptr<Device> device_;
  Compile compile_, compile_again_;
  int threads_;
  std::atomic<int64_t> not_loaded_{0};
  std::mutex load_mutex_;     // held while an image is loaded
  mutable std::mutex mutex_;  // protects the members from here to closed_
  std::condition_variable changed_;
  // Holds compiled code by its source text.
  std::unordered_map<std::string, std::unique_ptr<GpuCode>> codes_;
  std::deque<GpuCode*> queue_;
  std::vector<std::thread> workers_;
  int working_ = 0;  // number of workers that still run
  bool closed_ = false;

  std::shared_mutex known_mutex_;
  std::unordered_map<std::string, GpuFunction> known_;
};

}  // namespace nacre
