#include "nacre/data/formats/sparse.h"

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npy_edges.h"

namespace nacre {
namespace {

std::vector<float> values_from(NpyReader array, size_t entries) {
  if (array.header().count != static_cast<int64_t>(entries)) {
    throw UserError(array.where_header(), "holds " + human_count(array.header().count) + " values for " +
                                              human_count(static_cast<int64_t>(entries)) + " entries");
  }
  std::vector<float> values(entries);
  array.stream_f32([&](int64_t first, std::span<const float> piece) {
    std::copy(piece.begin(), piece.end(), values.begin() + first);
  });
  return values;
}

std::pair<int64_t, int64_t> shape_from(NpyReader array) {
  if (array.header().count != 2)
    throw UserError(array.where_header(), "has shape " + shape_text(array.shape()) + "; two numbers are expected");
  const Buffer<int64_t> shape = array.to_i64(NanAs::error);
  if (shape[0] < 0 || shape[1] < 0)
    throw UserError(array.where() + " entry " + (shape[0] < 0 ? "0" : "1"), "is negative");
  return {shape[0], shape[1]};
}

// Throws UserError if one of `ids` is not below `count`. `name` is "row" or "column", for the
// message.
void check_within(const std::vector<NodeId>& ids, int64_t count, const std::string& name, const std::string& where) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= count) {
      throw UserError(where + " entry " + std::to_string(i), "lies in " + name + " " + human_count(ids[i]) +
                                                                 ", but there are only " + human_count(count) + " " +
                                                                 name + "s");
    }
  }
}

SparseMatrix from_coo(const NpzFile& npz, const std::string& prefix, int64_t rows, int64_t columns) {
  SparseMatrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.row = node_ids_from(npz.open(prefix + "row"));
  matrix.column = node_ids_from(npz.open(prefix + "col"));
  if (matrix.row.size() != matrix.column.size()) {
    throw UserError(npz.name(), "row and col differ in length: row ends after entry " +
                                    std::to_string(matrix.row.size()) + ", col after entry " +
                                    std::to_string(matrix.column.size()));
  }
  check_within(matrix.row, rows, "row", npz.name() + "[" + prefix + "row]");
  check_within(matrix.column, columns, "column", npz.name() + "[" + prefix + "col]");
  matrix.value = values_from(npz.open(prefix + "data"), matrix.row.size());
  return matrix;
}

}  // namespace

EdgeList SparseMatrix::edges() && {
  EdgeList edges;
  edges.num_nodes = std::max(rows, columns);
  edges.src = std::move(row);
  edges.dst = std::move(column);
  if (std::any_of(value.begin(), value.end(), [](float v) { return v != 1.0F; })) edges.weight = std::move(value);
  return edges;
}

Tensor SparseMatrix::dense(int64_t evidence, const std::string& where) const {
  constexpr int64_t always_fine = 16 << 20;
  constexpr int64_t most_per_byte = 256;
  int64_t size = 0;
  if (__builtin_mul_overflow(rows, columns, &size) || (size > always_fine && size / most_per_byte > evidence)) {
    throw UserError(where + " entry 0", "claims " + human_count(rows) + " rows of " + human_count(columns) +
                                            " features in a file of " + human_bytes(static_cast<double>(evidence)));
  }
  Tensor tensor = Tensor::zeros(DType::f32, {rows, columns});
  auto* to = tensor.data<float>();
  for (size_t i = 0; i < row.size(); ++i) to[int64_t{row[i]} * columns + column[i]] += value[i];
  return tensor;
}

SparseMatrix from_csr(CsrArrays arrays) {
  SparseMatrix matrix;
  matrix.rows = arrays.rows;
  matrix.columns = arrays.columns;
  const Buffer<int64_t> indptr = arrays.indptr.to_i64(NanAs::error);
  if (matrix.rows > kMaxNodeId || indptr.size() != matrix.rows + 1) {
    throw UserError(arrays.indptr.where_header(),
                    "holds " + human_count(indptr.size()) + " offsets for " + human_count(matrix.rows) + " rows");
  }
  const std::string where = arrays.indices.where();
  matrix.column = node_ids_from(std::move(arrays.indices));
  const auto entries = static_cast<int64_t>(matrix.column.size());
  const int64_t* sorted_to = std::is_sorted_until(indptr.data(), indptr.data() + indptr.size());
  if (indptr[0] != 0 || indptr[matrix.rows] != entries || sorted_to != indptr.data() + indptr.size()) {
    const int64_t at = indptr[0] != 0 ? 0 : std::min(sorted_to - indptr.data(), matrix.rows);
    throw UserError(arrays.indptr.where() + " entry " + std::to_string(at),
                    "does not fit the " + human_count(entries) + " indices");
  }
  check_within(matrix.column, matrix.columns, "column", where);
  matrix.row.resize(matrix.column.size());
  for (int64_t r = 0; r < matrix.rows; ++r) {
    std::fill(matrix.row.begin() + indptr[r], matrix.row.begin() + indptr[r + 1], static_cast<NodeId>(r));
  }
  matrix.value = values_from(std::move(arrays.values), matrix.column.size());
  return matrix;
}

SparseMatrix sparse_from(const NpzFile& npz, const std::string& prefix) {
  const auto [rows, columns] = shape_from(npz.open(prefix + "shape"));
  const std::string format = npz.has(prefix + "format") ? npz.text(prefix + "format")
                             : npz.has(prefix + "row")  ? "coo"
                                                        : "csr";
  if (format == "coo") return from_coo(npz, prefix, rows, columns);
  if (format == "csr") {
    return from_csr(
        {npz.open(prefix + "indptr"), npz.open(prefix + "indices"), npz.open(prefix + "data"), rows, columns});
  }
  throw UserError(npz.name() + "[" + prefix + "format] at byte 0",
                  "holds a sparse matrix of format '" + format.substr(0, 20) + "'",
                  "save it as CSR or COO: scipy.sparse.save_npz(file, matrix.tocsr())");
}

}  // namespace nacre
