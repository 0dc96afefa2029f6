// Stream: a thread of the host that does queued work in order, with random delays in between.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "support/emulator/blocks.h"

namespace nacre::emulator {

using Work = std::function<void(BlockRunner&)>;

// An Event stands for a point in a stream.
class Event {
 public:
  void pass();
  void await();
  double seconds();  // waits until the event is passed, and returns the time of that

 private:
  std::mutex mutex_;
  std::condition_variable passed_;
  bool done_ = false;
  double seconds_ = 0;
};

// Holds the first failure of work that ran beside the caller. Like a driver, the device reports it
// at every later call.
class Failure {
 public:
  void set(const std::string& what);
  void check();  // throws InternalError if there was a failure

 private:
  std::mutex mutex_;
  std::string what_;
};

class Stream {
 public:
  explicit Stream(std::shared_ptr<Failure> failure);
  ~Stream();  // waits for all queued work
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void queue(Work work);
  std::shared_ptr<Event> record();
  void wait_for(std::shared_ptr<Event> event);
  void synchronize() { record()->await(); }

 private:
  // Says what the stream does next: waits for an event, does the work, and passes an event. The
  // event is passed even after a failure, because another thread may wait for it.
  struct Item {
    Work work;
    std::shared_ptr<Event> passes, waits_for;
  };
  void add(Item item);
  void loop();

  std::shared_ptr<Failure> failure_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Item> items_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace nacre::emulator
