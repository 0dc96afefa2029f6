#include "nacre/data/checksum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

constexpr int kAccumulators = 8;
constexpr uint64_t kMultiplier = 0x9FB21C651E98DF25ull;

uint64_t load_word(const unsigned char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

uint64_t hash_chunk(const unsigned char* p, int64_t bytes) {
  std::array<uint64_t, kAccumulators> accumulator;
  for (int i = 0; i < kAccumulators; ++i) accumulator[i] = kMultiplier * static_cast<uint64_t>(i + 1);
  const auto step = [](uint64_t h, uint64_t word) { return std::rotl((h ^ word) * kMultiplier, 29); };
  int64_t at = 0;
  for (; at + 8 * kAccumulators <= bytes; at += 8 * kAccumulators) {
    for (int i = 0; i < kAccumulators; ++i) accumulator[i] = step(accumulator[i], load_word(p + at + 8 * i));
  }
  for (int i = 0; at + 8 <= bytes; at += 8, ++i) accumulator[i] = step(accumulator[i], load_word(p + at));
  unsigned char tail[8] = {};
  if (at < bytes) std::memcpy(tail, p + at, static_cast<size_t>(bytes - at));
  accumulator[kAccumulators - 1] = step(accumulator[kAccumulators - 1], load_word(tail));
  auto h = static_cast<uint64_t>(bytes);
  for (const uint64_t value : accumulator) h = mix_key(h ^ value, 0);
  return h;
}

}  // namespace

uint64_t checksum64(const void* data, int64_t bytes) {
  Checksum64 sum;
  sum.update(data, bytes);
  return sum.value();
}

void Checksum64::update(const void* data, int64_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  bytes_ += bytes;
  if (!begun_.empty()) {
    const int64_t taken = std::min(bytes, kChunk - static_cast<int64_t>(begun_.size()));
    begun_.insert(begun_.end(), p, p + taken);
    p += taken;
    bytes -= taken;
    if (static_cast<int64_t>(begun_.size()) < kChunk) return;
    parts_.push_back(hash_chunk(begun_.data(), kChunk));
    begun_.clear();
  }
  const int64_t whole = bytes / kChunk;
  const size_t first = parts_.size();
  parts_.resize(first + static_cast<size_t>(whole));
  parallel_tasks(whole, [&](int64_t i) { parts_[first + i] = hash_chunk(p + i * kChunk, kChunk); });
  begun_.assign(p + whole * kChunk, p + bytes);
}

uint64_t Checksum64::value() const {
  auto h = static_cast<uint64_t>(bytes_);
  for (const uint64_t part : parts_) h = mix_key(h ^ part, 0);
  if (!begun_.empty()) h = mix_key(h ^ hash_chunk(begun_.data(), static_cast<int64_t>(begun_.size())), 0);
  return h;
}

}  // namespace nacre
