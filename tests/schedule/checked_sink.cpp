#include "checked_sink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace nacre::test {
namespace {

constexpr char kPoison = '\x5a';

}  // namespace

// One call for a slot at a time.
class CheckedSink::Visit {
 public:
  explicit Visit(Slot& slot) : slot_(slot) { EXPECT_EQ(slot.inside.fetch_add(1), 0) << "calls for one slot overlap"; }
  ~Visit() { --slot_.inside; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Slot& slot_;
};

CheckedSink::Slot& CheckedSink::at(int slot) {
  const std::lock_guard lock(mutex_);
  Slot& s = slots_[slot];
  slots_used = static_cast<int>(slots_.size());
  return s;
}

void CheckedSink::open(Slot& slot) {
  EXPECT_FALSE(slot.computed) << "a slot is written to while its batch is computed";
  if (slot.open) return;
  slot.open = true;
  const int now = ++open_;
  int most = most_at_once;
  while (now > most && !most_at_once.compare_exchange_weak(most, now)) {
  }
}

void* CheckedSink::buffer(int slot, int64_t bytes) {
  Slot& s = at(slot);
  const Visit visit(s);
  open(s);
  s.asked = true;
  if (static_cast<size_t>(bytes) > s.host.size()) {
    std::vector<char> larger(static_cast<size_t>(bytes), kPoison);
    std::copy(s.host.begin(), s.host.end(), larger.begin());
    std::fill(s.host.begin(), s.host.end(), kPoison);
    s.host = std::move(larger);
    s.device.resize(s.host.size(), kPoison);
  }
  return s.host.data();
}

void CheckedSink::send(int slot, int64_t begin, int64_t end) {
  Slot& s = at(slot);
  const Visit visit(s);
  open(s);
  ++sends;
  EXPECT_TRUE(s.asked) << "a batch begins with its buffer";
  if (fail_send_after >= 0 && fail_send_after-- == 0) throw std::runtime_error("the link is down");
  if (begin == 0) s.sent = 0;  // a batch that was dropped may have come further
  EXPECT_EQ(begin, s.sent) << "rows are sent in order";
  EXPECT_LT(begin, end);
  ASSERT_LE(end, static_cast<int64_t>(s.host.size()));
  if (delay.count() > 0) std::this_thread::sleep_for(delay);
  std::memcpy(s.device.data() + begin, s.host.data() + begin, static_cast<size_t>(end - begin));
  s.sent = end;
}

void* CheckedSink::finish(int slot, int64_t bytes) {
  Slot& s = at(slot);
  const Visit visit(s);
  EXPECT_EQ(s.sent, bytes);
  if (s.open) --open_;
  s.open = s.asked = false;
  s.computed = true;
  last_ = &s;
  return s.device.data();
}

void CheckedSink::over() {
  if (last_ == nullptr) return;
  std::fill(last_->host.begin(), last_->host.end(), kPoison);
  std::fill(last_->device.begin(), last_->device.end(), kPoison);
  last_->computed = false;
  last_->sent = 0;
  last_ = nullptr;
}

}  // namespace nacre::test
