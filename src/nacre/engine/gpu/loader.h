// Sources made into functions of a device. A function may be asked for long before it is launched: until then it is
// compiled by threads of the loader's own, many at once, and only the first launch waits.
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

class GpuLoader;

// A source on its way to a function. It lives as long as its loader.
class GpuCode {
 public:
  // Returns the function. If it is not there yet, waits for the compiler, and throws what the compiler threw.
  DeviceFunction get() {
    DeviceFunction const loaded = loaded_.load(std::memory_order_acquire);
    return loaded != nullptr ? loaded : wait();
  }
  const cuda::Source& source() const { return source_; }

 private:
  friend class GpuLoader;
  enum class State : uint8_t { queued, compiling, compiled, failed };
  GpuCode(GpuLoader& loader, const cuda::Source& source) : loader_(loader), source_(source) {}
  DeviceFunction wait();

  GpuLoader& loader_;
  cuda::Source source_;
  std::atomic<DeviceFunction> loaded_{nullptr};
  State state_ = State::queued;  // this and what follows: under the loader's mutex
  std::string image_;
  std::exception_ptr error_;
};

// A function and how it is launched.
struct GpuFunction {
  GpuCode* code = nullptr;
  int threads = 0;           // a block
  int64_t shared_bytes = 0;  // dynamic, a block
  int per_block = 1;         // units of work
};

// Shared by everything that runs on a device. Equal sources are compiled and loaded once, whoever asks for them and
// when. May be asked from any thread.
class GpuLoader {
 public:
  // `compile` gives the image of a source: through the plug-in's compiler and the cache on disk, or otherwise.
  // `threads`: how many sources are compiled at once, beside the callers; 0: a source is compiled by whoever asks for
  // it first, at once.
  using Compile = std::function<std::string(const cuda::Source&)>;
  // `compile_again` gives an image that does not come from the cache. Without it, an image that cannot be loaded is an
  // error; with it, only one that was compiled just now.
  GpuLoader(std::shared_ptr<Device> device, Compile compile, int threads = 0, Compile compile_again = nullptr);
  // Waits for the sources that are being compiled now and drops the others.
  ~GpuLoader();
  GpuLoader(const GpuLoader&) = delete;
  GpuLoader& operator=(const GpuLoader&) = delete;
  // Compiles for the device, through the cache on disk, on as many threads as loops have.
  static std::shared_ptr<GpuLoader> open(DevicePlugin& plugin, std::shared_ptr<Device> device);

  const std::shared_ptr<Device>& device() const { return device_; }
  // Has the source compiled if nobody asked for it before, and does not wait.
  GpuCode* code(const cuda::Source& source);
  DeviceFunction function(const cuda::Source& source) { return code(source)->get(); }
  // Writing a kernel's text takes longer than all else there is to do to launch it again. `key` says all that the text
  // depends on.
  const GpuFunction& function(const std::string& key, FunctionRef<cuda::RowSource()> make);
  // Waits until everything that was asked for is compiled and loaded, so that what is timed next has nothing to wait
  // for.
  void settle();
  // Sources that were asked for so far.
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
  std::mutex load_mutex_;     // of whoever loads an image
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::unordered_map<std::string, std::unique_ptr<GpuCode>> codes_;  // by source text
  std::deque<GpuCode*> queue_;
  std::vector<std::thread> workers_;
  int working_ = 0;  // workers that have not ended
  bool closed_ = false;

  std::shared_mutex known_mutex_;
  std::unordered_map<std::string, GpuFunction> known_;
};

}  // namespace nacre
