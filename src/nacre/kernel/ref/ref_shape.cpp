// Defines the reference of the operations that cut and join rows, or sum over elements of them.
#include <algorithm>
#include <cstring>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/ref/ref_impl.h"

namespace nacre::ref {
namespace {

// A row consists of outer_size() runs of last_dim() elements each.
int64_t last_dim(const ValueType& type) { return type.dims.empty() ? 1 : type.dims.back(); }
int64_t outer_size(const ValueType& type) {
  int64_t size = 1;
  for (size_t i = 0; i + 1 < type.dims.size(); ++i) size *= type.dims[i];
  return size;
}

template <class T>
void row_sum(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  const int64_t group = out.row_size() == 0 ? 0 : x.row_size() / out.row_size();
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t j = 0; j < out.row_size(); ++j) {
      double sum = 0;
      for (int64_t k = 0; k < group; ++k) sum += x(r, j * group + k);
      out(r, j, sum);
    }
  }
}

template <class T>
void column_sum(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  for (int64_t j = 0; j < out.row_size(); ++j) {
    double sum = 0;
    for (int64_t r = 0; r < x.rows(); ++r) sum += x(r, j);
    out(0, j, sum);
  }
}

template <class T>
void concat(const Call<T>& c) {
  const auto a = c.in(0);
  const auto b = c.in(1);
  const auto out = c.out();
  const int64_t na = last_dim(c.in_type(0));
  const int64_t nb = last_dim(c.in_type(1));
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t o = 0; o < outer_size(c.out_type()); ++o) {
      for (int64_t j = 0; j < na; ++j) out(r, o * (na + nb) + j, a(r, o * na + j));
      for (int64_t j = 0; j < nb; ++j) out(r, o * (na + nb) + na + j, b(r, o * nb + j));
    }
  }
}

template <class T>
void slice(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  const int64_t begin = c.node.ints[0];
  const int64_t length = last_dim(c.out_type());
  const int64_t total = last_dim(c.in_type(0));
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t o = 0; o < outer_size(c.out_type()); ++o) {
      for (int64_t j = 0; j < length; ++j) out(r, o * length + j, x(r, o * total + begin + j));
    }
  }
}

template <class T>
void pad(const Call<T>& c) {
  const auto x = c.in(0);
  const auto out = c.out();
  const int64_t begin = c.node.ints[0];
  const int64_t length = last_dim(c.in_type(0));
  const int64_t total = last_dim(c.out_type());
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t o = 0; o < outer_size(c.out_type()); ++o) {
      for (int64_t j = 0; j < total; ++j) {
        const bool inside = j >= begin && j < begin + length;
        out(r, o * total + j, inside ? x(r, o * length + j - begin) : 0);
      }
    }
  }
}

// Copies whole rows. The two operations that use this function compute nothing, so plans run this
// reference as their kernel.
template <class T>
void copy_rows(const ConstView& from, int64_t first, const View& to, int64_t at, int64_t rows) {
  NACRE_CHECK(first >= 0 && first + rows <= from.rows && at + rows <= to.rows,
              "the operation copies rows that do not exist");
  const int64_t width = to.type.row_size();
  parallel_for(rows, 1024, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<T*>(to.data) + (at + begin) * width,
                static_cast<const T*>(from.data) + (first + begin) * width, count((end - begin) * width) * sizeof(T));
  });
}

// Copies rows of vertices of one kind: to the rows `rows` of v0 if `spread`, otherwise from them.
template <class T>
void copy_kind(const ConstView& from, const View& to, const Array<NodeId>& rows, bool spread) {
  const int64_t width = to.type.row_size();
  for (int64_t i = 0; i < rows.size(); ++i) {
    const int64_t listed = rows[i];
    std::copy_n(static_cast<const T*>(from.data) + (spread ? i : listed) * width, width,
                static_cast<T*>(to.data) + (spread ? listed : i) * width);
  }
}

template <class T>
void slice_rows(const Call<T>& c) {
  const Space space = c.result.type.space;
  if (space.kind == SpaceKind::kind) return copy_kind<T>(c.inputs[0], c.result, c.blocks.kind_rows(space), false);
  copy_rows<T>(c.inputs[0], c.node.ints[0], c.result, 0, c.result.rows);
}

template <class T>
void join_rows(const Call<T>& c) {
  if (c.in_type(0).space.kind == SpaceKind::kind) {
    for (const ConstView& in : c.inputs) copy_kind<T>(in, c.result, c.blocks.kind_rows(in.type.space), true);
    return;
  }
  int64_t at = 0;
  for (const ConstView& in : c.inputs) {
    copy_rows<T>(in, 0, c.result, at, in.rows);
    at += in.rows;
  }
  NACRE_CHECK(at == c.result.rows, "the operation joins " + std::to_string(at) + " rows where " +
                                       std::to_string(c.result.rows) + " are needed");
}

}  // namespace

template <class T>
bool run_shape(const Call<T>& call) {
  switch (call.node.op) {
    case Op::row_sum:
      return row_sum(call), true;
    case Op::column_sum:
      return column_sum(call), true;
    case Op::concat:
      return concat(call), true;
    case Op::slice:
      return slice(call), true;
    case Op::pad:
      return pad(call), true;
    case Op::join_rows:
      return join_rows(call), true;
    case Op::slice_rows:
      return slice_rows(call), true;
    default:
      return false;
  }
}
NACRE_REF_FAMILY(run_shape);

}  // namespace nacre::ref
