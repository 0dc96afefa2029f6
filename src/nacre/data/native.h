// Nacre's own format (.nacre): one file that is memory-mapped, versioned and checksummed. The
// layout is in native_layout.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/data/mapped_file.h"
#include "nacre/data/native_layout.h"

namespace nacre {

struct NativeOptions {
  // The type in which features are stored. Reading always gives f32.
  native::Element feature_type = native::Element::f32;
  // Row i of the file is row order[i] of the features. Empty means that rows keep their order.
  Array<NodeId> order;
  std::string conversion;  // JSON that says how the data set was made; may be empty
  std::string where;       // name of the source, for messages
  // Size of a graph that is written by other means; 0 means that the data set has its own graph.
  int64_t vertices = 0;
  int edge_types = 0;
};

// Writes to a temporary file beside `path`, syncs it and renames it, so that no half-written data
// set ever exists.
void write_native(const Dataset& dataset, const std::string& path, const NativeOptions& options = {});
// Maps the file. Arrays point into the mapping, also f32 features; narrower features are widened
// into memory. Header, graph, labels and splits are always validated; `verify` also reads
// everything else once and checks the checksums.
Dataset read_native(const std::string& path, bool verify);
Dataset read_native(const std::shared_ptr<const MappedFile>& file, bool verify);

bool is_native(const MappedFile& file);

// What a file holds, as its header says.
struct NativeSection {
  std::string name;
  native::Element element = native::Element::u8;
  Shape shape;
  int64_t offset = 0;
  int64_t bytes = 0;
};
struct NativeContents {
  uint32_t version = 0;
  std::vector<NativeSection> sections;
  std::string conversion;  // JSON; may be empty
};
NativeContents native_contents(const std::shared_ptr<const MappedFile>& file);
// Checks every byte of the file in little memory. Throws UserError naming the section and its
// offset.
void verify_native(const std::shared_ptr<const MappedFile>& file);

namespace native {

// These functions write the parts of a file, for writers that stream some of them.
class Writer;
void write_graph(Writer& writer, const Graph& graph);
void write_features(Writer& writer, const Dataset& dataset, const NativeOptions& options);
// Writes all sections except those of the graph and of the features.
void write_rest(Writer& writer, const Dataset& data, const NativeOptions& options);

}  // namespace native
}  // namespace nacre
