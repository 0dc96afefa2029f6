// What the families of reference operations share: access to operands as doubles, whatever their
// element type, and the list of families. Only files of this folder include this header.
#pragma once

#include <cstdint>

#include "nacre/kernel/ref/ref_op.h"

namespace nacre::ref {

// Reads an operand. A parameter has one row, which is returned for every row asked for.
template <class T>
class Reader {
 public:
  explicit Reader(const ConstView& view)
      : data_(view.data),
        dtype_(view.type.dtype),
        row_size_(view.type.row_size()),
        stride_(view.type.space.kind == SpaceKind::param ? 0 : row_size_),
        rows_(view.rows) {}

  double operator()(int64_t row, int64_t element = 0) const {
    const int64_t at = row * stride_ + element;
    switch (dtype_) {
      case DType::i32:
        return static_cast<const int32_t*>(data_)[at];
      case DType::u8:
        return static_cast<const uint8_t*>(data_)[at];
      default:
        return static_cast<const T*>(data_)[at];
    }
  }
  int64_t rows() const { return rows_; }
  int64_t row_size() const { return row_size_; }

 private:
  const void* data_;
  DType dtype_;
  int64_t row_size_;
  int64_t stride_;
  int64_t rows_;
};

template <class T>
class Writer {
 public:
  explicit Writer(const View& view)
      : data_(view.data), dtype_(view.type.dtype), row_size_(view.type.row_size()), rows_(view.rows) {}

  void operator()(int64_t row, int64_t element, double value) const {
    const int64_t at = row * row_size_ + element;
    switch (dtype_) {
      case DType::i32:
        static_cast<int32_t*>(data_)[at] = static_cast<int32_t>(value);
        return;
      case DType::u8:
        static_cast<uint8_t*>(data_)[at] = static_cast<uint8_t>(value);
        return;
      default:
        static_cast<T*>(data_)[at] = static_cast<T>(value);
    }
  }
  int64_t rows() const { return rows_; }
  int64_t row_size() const { return row_size_; }

 private:
  void* data_;
  DType dtype_;
  int64_t row_size_;
  int64_t rows_;
};

// Describes one operation to compute, with its operands.
template <class T>
struct Call {
  const Node& node;
  const Blocks& blocks;
  const StepContext& step;
  std::span<const ConstView> inputs;
  View result;

  Reader<T> in(size_t i) const { return Reader<T>(inputs[i]); }
  Writer<T> out() const { return Writer<T>(result); }
  const ValueType& in_type(size_t i) const { return inputs[i].type; }
  const ValueType& out_type() const { return result.type; }
};

// Stores sums that were collected as doubles, whatever T is.
template <class T>
void store(const Writer<T>& out, const std::vector<double>& values) {
  for (int64_t r = 0, i = 0; r < out.rows(); ++r) {
    for (int64_t j = 0; j < out.row_size(); ++j, ++i) out(r, j, values[i]);
  }
}

// Converts a size to the type that std::vector wants.
inline size_t count(int64_t n) { return static_cast<size_t>(n); }

inline int64_t edge_type_of(const Graph& graph, int64_t edge) { return graph.typed() ? graph.edge_type()[edge] : 0; }

// Returns the type of row r of a space of edges or pairs.
inline int64_t type_of(const Blocks& blocks, Space space, int64_t r) {
  const Graph& graph = blocks.layer(space.layer);
  if (space.kind == SpaceKind::edge) return edge_type_of(graph, r);
  return graph.pairs(space.kind == SpaceKind::pair_src ? End::src : End::dst).type[r];
}

// Each of these functions computes `call` and returns true if the operation belongs to its family;
// otherwise it returns false.
template <class T>
bool run_index(const Call<T>& call);
template <class T>
bool run_lstm(const Call<T>& call);
template <class T>
bool run_matrix(const Call<T>& call);
template <class T>
bool run_elementwise(const Call<T>& call);
template <class T>
bool run_shape(const Call<T>& call);
template <class T>
bool run_norm(const Call<T>& call);
template <class T>
bool run_loss(const Call<T>& call);

template <class T>
bool run_exchange(const Call<T>& call);

#define NACRE_REF_FAMILY(name)                   \
  template bool name<float>(const Call<float>&); \
  template bool name<double>(const Call<double>&)

}  // namespace nacre::ref
