// Reads the sparse matrices that SciPy stores in .npz archives and in pickles, and turns them into
// edges or dense tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/data/npy.h"
#include "nacre/data/npz.h"
#include "nacre/graph/graph.h"

namespace nacre {

// A sparse matrix as a list of its entries, in the order in which they are stored.
struct SparseMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<NodeId> row;
  std::vector<NodeId> column;
  std::vector<float> value;

  // Returns an edge row → column for each entry. There are weights only if some value is not 1.
  // num_nodes is the larger side of the matrix.
  EdgeList edges() &&;
  // Returns the dense matrix; entries at the same place are added. `evidence` is the size of the
  // file in bytes. A matrix that is out of all proportion to it is refused.
  Tensor dense(int64_t evidence, const std::string& where) const;
};

// Holds the arrays of a CSR matrix.
struct CsrArrays {
  NpyReader indptr;
  NpyReader indices;
  NpyReader values;
  int64_t rows;
  int64_t columns;
};
SparseMatrix from_csr(CsrArrays arrays);

// Reads CSR (data, indices, indptr, shape) or COO (row, col, data, shape). Every key begins with
// `prefix`.
SparseMatrix sparse_from(const NpzFile& npz, const std::string& prefix);

}  // namespace nacre
