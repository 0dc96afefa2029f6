// Reads what belongs to vertices (features, labels, splits) from arrays or from text files, and
// defines the limits that all readers share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "nacre/data/dataset.h"
#include "nacre/data/load.h"
#include "nacre/data/npy.h"
#include "nacre/data/npz.h"

namespace nacre {

constexpr int64_t kMaxNodeId = 0xFFFFFFFE;  // so that the number of vertices fits 32 bits, too
constexpr int64_t kMaxEdgeTypes = 65535;
// The most classes of a data set. If labels have more distinct values, they are taken for ids or
// measurements and refused.
constexpr int64_t kMaxClasses = 1'000'000;

int64_t largest_id(const EdgeList& edges);  // -1 if there are no edges

// Returns what build_graph() returns for these edges. If an edge names a missing node, the error
// says which edge of `where` it is.
Graph graph_from(EdgeList edges, const std::string& where);

// Returns whether there may be this many vertices: their number is in proportion to `evidence`
// (edges or rows read), or small. Damaged or hashed ids give numbers out of all proportion.
bool is_plausible_vertex_count(int64_t num_nodes, int64_t evidence);

// Throws UserError if a number of vertices is out of all proportion to `evidence` (edges or rows
// read), as a damaged or hashed id would give, because memory grows with the number of vertices.
// Not to be called if the user stated the number.
void check_vertex_count(int64_t num_nodes, int64_t evidence, const std::string& where);

Tensor features_from(NpyReader array);
void set_features(NpyReader array, Dataset& data);  // sets the features and their origin
// Sets labels or targets, and num_classes. NaN and negative values mean that there is no label.
void labels_from(NpyReader array, Dataset& data);
// Sets labels or targets, and num_classes, from text: one class per line, or 0/1 columns.
void labels_from_text(const std::shared_ptr<const MappedFile>& file, Dataset& data);
// Sets labels or targets, and num_classes, from rows of `columns` values.
void labels_from_rows(std::span<const float> values, int64_t columns, Origin origin, Dataset& data);
// Reads ids or masks under the usual keys; missing parts stay empty.
void splits_from(const NpzFile& npz, int64_t num_nodes, Dataset& data);

// Reads the files named in `options` into `data`, whose graph must be complete. Returns false if
// none is named. Throws UserError instead of replacing what `data` already holds.
bool read_node_files(const LoadOptions& options, Dataset& data);

}  // namespace nacre
