#include "nacre/train/row_sums.h"

#include <algorithm>

#include "nacre/base/parallel.h"

namespace nacre {
namespace {

// Returns whether features look like bags of words: no number is negative, and more than 90 % are
// zeros, as far as the first rows show. Published results on bags of words divide each row by its
// sum.
bool looks_like_word_counts(const Tensor& x) {
  const float* v = x.data<float>();
  const int64_t sample = std::min<int64_t>(x.size(), 1 << 22);
  int64_t zeros = 0;
  for (int64_t i = 0; i < sample; ++i) {
    if (v[i] < 0) return false;
    zeros += v[i] == 0 ? 1 : 0;
  }
  return !x.empty() && zeros * 10 > sample * 9;
}

}  // namespace

bool divides_rows(const Tensor& x, const std::string& how) {
  return how != "none" && x.defined() && (how != "auto" || looks_like_word_counts(x));
}

Tensor rows_divided_by_sum(const Tensor& x) {
  Tensor out(DType::f32, x.shape());
  const int64_t width = x.row_size();
  parallel_for(x.rows(), 256, [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      const float* in = x.data<float>() + r * width;
      float* to = out.data<float>() + r * width;
      double sum = 0;
      for (int64_t j = 0; j < width; ++j) sum += in[j];
      const float factor = sum == 0 ? 0.0F : static_cast<float>(1 / sum);
      for (int64_t j = 0; j < width; ++j) to[j] = in[j] * factor;
    }
  });
  return out;
}

}  // namespace nacre
