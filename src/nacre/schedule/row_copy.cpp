#include "nacre/schedule/row_copy.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace nacre {

#if defined(__x86_64__)
namespace {

constexpr size_t kLine = 64;

__attribute__((target("avx512f"))) void copy_lines(char* to, const char* from, size_t lines) {
  for (size_t i = 0; i < lines; ++i)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i * kLine), _mm512_loadu_si512(from + i * kLine));
}

void copy_lines_in_parts(char* to, const char* from, size_t lines) {
  for (size_t i = 0; i < lines * kLine; i += kLine) {
    for (size_t part = i; part < i + kLine; part += 16) {
      const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part), value);
    }
  }
}

}  // namespace

void copy_past_caches(char* to, const char* from, size_t bytes) {
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
  const size_t before = (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;
  if (bytes < before + kLine) {
    std::memcpy(to, from, bytes);
    return;
  }
  const size_t lines = (bytes - before) / kLine;
  const size_t done = before + lines * kLine;
  std::memcpy(to, from, before);
  (has_avx512 ? copy_lines : copy_lines_in_parts)(to + before, from + before, lines);
  std::memcpy(to + done, from + done, bytes - done);
}

void finish_copies() { _mm_sfence(); }
#else
void copy_past_caches(char* to, const char* from, size_t bytes) { std::memcpy(to, from, bytes); }
void finish_copies() {}
#endif

}  // namespace nacre
