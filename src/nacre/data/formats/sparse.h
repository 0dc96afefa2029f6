// Sparse matrices as SciPy stores them, in archives and in pickles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/data/npy.h"
#include "nacre/data/npz.h"
#include "nacre/graph/graph.h"

namespace nacre {

// The entries one by one, in storage order.
struct SparseMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<NodeId> row;
  std::vector<NodeId> column;
  std::vector<float> value;

  // Edges row → column; weights only where some value is not 1. num_nodes is the larger side.
  EdgeList edges() &&;
  // Entries at the same place are added. `evidence` is the size of the file in bytes: a matrix of zeros out of all
  // proportion to it is refused.
  Tensor dense(int64_t evidence, const std::string& where) const;
};

// The arrays of a CSR matrix; `shape` holds rows and columns.
struct CsrArrays {
  NpyReader indptr;
  NpyReader indices;
  NpyReader values;
  int64_t rows;
  int64_t columns;
};
SparseMatrix from_csr(CsrArrays arrays);

// CSR (data, indices, indptr, shape) or COO (row, col, data, shape), every key behind `prefix`.
SparseMatrix sparse_from(const NpzFile& npz, const std::string& prefix);

}  // namespace nacre
