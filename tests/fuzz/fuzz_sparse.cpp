// Fuzzes SciPy matrices: an archive as it is, read as a matrix.
#include "fuzz/fuzz.h"
#include "nacre/data/formats/sparse.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = nacre::fuzz::file_of({data, size});
  nacre::fuzz::run([&] {
    const nacre::NpzFile npz(file);
    nacre::fuzz::run([&] { nacre::sparse_from(npz, "attr_").dense(file->size(), "fuzz"); });
    nacre::SparseMatrix matrix = nacre::sparse_from(npz, npz.has("adj_shape") ? "adj_" : "");
    nacre::fuzz::run([&] { matrix.dense(file->size(), "fuzz"); });
    const nacre::EdgeList edges = std::move(matrix).edges();
    if (edges.num_nodes < 1 << 16) nacre::build_graph(edges, "fuzz");
  });
  return 0;
}
