#include "nacre/sample/pick.h"

#include <algorithm>
#include <limits>

namespace nacre {

void distinct_sorted(const draw::Stream& stream, uint32_t n, uint32_t count, uint32_t* out,
                     std::vector<uint64_t>& seen) {
  // `seen` has one bit for each candidate, which is set when the candidate is drawn. Reading the
  // bits in order gives the draws in ascending order.
  const size_t words = (size_t{n} + 63) / 64;
  seen.assign(words, 0);
  const auto mark = [&](uint32_t t) {
    const uint64_t bit = uint64_t{1} << (t % 64);
    const bool before = (seen[t / 64] & bit) != 0;
    seen[t / 64] |= bit;
    return before;
  };
  draw::distinct(stream, n, count, out, [&](uint32_t t, uint32_t i) {
    if (!mark(t)) return false;
    mark(n - count + i);
    return true;
  });
  for (size_t w = 0; w < words; ++w) {
    for (uint64_t bits = seen[w]; bits != 0; bits &= bits - 1) {
      *out++ = static_cast<uint32_t>(w * 64 + static_cast<size_t>(__builtin_ctzll(bits)));
    }
  }
}

std::span<const Pick> Picker::all(uint32_t n) {
  picks_.resize(n);
  for (uint32_t i = 0; i < n; ++i) picks_[i] = {i, 1};
  return picks_;
}

std::span<const Pick> Picker::uniform(const draw::Stream& stream, uint32_t n, int count, bool replace) {
  const auto wanted = static_cast<uint32_t>(count);
  if (count < 0 || (!replace && n <= wanted)) return all(n);
  if (n == 0 || count == 0) return {};
  order_.resize(wanted);
  if (replace) {
    draw::with_replacement(stream, n, wanted, order_.data());
    std::sort(order_.begin(), order_.end());
  } else {
    distinct_sorted(stream, n, wanted, order_.data(), seen_);
  }
  const float scale = static_cast<float>(n) / static_cast<float>(count);
  picks_.resize(wanted);
  for (uint32_t i = 0; i < wanted; ++i) picks_[i] = {order_[i], scale};
  return picks_;
}

std::span<const Pick> Picker::weighted(const draw::Stream& stream, std::span<const double> weights, int count,
                                       bool replace) {
  if (count < 0) return all(static_cast<uint32_t>(weights.size()));
  if (replace) return by_sums(stream, weights, count);
  keys_.resize(weights.size());
  for (size_t i = 0; i < weights.size(); i += 2) {
    const PhiloxBlock words = stream.four(static_cast<uint32_t>(i / 2));
    keys_[i] = draw::exponential_key(words[0], words[1], weights[i]);
    if (i + 1 < weights.size()) keys_[i + 1] = draw::exponential_key(words[2], words[3], weights[i + 1]);
  }
  return least(keys_, weights, count);
}

std::span<const Pick> Picker::least(std::span<const double> keys, std::span<const double> weights, int count) {
  order_.clear();
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) order_.push_back(i);
  }
  const auto wanted = static_cast<size_t>(count);
  picks_.clear();
  double threshold = std::numeric_limits<double>::infinity();
  if (order_.size() > wanted) {
    const auto before = [&](uint32_t a, uint32_t b) { return keys[a] < keys[b] || (keys[a] == keys[b] && a < b); };
    std::nth_element(order_.begin(), order_.begin() + count, order_.end(), before);
    threshold = keys[order_[wanted]];
    order_.resize(wanted);
    std::sort(order_.begin(), order_.end());
  }
  for (const uint32_t i : order_) picks_.push_back({i, draw::threshold_scale(weights[i], threshold)});
  return picks_;
}

std::span<const Pick> Picker::by_sums(const draw::Stream& stream, std::span<const double> weights, int count) {
  keys_.resize(weights.size());
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) keys_[i] = sum += weights[i];
  picks_.clear();
  if (!(sum > 0)) return {};
  order_.resize(count);
  for (size_t i = 0; i < order_.size(); ++i) {
    const PhiloxBlock words = stream.four(static_cast<uint32_t>(i / 2));
    const double unit = draw::open_unit(words[i % 2 * 2], words[i % 2 * 2 + 1]);
    order_[i] = draw::by_running_sum(keys_.data(), static_cast<uint32_t>(keys_.size()), unit);
  }
  std::sort(order_.begin(), order_.end());
  for (const uint32_t i : order_) picks_.push_back({i, static_cast<float>(sum / (count * weights[i]))});
  return picks_;
}

std::span<const Pick> Picker::merged(const draw::Stream& stream, std::span<const double> weights, int count) {
  by_sums(stream, weights, count);
  size_t kept = 0;
  for (const Pick pick : picks_) {
    if (kept > 0 && picks_[kept - 1].index == pick.index) {
      picks_[kept - 1].scale += pick.scale;
    } else {
      picks_[kept++] = pick;
    }
  }
  picks_.resize(kept);
  return picks_;
}

}  // namespace nacre
