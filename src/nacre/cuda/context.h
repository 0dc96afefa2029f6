// An open device: its context, its stream, a second stream for work beside that of the first, and a
// third stream for copies. A physical device uses
// its primary context. A virtual device uses a green context, which owns some of the
// multiprocessors and shares the memory with the others.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "nacre/cuda/driver.h"
#include "nacre/cuda/multiprocessors.h"
#include "nacre/device/device.h"

namespace nacre::cuda {

// Returns the properties of a device; throws if the driver does not tell them. Creates the primary
// context of the device, which takes a moment.
DeviceInfo query_device(int index);

class Context {
 public:
  // Opens the whole device if `multiprocessors` is 0, otherwise a virtual device. Virtual devices
  // that are open at the same time have no multiprocessor in common. Throws UserError if too few
  // multiprocessors are left.
  Context(int index, int multiprocessors);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DeviceInfo& info() const { return info_; }
  int index() const { return index_; }
  // Returns the stream for the work of the calling thread: the stream of its recording if the
  // thread records launches of this context; the second stream of the context if the thread queues
  // work beside (set_beside()); otherwise the stream of the context.
  cudaStream_t stream() const;
  // Sets whether the calling thread queues its work on the second stream from now on. A thread can
  // do so for one context at a time.
  void set_beside(bool beside) const;
  cudaStream_t copy_stream() const { return copy_stream_; }
  bool is_virtual() const { return green_ != nullptr; }
  // Returns the context of the whole device. Calls that are no work of a stream and that may come
  // from threads of other devices use it, because a green context belongs to one thread at a time.
  CUcontext primary() const { return primary_; }

  // take_event() returns an event, and give_event() takes it back, to be reused. Creating and
  // destroying an event takes locks of the driver on which the copies of other threads wait. The
  // context must be current in take_event(). A wait for an event is for the work that was recorded
  // when the wait began, so a reused event does no harm.
  cudaEvent_t take_event(bool timed);
  void give_event(cudaEvent_t event, bool timed);

 private:
  friend class Current;
  friend class Recording;
  // Returns a new stream of the context, which must be current.
  cudaStream_t make_stream(int priority = 0) const;
  void make_streams();
  void open_green(int multiprocessors);
  void close_green();

  int index_;
  DeviceInfo info_;
  CUcontext primary_ = nullptr;
  CUcontext context_ = nullptr;
  CUgreenCtx green_ = nullptr;
  MultiprocessorShare share_;  // the multiprocessors of a virtual device
  cudaStream_t stream_ = nullptr;
  cudaStream_t beside_stream_ = nullptr;
  cudaStream_t copy_stream_ = nullptr;
  std::mutex events_mutex_;
  std::array<std::vector<cudaEvent_t>, 2> events_;  // free events; the second list is timed
};

// Makes the context current in the calling thread while this object lives. A green context can be
// current in one thread only, so no thread keeps it longer than a call.
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

// While this object lives, the work that the calling thread queues on the stream of the context is
// recorded and not run. A recording has a stream of its own. If it used the stream of the context,
// the work of other threads (copies and events of batches that are being loaded) would be recorded
// too, or fail. The context must be current when a recording is created, finished and destroyed.
class Recording {
 public:
  explicit Recording(const Context& context);
  // Drops the recorded work unless finish() has been called.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Ends the recording. Returns the recorded work as a graph that can be launched; the caller
  // destroys it.
  cudaGraphExec_t finish();

  // Returns the recording of `context` by the calling thread; null if there is none.
  static Recording* of(const Context& context);

 private:
  friend class Context;

  const Context& context_;
  cudaStream_t stream_;
};

}  // namespace nacre::cuda
