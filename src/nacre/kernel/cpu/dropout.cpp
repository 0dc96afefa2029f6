// Dropout: computes Philox4x32-10 for vectors of blocks, with exactly the numbers of dfg/random.h.
#include <algorithm>

#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nacre/kernel/cpu/dropout.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include "nacre/dfg/random.h"
#include "nacre/kernel/cpu/micro_ops.h"
#include "nacre/kernel/cpu/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void dropout_micro(const MicroCall& c) {
  DropoutStream stream(0, 0, c.step);
  stream.key = c.key;
  const uint32_t threshold = dropout_threshold(c.micro->alpha);
  const float scale = 1.0f / (1.0f - c.micro->alpha);
  for (int64_t r = 0; r < c.rows; ++r) {
    const int64_t position = c.position != nullptr ? int64_t{c.position[r]} : c.first_position + r;
    const float* x = c.a.row(r);
    float* out = c.out + r * c.out_width;
    for (int64_t i = 0; i < c.out_width; ++i) {
      const auto element = static_cast<uint64_t>(position * c.out_width + i);
      out[i] = dropout_keep(stream, element, threshold) ? x[i] * scale : 0.0f;
    }
  }
}

#else

using Words = hn::ScalableTag<uint32_t>;
using Longs = hn::Repartition<uint64_t, Words>;
using WordVec = hn::Vec<Words>;
using LongVec = hn::Vec<Longs>;

// Number of Philox blocks in one vector. A 64-bit lane holds one 32-bit word of a block in its
// lower half; the multiplications read only that half, and the upper half holds garbage on the way.
constexpr int64_t kBlocks = static_cast<int64_t>(hn::MaxLanes(Longs()));
constexpr int kRounds = 10;
constexpr int64_t kBufferBlocks = 64;  // 512 elements

class PhiloxVector {
 public:
  PhiloxVector(uint64_t key, uint64_t step) {
    const Words w;
    auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < kRounds; ++round) {
      hn::Store(hn::Set(w, k0), w, k0_[round]);
      hn::Store(hn::Set(w, k1), w, k1_[round]);
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    step_ = step;
  }

  // Computes the 8 · kBlocks 16-bit numbers of the given blocks. The numbers of lane 2i of `blocks`
  // are written as the i-th block, those of lane 2i+1 as block kBlocks/2 + i. In that order the
  // words of a block come together without crossing 128-bit borders.
  HWY_INLINE void run(LongVec blocks, uint16_t* out) const {
    const Words w;
    const Longs l;
    const auto m0 = hn::Set(w, 0xD2511F53), m1 = hn::Set(w, 0xCD9E8D57);
    auto c0 = hn::BitCast(w, blocks), c1 = hn::BitCast(w, hn::ShiftRight<32>(blocks));
    auto c2 = hn::BitCast(w, hn::Set(l, step_)), c3 = hn::BitCast(w, hn::Set(l, step_ >> 32));
    for (int round = 0; round < kRounds; ++round) {
      const auto p0 = hn::MulEven(c0, m0), p1 = hn::MulEven(c2, m1);
      c0 = hn::Xor(hn::Xor(hn::BitCast(w, hn::ShiftRight<32>(p1)), c1), hn::Load(w, k0_[round]));
      c2 = hn::Xor(hn::Xor(hn::BitCast(w, hn::ShiftRight<32>(p0)), c3), hn::Load(w, k1_[round]));
      c1 = hn::BitCast(w, p1);
      c3 = hn::BitCast(w, p0);
    }
    const auto low = hn::BitCast(l, hn::OddEven(hn::BitCast(w, hn::ShiftLeft<32>(hn::BitCast(l, c1))), c0));
    const auto high = hn::BitCast(l, hn::OddEven(hn::BitCast(w, hn::ShiftLeft<32>(hn::BitCast(l, c3))), c2));
    auto* words = reinterpret_cast<uint64_t*>(out);
    hn::Store(hn::InterleaveLower(l, low, high), l, words);
    hn::Store(hn::InterleaveUpper(l, low, high), l, words + kBlocks);
  }

 private:
  HWY_ALIGN uint32_t k0_[kRounds][hn::MaxLanes(Words())];
  HWY_ALIGN uint32_t k1_[kRounds][hn::MaxLanes(Words())];
  uint64_t step_;
};

// Returns the block numbers 0, 1, 2, … in the lane order of PhiloxVector::run.
HWY_INLINE LongVec consecutive_blocks() {
  HWY_ALIGN uint64_t lanes[kBlocks];
  for (int64_t i = 0; i < kBlocks; ++i) lanes[i] = static_cast<uint64_t>(i % 2 * (kBlocks / 2) + i / 2);
  return hn::Load(Longs(), lanes);
}

struct Drop {
  uint32_t threshold;
  float scale;
};

// Computes out[i] = x[i] · scale if bits[i] is at least the threshold; otherwise out[i] = 0.
HWY_INLINE void apply_bits(const Drop& drop, const uint16_t* bits, const float* x, float* out, int64_t n) {
  const Floats d;
  const hn::RebindToSigned<Floats> words;
  const hn::Rebind<uint16_t, Floats> halves;
  const auto below = hn::Set(words, static_cast<int32_t>(drop.threshold) - 1);
  const auto scale = hn::Set(d, drop.scale);
  const auto keep = [&](FloatVec v, const uint16_t* from) HWY_ATTR {
    const auto mask = hn::Gt(hn::PromoteTo(words, hn::LoadU(halves, from)), below);
    return hn::IfThenElseZero(hn::RebindMask(d, mask), hn::Mul(v, scale));
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(keep(hn::LoadU(d, x + i), bits + i), d, out + i);
  // Reading beyond the end is safe, because `bits` is longer by one vector.
  if (i < n) store_part(keep(load_part(x + i, n - i), bits + i), out + i, n - i);
}

// Applies dropout to the elements first … first + n − 1 of a tensor, which are at x[0 … n).
void drop_range(const PhiloxVector& philox, const Drop& drop, uint64_t first, int64_t n, const float* x, float* out) {
  HWY_ALIGN uint16_t bits[8 * kBufferBlocks + kLanes] = {};
  const auto lanes = consecutive_blocks();
  const Longs l;
  auto block = first / 8;
  auto skip = static_cast<int64_t>(first % 8);
  while (n > 0) {
    const int64_t blocks = std::min(kBufferBlocks, (skip + n + 7) / 8);
    for (int64_t i = 0; i < blocks; i += kBlocks) {
      philox.run(hn::Add(hn::Set(l, block + static_cast<uint64_t>(i)), lanes), bits + 8 * i);
    }
    const int64_t count = std::min(n, 8 * blocks - skip);
    apply_bits(drop, bits + skip, x, out, count);
    x += count;
    out += count;
    n -= count;
    block += static_cast<uint64_t>(blocks);
    skip = 0;
  }
}

// Applies dropout to short rows at scattered positions: one vector of blocks serves several rows. A
// row of at most 8 elements reaches into at most two blocks.
void drop_scattered(const PhiloxVector& philox, const Drop& drop, const MicroCall& c) {
  const Longs l;
  const auto width = static_cast<uint64_t>(c.out_width);
  constexpr int64_t group = std::max<int64_t>(1, kBlocks / 2);
  for (int64_t r = 0; r < c.rows; r += group) {
    const int64_t rows = std::min(group, c.rows - r);
    HWY_ALIGN uint64_t lanes[kBlocks] = {};
    for (int64_t i = 0; i < rows; ++i) {
      // Lanes 2i and 2i + 1 are the two blocks of row i. run() writes the numbers of lane 2i as
      // block i and those of lane 2i + 1 as block kBlocks / 2 + i.
      lanes[2 * i] = c.position[r + i] * width / 8;
      lanes[2 * i + 1] = lanes[2 * i] + 1;
    }
    HWY_ALIGN uint16_t bits[8 * kBlocks];
    philox.run(hn::Load(l, lanes), bits);
    for (int64_t i = 0; i < rows; ++i) {
      const auto skip = static_cast<int64_t>(c.position[r + i] * width % 8);
      const float* x = c.a.row(r + i);
      float* out = c.out + (r + i) * c.out_width;
      for (int64_t j = 0; j < c.out_width; ++j) {
        const int64_t element = skip + j;
        const int64_t block = i + (element >= 8 ? kBlocks / 2 : 0);
        out[j] = bits[8 * block + element % 8] >= drop.threshold ? x[j] * drop.scale : 0.0f;
      }
    }
  }
}

void dropout_micro(const MicroCall& c) {
  const PhiloxVector philox(c.key, c.step);
  const Drop drop = {dropout_threshold(c.micro->alpha), 1.0f / (1.0f - c.micro->alpha)};
  const auto width = static_cast<uint64_t>(c.out_width);
  if (c.position == nullptr && c.a.packed()) {
    const uint64_t first = static_cast<uint64_t>(c.first_position) * width;
    drop_range(philox, drop, first, c.rows * c.out_width, c.a.base, c.out);
  } else if (c.position != nullptr && c.out_width <= 8) {
    drop_scattered(philox, drop, c);
  } else {
    for (int64_t r = 0; r < c.rows; ++r) {
      const auto position = static_cast<uint64_t>(c.position != nullptr ? c.position[r] : c.first_position + r);
      drop_range(philox, drop, position * width, c.out_width, c.a.row(r), c.out + r * c.out_width);
    }
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace

MicroFunction dropout_of_target() { return dropout_micro; }

}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nacre::cpu {
HWY_EXPORT(dropout_of_target);

MicroFunction dropout_function() { return HWY_DYNAMIC_DISPATCH(dropout_of_target)(); }

}  // namespace nacre::cpu
#endif
