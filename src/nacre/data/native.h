// Nacre's own format (.nacre): one file, memory-mapped, versioned, checksummed. Layout in native_layout.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/data/mapped_file.h"
#include "nacre/data/native_layout.h"

namespace nacre {

struct NativeOptions {
  // How features are stored. Whatever it is, reading gives f32 back.
  native::Element feature_type = native::Element::f32;
  // Row i of the features is written from this row of the data set's; empty: as they are.
  Array<NodeId> order;
  std::string conversion;  // JSON of how the data set was made; may be empty
  std::string where;       // for messages
  // Of a graph that is written by other means; 0: the data set's own.
  int64_t vertices = 0;
  int edge_types = 0;
};

// Writes to a temporary file beside `path`, syncs, renames: never a half-written data set.
void write_native(const Dataset& dataset, const std::string& path, const NativeOptions& options = {});
// Maps the file; arrays point into it, f32 features too (narrower ones are widened into memory). Header, graph, labels
// and splits are always validated; `verify` also reads everything else once and checks the checksums.
Dataset read_native(const std::string& path, bool verify);
Dataset read_native(const std::shared_ptr<const MappedFile>& file, bool verify);

bool is_native(const MappedFile& file);

// What a file holds, without reading it.
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
// Checks every byte of the file, in little memory. Throws UserError naming the section and its offset.
void verify_native(const std::shared_ptr<const MappedFile>& file);

namespace native {

// The parts of a file, for those who write them by other means.
class Writer;
void write_graph(Writer& writer, const Graph& graph);
void write_features(Writer& writer, const Dataset& dataset, const NativeOptions& options);
void write_rest(Writer& writer, const Dataset& data, const NativeOptions& options);  // all but graph and features

}  // namespace native
}  // namespace nacre
