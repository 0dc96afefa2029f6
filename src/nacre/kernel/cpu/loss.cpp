#include "nacre/kernel/cpu/loss.h"

#include <algorithm>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre::cpu {
namespace {

// The rows are cut into at most 64 chunks of at least 256 rows each.
int64_t chunk_rows(int64_t rows) { return std::max<int64_t>(256, (rows + 63) / 64); }
int64_t num_chunks(int64_t rows) { return rows == 0 ? 0 : (rows + chunk_rows(rows) - 1) / chunk_rows(rows); }

// Sums the `width` columns of what body(row, accumulators) adds up. The totals are left in the
// first `width` doubles of the workspace.
template <class Body>
void sum_columns(int64_t rows, int64_t width, double* workspace, Body body) {
  const int64_t chunk = chunk_rows(rows);
  std::fill(workspace, workspace + std::max<int64_t>(1, num_chunks(rows)) * width, 0.0);
  parallel_for(rows, chunk, [&](int64_t b, int64_t e) {
    double* sums = workspace + b / chunk * width;
    for (int64_t r = b; r < e; ++r) body(r, sums);
  });
  for (int64_t c = 1; c < num_chunks(rows); ++c) {
    for (int64_t j = 0; j < width; ++j) workspace[j] += workspace[c * width + j];
  }
}

}  // namespace

int64_t rows_workspace(int64_t rows, int64_t width) { return std::max<int64_t>(1, num_chunks(rows)) * width; }

void nll(const LossArgs& a) {
  sum_columns(a.rows, 1, a.workspace, [&](int64_t r, double* sum) {
    const int32_t label = a.label[r];
    if (label < 0 || a.weight[r] == 0) return;
    NACRE_CHECK(label < a.classes, "a label is not one of the classes");
    double value = a.x[r * a.classes + label];
    if (a.smoothing > 0) {
      double all = 0;
      for (int64_t c = r * a.classes; c < (r + 1) * a.classes; ++c) all += a.x[c];
      value = (1 - a.smoothing) * value + a.smoothing * all / static_cast<double>(a.classes);
    }
    *sum -= static_cast<double>(a.weight[r]) * value;
  });
  *a.out = static_cast<float>(a.workspace[0]);
}

void nll_grad(const LossArgs& a) {
  const auto each = static_cast<float>(a.smoothing / static_cast<double>(a.classes));
  const auto own = static_cast<float>(1 - a.smoothing);
  parallel_for(a.rows, 1024, [&](int64_t b, int64_t e) {
    std::fill(a.out + b * a.classes, a.out + e * a.classes, 0.0F);
    for (int64_t r = b; r < e; ++r) {
      if (a.label[r] < 0 || a.weight[r] == 0) continue;
      const float scale = -*a.gradient * a.weight[r];
      float* row = a.out + r * a.classes;
      if (a.smoothing > 0) std::fill(row, row + a.classes, scale * each);
      row[a.label[r]] = a.smoothing > 0 ? scale * (own + each) : scale;
    }
  });
}

void bce(const LossArgs& a) {
  const double yes = 1 - a.smoothing / 2, no = a.smoothing / 2;
  sum_columns(a.rows, 1, a.workspace, [&](int64_t r, double* sum) {
    const double of_row = a.weight_of_each ? 1 : a.weight[r];
    if (of_row == 0) return;
    double row = 0;
    for (int64_t c = r * a.classes; c < (r + 1) * a.classes; ++c) {
      if (a.weight_of_each && a.weight[c] == 0) continue;
      // The loss of an element is log(1 + eˣ) − t·x, written so that large |x| neither overflows
      // nor cancels.
      const double x = a.x[c];
      const double loss = std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))) - (a.target[c] != 0 ? yes : no) * x;
      row += a.weight_of_each ? a.weight[c] * loss : loss;
    }
    *sum += of_row * row;
  });
  *a.out = static_cast<float>(a.workspace[0]);
}

void bce_grad(const LossArgs& a) {
  const auto yes = static_cast<float>(1 - a.smoothing / 2), no = static_cast<float>(a.smoothing / 2);
  parallel_for(a.rows, 256, [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      for (int64_t c = r * a.classes; c < (r + 1) * a.classes; ++c) {
        const float scale = *a.gradient * a.weight[a.weight_of_each ? c : r];
        a.out[c] = scale == 0 ? 0 : scale * (1 / (1 + std::exp(-a.x[c])) - (a.target[c] != 0 ? yes : no));
      }
    }
  });
}

void column_moments(const float* x, int64_t rows, int64_t width, float* out, double* workspace) {
  const double n = rows == 0 ? 1.0 : static_cast<double>(rows);
  sum_columns(rows, width, workspace, [&](int64_t r, double* sums) {
    for (int64_t j = 0; j < width; ++j) sums[j] += x[r * width + j];
  });
  for (int64_t j = 0; j < width; ++j) out[j] = static_cast<float>(workspace[j] / n);
  sum_columns(rows, width, workspace, [&](int64_t r, double* sums) {
    for (int64_t j = 0; j < width; ++j) {
      const double d = static_cast<double>(x[r * width + j]) - out[j];
      sums[j] += d * d;
    }
  });
  for (int64_t j = 0; j < width; ++j) out[width + j] = static_cast<float>(workspace[j] / n);
}

void standardize_grad(const StandardizeGradArgs& a) {
  const int64_t w = a.width;
  const double n = a.rows == 0 ? 1.0 : static_cast<double>(a.rows);
  const auto rstd = [&](int64_t j) { return 1 / std::sqrt(static_cast<double>(a.moments[w + j]) + a.epsilon); };
  sum_columns(a.rows, 2 * w, a.workspace, [&](int64_t r, double* sums) {
    for (int64_t j = 0; j < w; ++j) {
      const double g = a.g[r * w + j];
      sums[j] += g;
      sums[w + j] += g * (a.x[r * w + j] - a.moments[j]);
    }
  });
  // The gradient is dx = rstd · (g − mean(g) − (x − mean)·rstd²·mean(g·(x − mean))).
  double* mean_g = a.workspace;
  double* slope = a.workspace + w;
  for (int64_t j = 0; j < w; ++j) {
    mean_g[j] /= n;
    slope[j] *= rstd(j) * rstd(j) / n;
  }
  parallel_for(a.rows, 1024, [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      for (int64_t j = 0; j < w; ++j) {
        const int64_t i = r * w + j;
        a.out[i] = static_cast<float>(rstd(j) * (a.g[i] - mean_g[j] - (a.x[i] - a.moments[j]) * slope[j]));
      }
    }
  });
}

}  // namespace nacre::cpu
