#include "support/emulator/stream.h"

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "support/emulator/faults.h"
#include "support/emulator/settings.h"

namespace nacre::emulator {

void Event::pass() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  seconds_ = now_seconds();
  passed_.notify_all();
}

void Event::await() {
  std::unique_lock lock(mutex_);
  passed_.wait(lock, [&] { return done_; });
}

double Event::seconds() {
  await();
  return seconds_;
}

void Failure::set(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (what_.empty()) what_ = what;
}

void Failure::check() {
  const std::lock_guard lock(mutex_);
  if (!what_.empty()) throw InternalError(__FILE__, __LINE__, "earlier work on the emulated device failed: " + what_);
}

Stream::Stream(std::shared_ptr<Failure> failure) : failure_(std::move(failure)), thread_([this] { loop(); }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  more_.notify_all();
  thread_.join();
}

void Stream::add(Item item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  more_.notify_one();
}

void Stream::queue(Work work) { add({std::move(work), nullptr, nullptr}); }

std::shared_ptr<Event> Stream::record() {
  auto event = std::make_shared<Event>();
  add({nullptr, event, nullptr});
  return event;
}

void Stream::wait_for(std::shared_ptr<Event> event) { add({nullptr, nullptr, std::move(event)}); }

void Stream::loop() {
  Settings::this_thread_is(Role::stream);
  const FaultStack faults;
  BlockRunner runner;
  bool failed = false;
  while (true) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [&] { return ends_ || !items_.empty(); });
      if (items_.empty()) return;
      item = std::move(items_.front());
      items_.pop_front();
    }
    Settings::get().pause();
    if (item.waits_for) item.waits_for->await();
    if (item.work && !failed) {
      try {
        Settings::get().count(Fault::work, "work of a stream");
        item.work(runner);
      } catch (const std::exception& error) {
        failed = true;
        failure_->set(error.what());
      }
    }
    if (item.passes) item.passes->pass();
  }
}

}  // namespace nacre::emulator
