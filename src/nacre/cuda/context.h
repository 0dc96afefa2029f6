// A device that is in use: its context, its stream and the one for copies beside it. A physical device uses its primary
// context; a virtual one a green context, which owns some of the multiprocessors and shares memory with the rest.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "nacre/cuda/driver.h"
#include "nacre/device/device.h"

namespace nacre::cuda {

// Throws where the device cannot be asked. Makes the device's primary context, which takes a moment.
DeviceInfo query_device(int index);

class Context {
 public:
  // multiprocessors = 0: the whole device. Virtual devices that are open at the same time and of the same size have no
  // multiprocessor in common; one too many is a UserError.
  Context(int index, int multiprocessors);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DeviceInfo& info() const { return info_; }
  int index() const { return index_; }
  cudaStream_t stream() const { return stream_; }
  cudaStream_t copy_stream() const { return copy_stream_; }
  bool is_virtual() const { return green_ != nullptr; }

  // Events are used again: making and destroying one takes the driver's locks, for which other threads' copies wait.
  // The context must be current. What waits for an event waits for what was recorded when it began to.
  cudaEvent_t take_event(bool timed);
  void give_event(cudaEvent_t event, bool timed);

 private:
  friend class Current;
  void open_green(int multiprocessors);
  void close_green();

  int index_;
  DeviceInfo info_;
  CUcontext context_ = nullptr;
  CUgreenCtx green_ = nullptr;
  int partition_ = -1;  // which one of the device's partitions of partition_size_ multiprocessors
  int partition_size_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaStream_t copy_stream_ = nullptr;
  std::mutex events_mutex_;
  std::array<std::vector<cudaEvent_t>, 2> events_;  // that nobody holds, timed ones second
};

// The context is the calling thread's while this lives. A green context may be current in one thread only, so no thread
// keeps it beyond a call.
class Current {
 public:
  explicit Current(const Context& context) : Current(context.context_) {}
  explicit Current(CUcontext context) { NACRE_CUDA(driver().context_push(context)); }
  ~Current() {
    CUcontext ignored = nullptr;
    driver().context_pop(&ignored);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

// What is queued on the stream in between, to be launched as one; the caller destroys it.
void begin_recording(cudaStream_t stream);
cudaGraphExec_t end_recording(cudaStream_t stream);

}  // namespace nacre::cuda
