#include "nacre/kernel/cuda/source.h"

namespace nacre::cuda {

namespace {

// Defines types, and functions that move rows between memory and registers.
constexpr const char* kMemory = R"(typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
typedef unsigned char u8;
#define INLINE __device__ __forceinline__

// These functions move V consecutive floats. `gather` reads only what no kernel writes at the same time.
template <int V> INLINE void load(const float* p, float* r) {
  if constexpr (V == 8) { load<4>(p, r); load<4>(p + 4, r + 4); }
  else if constexpr (V == 4) { const float4 t = *(const float4*)p; r[0] = t.x; r[1] = t.y; r[2] = t.z; r[3] = t.w; }
  else if constexpr (V == 2) { const float2 t = *(const float2*)p; r[0] = t.x; r[1] = t.y; }
  else r[0] = *p;
}
template <int V> INLINE void gather(const float* p, float* r) {
  if constexpr (V == 8) { gather<4>(p, r); gather<4>(p + 4, r + 4); }
  else if constexpr (V == 4) { const float4 t = __ldg((const float4*)p); r[0] = t.x; r[1] = t.y; r[2] = t.z; r[3] = t.w; }
  else if constexpr (V == 2) { const float2 t = __ldg((const float2*)p); r[0] = t.x; r[1] = t.y; }
  else r[0] = __ldg(p);
}
template <int V> INLINE void zero(float* r) {
#pragma unroll
  for (int v = 0; v < V; ++v) r[v] = 0.0f;
}
template <int V> INLINE void store(float* p, const float* r) {
  if constexpr (V == 8) { store<4>(p, r); store<4>(p + 4, r + 4); }
  else if constexpr (V == 4) *(float4*)p = make_float4(r[0], r[1], r[2], r[3]);
  else if constexpr (V == 2) *(float2*)p = make_float2(r[0], r[1]);
  else *p = r[0];
}

// These functions do the same for bf16, which is the upper half of a float. A float is rounded to the
// nearest bf16; if two are equally near, to the even one.
INLINE float widen(u16 x) { return __uint_as_float((u32)x << 16); }
INLINE void widen2(u32 x, float* r) { r[0] = __uint_as_float(x << 16); r[1] = __uint_as_float(x & 0xffff0000u); }
INLINE u32 narrow(float x) {
  const u32 bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;  // a NaN stays a NaN
  return bits + 0x7fffu + (bits >> 16 & 1u) >> 16;
}
INLINE u32 narrow2(const float* r) { return narrow(r[0]) | narrow(r[1]) << 16; }
template <int V> INLINE void load(const u16* p, float* r) {
  if constexpr (V == 8) {
    const uint4 t = *(const uint4*)p;
    widen2(t.x, r); widen2(t.y, r + 2); widen2(t.z, r + 4); widen2(t.w, r + 6);
  } else if constexpr (V == 4) { const uint2 t = *(const uint2*)p; widen2(t.x, r); widen2(t.y, r + 2); }
  else if constexpr (V == 2) widen2(*(const u32*)p, r);
  else r[0] = widen(*p);
}
template <int V> INLINE void gather(const u16* p, float* r) {
  if constexpr (V == 8) {
    const uint4 t = __ldg((const uint4*)p);
    widen2(t.x, r); widen2(t.y, r + 2); widen2(t.z, r + 4); widen2(t.w, r + 6);
  } else if constexpr (V == 4) { const uint2 t = __ldg((const uint2*)p); widen2(t.x, r); widen2(t.y, r + 2); }
  else if constexpr (V == 2) widen2(__ldg((const u32*)p), r);
  else r[0] = widen(__ldg(p));
}
template <int V> INLINE void store(u16* p, const float* r) {
  if constexpr (V == 8) *(uint4*)p = make_uint4(narrow2(r), narrow2(r + 2), narrow2(r + 4), narrow2(r + 6));
  else if constexpr (V == 4) *(uint2*)p = make_uint2(narrow2(r), narrow2(r + 2));
  else if constexpr (V == 2) *(u32*)p = narrow2(r);
  else *p = (u16)narrow(r[0]);
}

)";

// Defines sums over threads, and random numbers.
constexpr const char* kArithmetic =
    R"(// These functions combine x of the L threads of a group; every thread gets the result.
template <int L> INLINE float group_sum(float x, u32 mask) {
#pragma unroll
  for (int d = L / 2; d > 0; d /= 2) x += __shfl_xor_sync(mask, x, d);
  return x;
}
template <int L> INLINE float group_max(float x, u32 mask) {
#pragma unroll
  for (int d = L / 2; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(mask, x, d));
  return x;
}
// Returns the mask of the L threads of this thread's group.
template <int L> INLINE u32 group_mask() {
  if constexpr (L == 32) return 0xffffffffu;
  else return ((1u << L) - 1u) << (threadIdx.x % 32 / L * L);
}

INLINE u64 mix_key(u64 a, u64 b) {
  u64 z = a + 0x9E3779B97F4A7C15ull * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
INLINE uint4 philox(u64 key, u64 hi, u64 lo) {
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
  u32 c0 = (u32)lo, c1 = (u32)(lo >> 32), c2 = (u32)hi, c3 = (u32)(hi >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u32 h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
    const u32 h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0;
    k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  return make_uint4(c0, c1, c2, c3);
}
// Computes x / (1 - share) for kept elements and 0 for the others, V elements from number `first` on. Eight elements
// share a block of random bits.
template <int V> INLINE void dropout(u64 key, u64 step, u64 first, u32 threshold, float factor, const float* x, float* r) {
  if (V > 1 && first % 8 + V <= 8) {
    const uint4 b = philox(key, step, first / 8);
    const u32 w[4] = {b.x, b.y, b.z, b.w};
    const int at = (int)(first % 8);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const int i = at + v;
      const u32 word = i < 2 ? w[0] : i < 4 ? w[1] : i < 6 ? w[2] : w[3];
      r[v] = ((word >> (i % 2 * 16)) & 0xffffu) >= threshold ? x[v] * factor : 0.0f;
    }
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const u64 e = first + v;
      const uint4 b = philox(key, step, e / 8);
      const int i = (int)(e % 8);
      const u32 word = i < 2 ? b.x : i < 4 ? b.y : i < 6 ? b.z : b.w;
      r[v] = ((word >> (i % 2 * 16)) & 0xffffu) >= threshold ? x[v] * factor : 0.0f;
    }
  }
}
)";

}  // namespace

std::string prelude() { return std::string(kMemory) + kArithmetic; }

}  // namespace nacre::cuda
