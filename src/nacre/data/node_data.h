// What belongs to vertices — features, labels, splits — from arrays or from text files, and the limits all readers
// share.
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

constexpr int64_t kMaxNodeId = 0xFFFFFFFE;  // so that the number of vertices fits 32 bits as well
constexpr int64_t kMaxEdgeTypes = 65535;
constexpr int64_t kMaxClasses = 1'000'000;  // more are ids or measurements, not classes

int64_t largest_id(const EdgeList& edges);  // -1 without edges

// build_graph() for what comes from a file: says which edge names a vertex that is not there.
Graph graph_from(EdgeList edges, const std::string& where);

// Memory grows with the largest id: refuses a count out of all proportion to the `evidence` (edges or rows read), as a
// damaged or hashed id would give. Skip it where the user stated the count.
void check_vertex_count(int64_t num_nodes, int64_t evidence, const std::string& where);

Tensor features_from(NpyReader array);
void set_features(NpyReader array, Dataset& data);  // and where they are from
// Sets labels or targets, and num_classes. NaN and negative values mean "no label".
void labels_from(NpyReader array, Dataset& data);
// The same from text: one class per line, or 0/1 columns.
void labels_from_text(const std::shared_ptr<const MappedFile>& file, Dataset& data);
// The same from rows of `columns` values.
void labels_from_rows(std::span<const float> values, int64_t columns, Origin origin, Dataset& data);
// Ids or masks under the usual keys; parts that are missing stay empty.
void splits_from(const NpzFile& npz, int64_t num_nodes, Dataset& data);

// Reads the files named in `options` into `data`, whose graph is complete. False when none is named; refuses to replace
// what `data` already holds.
bool read_node_files(const LoadOptions& options, Dataset& data);

}  // namespace nacre
