#include "support/emulator/races.h"

#include <algorithm>

namespace nacre::emulator {
namespace {

constexpr int64_t kWord = 4;

std::string described(const char* now, const char* earlier, int other) {
  return std::string(now) + " shared memory that thread " + std::to_string(other) + " " + earlier +
         ", and no barrier lies between the two";
}

}  // namespace

SharedRaces::SharedRaces(int64_t bytes) : words_(static_cast<size_t>((bytes + kWord - 1) / kWord)) {}

void SharedRaces::begin_block(int threads) {
  ++epoch_;
  known_.assign(static_cast<size_t>(threads), Clocks{});
  for (size_t i = 0; i < known_.size(); ++i) known_[i][i % 32] = 1;
}

void SharedRaces::meet(int first, unsigned mask) {
  Clocks all{};
  for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
    const Clocks& known = known_[static_cast<size_t>(first + __builtin_ctz(rest))];
    for (size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], known[i]);
  }
  for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    Clocks& known = known_[static_cast<size_t>(first + lane)];
    known = all;
    ++known[static_cast<size_t>(lane)];
  }
}

bool SharedRaces::races(const Mark& earlier, const Mark& now) const {
  if (earlier.epoch != epoch_ || earlier.thread == now.thread || (earlier.bytes & now.bytes) == 0) return false;
  if (earlier.thread / 32 != now.thread / 32) return true;
  return known_[now.thread][earlier.thread % 32] < earlier.clock;
}

void SharedRaces::note_read(Shadow& word, const Mark& now) {
  for (Mark& read : word.reads) {
    if (read.epoch == now.epoch && read.thread == now.thread) {
      read.clock = now.clock;
      read.bytes |= now.bytes;
      return;
    }
  }
  word.reads[word.next_read] = now;
  word.next_read = (word.next_read + 1) % kReaders;
}

std::string SharedRaces::check(Shadow& word, const Mark& now, Access access) const {
  const bool reads = access == Access::read;
  const char* verb = reads ? "reads" : access == Access::write ? "writes" : "atomically changes";
  if (races(word.write, now)) return described(verb, "writes", word.write.thread);
  if (access != Access::atomic && races(word.atomic, now))
    return described(verb, "atomically changes", word.atomic.thread);
  if (reads) {
    note_read(word, now);
    return "";
  }
  for (const Mark& read : word.reads) {
    if (races(read, now)) return described(verb, "reads", read.thread);
  }
  (access == Access::write ? word.write : word.atomic) = now;
  return "";
}

std::string SharedRaces::touch(int thread, int64_t at, int64_t bytes, Access access) {
  const auto number = static_cast<uint16_t>(thread);
  const uint32_t clock = known_[static_cast<size_t>(thread)][static_cast<size_t>(thread % 32)];
  for (int64_t word = at / kWord; word * kWord < at + bytes; ++word) {
    const int64_t begin = std::max<int64_t>(at - word * kWord, 0), end = std::min(at + bytes - word * kWord, kWord);
    const auto mask = static_cast<uint8_t>((1U << end) - (1U << begin));
    std::string race = check(words_[static_cast<size_t>(word)], {epoch_, clock, number, mask}, access);
    if (!race.empty()) return race + " (byte " + std::to_string(word * kWord + begin) + ")";
  }
  return "";
}

}  // namespace nacre::emulator
