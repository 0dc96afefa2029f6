// Variants of typed products on a GPU: rows times one matrix for each edge type.
//
// A vertex has a cell for each edge type. The variant "side by side" puts the rows of all cells of
// a vertex beside each other, so that the library computes all types as one product. The variant
// "by cell" reads the rows of a vertex's cells one after the other and adds the products in
// registers. The variant "by type" lets the library multiply the rows of each type by itself. The
// variant "read where they lie" multiplies rows of one type that it finds through their pairs,
// without a copy.
#pragma once

#include <optional>

#include "nacre/kernel/cuda/typed_mma.h"
#include "nacre/plan/variants.h"
#include "nacre/plan/variants/chunks.h"

namespace nacre {

// How many pairs there are at one end of a layer's edges.
struct PairCounts {
  int64_t vertices = 0;  // number of vertices at that end
  int64_t pairs = 0;
  int64_t types = 0;  // number of edge types
  // Returns whether 32 bits suffice to number the cells, one for each vertex and type.
  bool has_cells() const;
};

// A kernel that sums rows times their types' matrices over the edges of each vertex (typed_reduce).
struct TypedReduceFacts {
  PairCounts pairs;
  int64_t in = 0, out = 0;       // widths of the rows read and written
  bool of_pairs = false;         // the kernel reads sums over the edges of pairs from memory
  std::optional<RowFactor> own;  // a product of the vertices' own rows that the tail adds
  RowProgram tail;               // the tail without the product `own`
};
TypedReduceFacts typed_reduce_facts(const PlannedKernel& k);
// Returns the description of the products by cell from which their source is written. `with_own`:
// with the own product and the tail.
cuda::TypedProduct product_by_cell(const TypedReduceFacts& facts, const DeviceTraits& device, bool with_own);

// The decision `typed sums`, for kernels that compute sums over the edges of pairs and multiply
// them: how they multiply.
enum class TypedReduceWay { by_cell, side_by_side, by_type };
const VariantList<TypedReduceFacts>& typed_reduce_variants();
// The decision `products of pairs`, for kernels that multiply sums that lie in memory: how they
// multiply.
enum class PairProductWay { by_cell_with_own, by_cell, by_type };
const VariantList<TypedReduceFacts>& pair_product_variants();
// Returns whether the kernel takes products of the library: those by type, those of cells that lie
// side by side, or a product of the vertices' own rows that follows the others.
bool takes_library(const TypedReduceFacts& facts, TypedReduceWay way);
bool takes_library(const TypedReduceFacts& facts, PairProductWay way);
// All functions typed_chunks() return what decides how many vertices (side by side) or pairs (by
// type) a kernel takes at a time. Variants that read rows where they lie take all of them.
ChunkFacts typed_chunks(const TypedReduceFacts& facts, const DeviceTraits& device, TypedReduceWay way);
ChunkFacts typed_chunks(const TypedReduceFacts& facts, const DeviceTraits& device, PairProductWay way);

// A weight gradient for each type, from rows summed over the edges of pairs (typed_weight_grad).
struct TypedGradFacts {
  PairCounts pairs;
  int64_t summed = 0, by_row = 0;  // widths of the rows that are summed and of those read by row
};
TypedGradFacts typed_grad_facts(const PlannedKernel& k);
enum class TypedGradWay { side_by_side, by_type };
const VariantList<TypedGradFacts>& typed_grad_variants();
ChunkFacts typed_chunks(const TypedGradFacts& facts, const DeviceTraits& device, TypedGradWay way);

// Stored rows times their type's matrix (typed_rows).
struct TypedRowsFacts {
  PairCounts pairs;
  int64_t rows = 0;           // typed rows: pairs or edges
  int64_t in = 0, out = 0;    // columns of the input and of the result
  bool of_pairs = false;      // the typed rows are pairs; otherwise edges
  bool by_vertex = false;     // the rows read are vertices', found by pair
  bool every_vertex = false;  // each type has a pair of every vertex or none
};
TypedRowsFacts typed_rows_facts(const PlannedKernel& k);
enum class TypedRowsWay { tensor_cores, side_by_side, by_type };
const VariantList<TypedRowsFacts>& typed_rows_variants();
ChunkFacts typed_chunks(const TypedRowsFacts& facts, const DeviceTraits& device, TypedRowsWay way);
// The decision `matrices of types`, for products on tensor cores: a block of threads keeps a type's
// matrix in shared memory over a long run of rows, or reads it slice by slice for each tile of
// rows. The limit is the number of runs, about; each type with rows has at least one.
enum class TypeMatrix { kept, in_slices };
const VariantList<TypedRowsFacts>& type_matrix_variants();
// Returns the description of the products from which a source for tensor cores is written.
cuda::TypedProduct product_of_rows(const TypedRowsFacts& facts, const DeviceTraits& device, TypeMatrix way);

// A weight gradient for each type, from stored rows (typed_rows_grad).
struct TypedRowsGradFacts {
  PairCounts pairs;
  int64_t rows = 0;       // the same as in TypedRowsFacts
  int64_t k = 0, n = 0;   // the gradient of a type is [k, n]
  bool of_pairs = false;  // the same as in TypedRowsFacts
  // Whether the rows of the first and of the second operand are vertices', found by pair.
  bool x_by_vertex = false, g_by_vertex = false;
  bool every_vertex = false;  // the same as in TypedRowsFacts
};
TypedRowsGradFacts typed_rows_grad_facts(const PlannedKernel& k);
// The limit of the variant tensor_cores is the approximate number of runs of rows. Each run has
// partial sums of its own.
enum class TypedRowsGradWay { tensor_cores, side_by_side, by_type };
const VariantList<TypedRowsGradFacts>& typed_rows_grad_variants();
ChunkFacts typed_chunks(const TypedRowsGradFacts& facts, const DeviceTraits& device, TypedRowsGradWay way);

// Returns the distance in elements from one row of summed cells to the next: a whole number of
// words of 16 bytes. `bytes` is the size of an element.
int64_t sums_ld(int64_t width, int64_t bytes);
// Returns the distance in floats from one row of a copy to the next.
int64_t copy_ld(int64_t width);
// Returns whether rows are copied as bf16 for the products by type of stored rows.
bool copies_bf16(const TypedRowsFacts& facts, const DeviceTraits& device);
bool copies_bf16(const TypedRowsGradFacts& facts, const DeviceTraits& device);

}  // namespace nacre
