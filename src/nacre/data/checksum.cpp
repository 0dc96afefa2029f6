#include "nacre/data/checksum.h"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

constexpr int64_t kChunk = 1 << 20;
constexpr int kLanes = 8;
constexpr uint64_t kMultiplier = 0x9FB21C651E98DF25ull;

uint64_t load_word(const unsigned char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

uint64_t hash_chunk(const unsigned char* p, int64_t bytes) {
  std::array<uint64_t, kLanes> lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = kMultiplier * static_cast<uint64_t>(i + 1);
  const auto step = [](uint64_t h, uint64_t word) { return std::rotl((h ^ word) * kMultiplier, 29); };
  int64_t at = 0;
  for (; at + 8 * kLanes <= bytes; at += 8 * kLanes) {
    for (int i = 0; i < kLanes; ++i) lane[i] = step(lane[i], load_word(p + at + 8 * i));
  }
  for (int i = 0; at + 8 <= bytes; at += 8, ++i) lane[i] = step(lane[i], load_word(p + at));
  unsigned char tail[8] = {};
  if (at < bytes) std::memcpy(tail, p + at, static_cast<size_t>(bytes - at));
  lane[kLanes - 1] = step(lane[kLanes - 1], load_word(tail));
  auto h = static_cast<uint64_t>(bytes);
  for (const uint64_t value : lane) h = mix_key(h ^ value, 0);
  return h;
}

}  // namespace

uint64_t checksum64(const void* data, int64_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::vector<uint64_t> parts(static_cast<size_t>((bytes + kChunk - 1) / kChunk));
  parallel_for(bytes, kChunk, [&](int64_t b, int64_t e) { parts[b / kChunk] = hash_chunk(p + b, e - b); });
  auto h = static_cast<uint64_t>(bytes);
  for (const uint64_t part : parts) h = mix_key(h ^ part, 0);
  return h;
}

}  // namespace nacre
