// Defines CUDA's built-ins for kernels that are compiled for the host. This text comes before every
// generated source, and holds only what those sources use. It includes no standard headers, because
// they take longer to compile than a kernel.
#pragma once

#include "thread.h"
#include "watch_shim.h"

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

#define threadIdx (nacre::emulator::self()->index)
#define blockIdx (nacre::emulator::self()->block)
#define blockDim (nacre::emulator::self()->block_size)
#define gridDim (nacre::emulator::self()->grid_size)

// ---- This section defines vector types.
struct __align__(8) float2 {
  float x, y;
};
struct __align__(16) float4 {
  float x, y, z, w;
};
struct __align__(8) uint2 {
  unsigned x, y;
};
struct __align__(16) uint4 {
  unsigned x, y, z, w;
};
struct __align__(8) int2 {
  int x, y;
};
struct __align__(16) int4 {
  int x, y, z, w;
};
struct __align__(16) double2 {
  double x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

// ---- The functions of this section read and write memory. Like the hardware, they fault on
// addresses that are not aligned to the value.
template <class T>
inline T nacre_read(const T* p) {
  if ((unsigned long)p % alignof(T) != 0) __builtin_trap();
  return *p;
}
template <class T>
inline T __ldg(const T* p) {
  return nacre_read(p);
}
template <class T>
inline T __ldcg(const T* p) {
  return nacre_read(p);
}
template <class T>
inline T __ldcs(const T* p) {
  return nacre_read(p);
}
NACRE_UNWATCHED inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __threadfence(); }
inline unsigned long __cvta_generic_to_shared(const void* p) {
  nacre::emulator::Thread* t = nacre::emulator::self();
  return t->calls->shared_address(t, p);
}

// ---- This section defines atomic operations.
template <class T, class Change>
NACRE_UNWATCHED inline T nacre_atomic(T* p, Change change) {
  nacre_touch(p, sizeof(T), nacre::emulator::Access::atomic);
  T before;
  __atomic_load(p, &before, __ATOMIC_SEQ_CST);
  T after = change(before);
  while (!__atomic_compare_exchange(p, &before, &after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    after = change(before);
  return before;
}
template <class T, class U>
inline T atomicAdd(T* p, U x) {
  return nacre_atomic(p, [&](T old) { return (T)(old + (T)x); });
}
template <class T, class U>
inline T atomicMax(T* p, U x) {
  return nacre_atomic(p, [&](T old) { return old < (T)x ? (T)x : old; });
}
template <class T, class U>
inline T atomicMin(T* p, U x) {
  return nacre_atomic(p, [&](T old) { return (T)x < old ? (T)x : old; });
}
template <class T, class U>
inline T atomicOr(T* p, U x) {
  return nacre_atomic(p, [&](T old) { return (T)(old | (T)x); });
}
template <class T, class U>
inline T atomicExch(T* p, U x) {
  return nacre_atomic(p, [&](T) { return (T)x; });
}
template <class T, class U, class V>
inline T atomicCAS(T* p, U want, V x) {
  return nacre_atomic(p, [&](T old) { return old == (T)want ? (T)x : old; });
}

// ---- This section defines operations on bits.
template <class To, class From>
inline To nacre_bits(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
inline float __uint_as_float(unsigned x) { return nacre_bits<float>(x); }
inline float __int_as_float(int x) { return nacre_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return nacre_bits<unsigned>(x); }
inline int __float_as_int(float x) { return nacre_bits<int>(x); }
inline double __longlong_as_double(long long x) { return nacre_bits<double>(x); }
inline long long __double_as_longlong(double x) { return nacre_bits<long long>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }

// ---- This section defines arithmetic.
inline float __fdividef(float a, float b) { return a / b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline float expf(float x) { return __builtin_expf(x); }
inline float logf(float x) { return __builtin_logf(x); }
inline float tanhf(float x) { return __builtin_tanhf(x); }
inline float sqrtf(float x) { return __builtin_sqrtf(x); }
inline float expm1f(float x) { return __builtin_expm1f(x); }
inline float log1pf(float x) { return __builtin_log1pf(x); }
inline float fabsf(float x) { return __builtin_fabsf(x); }
inline float floorf(float x) { return __builtin_floorf(x); }
inline float exp2f(float x) { return __builtin_exp2f(x); }
inline float log2f(float x) { return __builtin_log2f(x); }
inline float erff(float x) { return __builtin_erff(x); }
inline float sinf(float x) { return __builtin_sinf(x); }
inline float cosf(float x) { return __builtin_cosf(x); }
inline float ceilf(float x) { return __builtin_ceilf(x); }
inline float __expf(float x) { return expf(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
inline float fminf(float a, float b) { return __builtin_fminf(a, b); }
inline float powf(float a, float b) { return __builtin_powf(a, b); }
inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline double fmax(double a, double b) { return __builtin_fmax(a, b); }
inline double fmin(double a, double b) { return __builtin_fmin(a, b); }
inline double fabs(double x) { return __builtin_fabs(x); }
inline double exp(double x) { return __builtin_exp(x); }
inline double log(double x) { return __builtin_log(x); }
inline double log1p(double x) { return __builtin_log1p(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }
template <class T>
inline T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
inline T max(T a, T b) {
  return a < b ? b : a;
}
inline long long clock64() { return (long long)__builtin_ia32_rdtsc(); }

// ---- The functions of this section wait for other threads of the block or the warp.
inline void __syncthreads() {
  nacre::emulator::Thread* t = nacre::emulator::self();
  t->calls->block_barrier(t);
}
template <class T>
inline T nacre_exchange(unsigned mask, T value, int from) {
  static_assert(sizeof(T) <= 8);
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  nacre::emulator::Thread* t = nacre::emulator::self();
  bits = t->calls->exchange(t, mask, bits, from);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline int nacre_lane() { return (int)(threadIdx.x % 32); }
template <class T>
inline T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  const int lane = nacre_lane();
  return nacre_exchange(mask, value, (lane & ~(width - 1)) | (from & (width - 1)));
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32) {
  const int lane = nacre_lane(), from = lane ^ by;
  return nacre_exchange(mask, value, from < (lane & ~(width - 1)) + width ? from : lane);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, int by, int width = 32) {
  const int lane = nacre_lane();
  return nacre_exchange(mask, value, lane % width + by < width ? lane + by : lane);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, int by, int width = 32) {
  const int lane = nacre_lane();
  return nacre_exchange(mask, value, lane % width - by >= 0 ? lane - by : lane);
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  nacre::emulator::Thread* t = nacre::emulator::self();
  t->calls->warp_barrier(t, mask);
}
inline unsigned __ballot_sync(unsigned mask, bool predicate) {
  nacre::emulator::Thread* t = nacre::emulator::self();
  return t->calls->ballot(t, mask, predicate);
}
inline int __any_sync(unsigned mask, bool predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, bool predicate) { return __ballot_sync(mask, !predicate) == 0; }

// ---- The functions of this section give shared memory. translate.cpp writes calls of them in the
// place of declarations.
inline void* nacre_shared(int number, unsigned long bytes) {
  nacre::emulator::Thread* t = nacre::emulator::self();
  return t->calls->shared(t, number, bytes);
}

// ---- The functions of this section do what instructions do. translate.cpp writes calls of them in
// the place of asm statements.
inline void nacre_cp_async(unsigned to, const void* from, unsigned room, unsigned bytes) {
  nacre::emulator::Thread* t = nacre::emulator::self();
  t->calls->copy_later(t, to, from, room, bytes);
}
inline void nacre_cp_async_commit() {
  nacre::emulator::Thread* t = nacre::emulator::self();
  t->calls->end_copies(t);
}
inline void nacre_cp_async_wait(int left) {
  nacre::emulator::Thread* t = nacre::emulator::self();
  t->calls->await_copies(t, left);
}
template <int N>
struct NacreSums {
  float* at[N];
};
template <class... F>
inline NacreSums<sizeof...(F)> nacre_sums(F&... sums) {
  return {{&sums...}};
}
template <int N>
inline void nacre_mma(const NacreSums<N>& sums, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                      unsigned b1) {
  static_assert(N == 4);
  const unsigned a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};
  nacre::emulator::Thread* t = nacre::emulator::self();
  t->calls->warp_product(t, sums.at, a, b);
}
template <int N>
inline void nacre_wgmma(const NacreSums<N>& sums, unsigned long long a, unsigned long long b) {
  nacre::emulator::Thread* t = nacre::emulator::self();
  t->calls->warpgroup_product(t, 2 * N, sums.at, nullptr, a, b);
}
template <int N>
inline void nacre_wgmma(const NacreSums<N>& sums, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                        unsigned long long b) {
  const unsigned a[4] = {a0, a1, a2, a3};
  nacre::emulator::Thread* t = nacre::emulator::self();
  t->calls->warpgroup_product(t, 2 * N, sums.at, a, 0, b);
}
inline unsigned nacre_narrow(float x) {
  const unsigned bits = __float_as_uint(x);
  if (x != x) return 0x7fff;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
inline void nacre_bf16x2(unsigned& packed, float high, float low) {
  packed = nacre_narrow(high) << 16 | nacre_narrow(low);
}
inline void nacre_multiprocessor(unsigned& number) { number = blockIdx.x; }

// ---- This section defines how the emulator enters a kernel.
template <int... I>
struct NacreNumbers {};
#ifdef __clang__
template <class T, T... I>
using NacreAsNumbers = NacreNumbers<I...>;
template <int N>
using NacreUpTo = __make_integer_seq<NacreAsNumbers, int, N>;
#else
template <int N>
using NacreUpTo = NacreNumbers<__integer_pack(N)...>;
#endif
template <class... A, int... I>
NACRE_UNWATCHED inline void nacre_call(void (*kernel)(A...), void** args, NacreNumbers<I...>) {
  kernel(*(A*)args[I]...);
}
// Calls the kernel with the arguments. If `args` is null, instead writes the sizes of the
// parameters to `sizes` and returns how many there are.
template <class... A>
NACRE_UNWATCHED inline int nacre_enter(void (*kernel)(A...), void** args, int* sizes) {
  if (args == nullptr) {
    ((*sizes++ = (int)sizeof(A)), ...);
    return (int)sizeof...(A);
  }
  nacre_call(kernel, args, NacreUpTo<sizeof...(A)>());
  return 0;
}
#define NACRE_ENTRY(kernel)                                                                             \
  extern "C" __attribute__((visibility("default"))) int nacre_entry_##kernel(void** args, int* sizes) { \
    return nacre_enter(kernel, args, sizes);                                                            \
  }
