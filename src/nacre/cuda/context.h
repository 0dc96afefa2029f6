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
  // Returns the stream that the calling thread's work goes to: that of its recording if it records launches of this
  // context, otherwise the context's own.
  cudaStream_t stream() const;
  cudaStream_t copy_stream() const { return copy_stream_; }
  bool is_virtual() const { return green_ != nullptr; }

  // Events are used again: making and destroying one takes the driver's locks, for which other threads' copies wait.
  // The context must be current. What waits for an event waits for what was recorded when it began to.
  cudaEvent_t take_event(bool timed);
  void give_event(cudaEvent_t event, bool timed);

 private:
  friend class Current;
  friend class Recording;
  cudaStream_t make_stream() const;  // the context must be current
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

// While this lives, what the calling thread queues on the context's stream is recorded and not run. A recording has a
// stream of its own: if it used the context's, work of other threads (copies and events of batches that are being
// loaded) would end up in it or fail. The context must be current when a recording is made, finished and destroyed.
class Recording {
 public:
  explicit Recording(const Context& context);
  ~Recording();  // drops what was recorded unless finish() has been called
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Ends the recording. Returns what was recorded, ready to be launched as one; the caller destroys it.
  cudaGraphExec_t finish();

  // Returns the calling thread's recording of `context`; null if there is none.
  static Recording* of(const Context& context);

 private:
  friend class Context;

  const Context& context_;
  cudaStream_t stream_;
};

}  // namespace nacre::cuda
