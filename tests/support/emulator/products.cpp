#include "support/emulator/products.h"

#include <cstring>
#include <vector>

#include "nacre/base/error.h"

namespace nacre::emulator {
namespace {

constexpr int64_t kWorkspace = 4096;  // not 0, so that callers that forget the workspace are found

bool has_bias(const GemmShape& s) { return s.epilogue == GemmEpilogue::bias || s.epilogue == GemmEpilogue::relu_bias; }
bool has_relu(const GemmShape& s) { return s.epilogue == GemmEpilogue::relu || s.epilogue == GemmEpilogue::relu_bias; }
bool is_empty(const GemmShape& s) { return s.m == 0 || s.n == 0 || s.k == 0 || s.batch == 0; }

std::string text(const GemmShape& s) {
  return "product " + std::to_string(s.m) + " x " + std::to_string(s.k) + " x " + std::to_string(s.n);
}

float from_bits(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
uint32_t to_bits(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
float widen(uint16_t x) { return from_bits(static_cast<uint32_t>(x) << 16); }
uint16_t narrow(float x) {
  const uint32_t bits = to_bits(x);
  if (x != x) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}
// Returns the nearest number with ten bits behind the point.
float to_tf32(float x) {
  const uint32_t bits = to_bits(x);
  if ((bits & 0x7f800000U) == 0x7f800000U) return x;
  return from_bits((bits + 0xfffU + (bits >> 13 & 1U)) & 0xffffe000U);
}

float read_in(const GemmShape& s, const void* from, int64_t at) {
  if (s.type == GemmType::bf16) return widen(static_cast<const uint16_t*>(from)[at]);
  const float value = static_cast<const float*>(from)[at];
  return s.type == GemmType::tf32 ? to_tf32(value) : value;
}
float read_out(const GemmShape& s, const void* from, int64_t at) {
  return s.bf16_out ? widen(static_cast<const uint16_t*>(from)[at]) : static_cast<const float*>(from)[at];
}
void write_out(const GemmShape& s, void* to, int64_t at, float value) {
  if (s.bf16_out) {
    static_cast<uint16_t*>(to)[at] = narrow(value);
  } else {
    static_cast<float*>(to)[at] = value;
  }
}

// Returns op(b) of one product of a batch as a [k, n] matrix without gaps between rows.
std::vector<float> read_b(const GemmShape& s, const void* b, int64_t first) {
  std::vector<float> values(static_cast<size_t>(s.k * s.n));
  for (int64_t k = 0; k < s.k; ++k) {
    for (int64_t j = 0; j < s.n; ++j) {
      values[static_cast<size_t>(k * s.n + j)] = read_in(s, b, first + (s.transpose_b ? j * s.ldb + k : k * s.ldb + j));
    }
  }
  return values;
}

void multiply_one(const GemmShape& s, const GemmArgs& args, int64_t number) {
  const std::vector<float> b = read_b(s, args.b, number * s.stride_b);
  const void* add = args.add != nullptr ? args.add : args.c;
  std::vector<float> row(static_cast<size_t>(s.n));
  for (int64_t i = 0; i < s.m; ++i) {
    std::fill(row.begin(), row.end(), 0.0F);
    for (int64_t k = 0; k < s.k; ++k) {
      const float a = read_in(s, args.a, number * s.stride_a + (s.transpose_a ? k * s.lda + i : i * s.lda + k));
      const float* from = b.data() + k * s.n;
      for (int64_t j = 0; j < s.n; ++j) row[static_cast<size_t>(j)] += a * from[j];
    }
    for (int64_t j = 0; j < s.n; ++j) {
      const int64_t at = number * s.stride_c + i * s.ldc + j;
      float value = s.k == 0 ? 0.0F : s.alpha * row[static_cast<size_t>(j)];
      if (s.beta != 0) value += s.beta * read_out(s, add, at);
      if (has_bias(s)) value += static_cast<const float*>(args.bias)[j];
      if (has_relu(s) && value < 0) value = 0;
      write_out(s, args.c, at, value);
    }
  }
}

// Fills in the leading dimensions that are 0, which means rows without gaps, and checks the shape.
void complete(GemmShape& s) {
  NACRE_CHECK(s.m >= 0 && s.n >= 0 && s.k >= 0 && s.batch >= 0, text(s) + ": a size is negative");
  const int64_t a_row = s.transpose_a ? s.m : s.k, b_row = s.transpose_b ? s.k : s.n;
  if (s.lda == 0) s.lda = a_row;
  if (s.ldb == 0) s.ldb = b_row;
  if (s.ldc == 0) s.ldc = s.n;
  NACRE_CHECK(s.lda >= a_row && s.ldb >= b_row && s.ldc >= s.n,
              text(s) + ": a leading dimension is shorter than a row");
  NACRE_CHECK(!s.bf16_out || s.type == GemmType::bf16, text(s) + ": bf16 results need bf16 operands");
  NACRE_CHECK(s.batch <= 1 || s.m * s.n == 0 || s.stride_c >= (s.m - 1) * s.ldc + s.n,
              text(s) + ": results of a batch overlap");
}

std::string key(const GemmShape& s) {
  std::string made;
  for (const int64_t x : {s.m, s.n, s.k, s.lda, s.ldb, s.ldc, s.batch, s.stride_a, s.stride_b, s.stride_c}) {
    made += std::to_string(x) + " ";
  }
  for (const float x : {s.alpha, s.beta}) made += std::to_string(to_bits(x)) + " ";
  for (const int x : {int{s.transpose_a}, int{s.transpose_b}, int{s.bf16_out}, static_cast<int>(s.type),
                      static_cast<int>(s.epilogue)}) {
    made += std::to_string(x) + " ";
  }
  return made;
}

}  // namespace

void multiply(const GemmShape& shape, const GemmArgs& args) {
  for (int64_t i = 0; i < shape.batch; ++i) multiply_one(shape, args, i);
}

int Products::prepare(GemmShape shape) {
  complete(shape);
  const std::lock_guard lock(mutex_);
  const auto [found, fresh] = handles_.try_emplace(key(shape), next_);
  if (fresh) plans_[next_++].shape = shape;
  ++plans_[found->second].users;
  return found->second;
}

void Products::release(int handle) {
  const std::lock_guard lock(mutex_);
  const auto found = plans_.find(handle);
  NACRE_CHECK(found != plans_.end(), "the product was not prepared");
  if (--found->second.users > 0) return;
  handles_.erase(key(found->second.shape));
  plans_.erase(found);
}

const Products::Plan& Products::plan_of(int handle) const {
  const auto found = plans_.find(handle);
  NACRE_CHECK(found != plans_.end(), "the product was not prepared");
  return found->second;
}

int64_t Products::workspace(int handle) const {
  const std::lock_guard lock(mutex_);
  return is_empty(plan_of(handle).shape) ? 0 : kWorkspace;
}

GemmShape Products::shape_for(int handle, const GemmArgs& args, const void* workspace) const {
  const std::lock_guard lock(mutex_);
  const GemmShape& s = plan_of(handle).shape;
  NACRE_CHECK(!has_bias(s) || args.bias != nullptr, text(s) + ": no bias");
  NACRE_CHECK(is_empty(s) || workspace != nullptr, text(s) + ": the product was given no workspace");
  return s;
}

}  // namespace nacre::emulator
