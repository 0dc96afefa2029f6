#include "nacre/cluster/sums.h"

#include "nacre/base/bf16.h"

namespace nacre {
namespace {

// Bf16 is a bf16 number. Its operator += rounds the sum to bf16.
struct Bf16 {
  uint16_t bits;
  Bf16& operator+=(Bf16 other) {
    bits = to_bf16(from_bf16(bits) + from_bf16(other.bits));
    return *this;
  }
};

template <class T>
void sum_arrays(std::span<void* const> arrays, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    T sum = static_cast<const T*>(arrays[0])[i];
    for (size_t r = 1; r < arrays.size(); ++r) sum += static_cast<const T*>(arrays[r])[i];
    for (void* array : arrays) static_cast<T*>(array)[i] = sum;
  }
}

template <class T>
void add_elements(const ConstRows& from, const Rows& to, int64_t begin, int64_t end) {
  const int64_t width = from.row_bytes / static_cast<int64_t>(sizeof(T));
  for (int64_t i = begin; i < end; ++i) {
    const auto* x = reinterpret_cast<const T*>(from.row(i));
    auto* sum = reinterpret_cast<T*>(to.row(i));
    for (int64_t j = 0; j < width; ++j) sum[j] += x[j];
  }
}

}  // namespace

void add_rows(SumType type, const ConstRows& from, const Rows& to, int64_t begin, int64_t end) {
  switch (type) {
    case SumType::f32:
      return add_elements<float>(from, to, begin, end);
    case SumType::f64:
      return add_elements<double>(from, to, begin, end);
    case SumType::bf16:
      return add_elements<Bf16>(from, to, begin, end);
  }
}

int64_t bytes_of(SumType type) { return type == SumType::f32 ? 4 : type == SumType::f64 ? 8 : 2; }

void sum_in_place(SumType type, std::span<void* const> arrays, int64_t begin, int64_t end) {
  if (type == SumType::f32) {
    sum_arrays<float>(arrays, begin, end);
  } else {
    sum_arrays<double>(arrays, begin, end);
  }
}

SumSlice slice_of(int64_t count, int rank, int size) {
  // The first count % size ranks have one element more than the others.
  const int64_t each = count / size, more = count % size;
  const int64_t begin = rank * each + (rank < more ? rank : more);
  return {begin, begin + each + (rank < more ? 1 : 0)};
}

int64_t sum_bytes_sent(SumType type, int64_t count, int rank, int size) {
  const SumSlice own = slice_of(count, rank, size);
  const int64_t width = own.end - own.begin;
  return bytes_of(type) * ((count - width) + width * (size - 1));
}

int64_t sum_bytes_received(SumType type, int64_t count, int rank, int size) {
  // A rank receives as many bytes as it sends: its own slice from each other rank, and the sums of
  // all other slices.
  return sum_bytes_sent(type, count, rank, size);
}

}  // namespace nacre
