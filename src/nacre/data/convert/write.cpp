#include "nacre/data/convert/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/convert/fits.h"
#include "nacre/data/convert/notes.h"
#include "nacre/data/convert/stream.h"
#include "nacre/data/native.h"
#include "nacre/data/reordered.h"

namespace nacre {
namespace {

void add_loops(Dataset& data) {
  if (!data.relations.empty()) {
    throw UserError("--self-loops", "this graph has named relations, and a loop belongs to none of them",
                    "leave the option out");
  }
  const int64_t before = data.graph.num_edges();
  data.graph = add_self_loops(data.graph);
  data.notes.push_back(loops_note(data.graph.num_edges() - before));
}

void check_memory(const Dataset& data, const ConvertOptions& o) {
  const int64_t need = reorder_bytes(data.graph, o.reorder);
  if (need <= o.memory) return;
  throw UserError("--reorder",
                  fmt::format("{} holds the graph in memory and needs about {}, more than the {} of --memory",
                              reorder_name(o.reorder), human_bytes(static_cast<double>(need)),
                              human_bytes(static_cast<double>(o.memory))),
                  "give more with --memory, or use --reorder none");
}

}  // namespace

ConvertReport write_converted(Dataset data, const std::string& path, const std::string& conversion,
                              const ConvertOptions& o) {
  if (o.self_loops) add_loops(data);
  NativeOptions n{.feature_type = o.feature_type, .conversion = conversion, .where = data.name};
  if (o.reorder != Reorder::none) {
    check_memory(data, o);
    n.order = by_kind(vertex_order(data.graph, o.reorder), data.node_offsets);
    data = reordered(data, n.order);
    data.notes.push_back("nodes were reordered (" + std::string(reorder_name(o.reorder)) +
                         "); predictions are written by the ids that nodes had before");
  }
  const bool features = data.features.defined() || !data.type_features.empty();
  add_type_note(o, features, data.notes);
  write_native(data, path, n);
  ConvertReport report;
  report.vertices = data.num_nodes();
  report.edges = data.graph.num_edges();
  report.notes = data.notes;
  return report;
}

ConvertReport convert_dataset(const std::string& source, const std::string& path, const ConvertOptions& options) {
  if (options.memory < kLeastConvertMemory) {
    throw UserError("--memory", human_bytes(static_cast<double>(options.memory)) + " is too little to work in",
                    "give at least " + human_bytes(static_cast<double>(kLeastConvertMemory)));
  }
  if (options.load.num_nodes < 0)
    throw UserError("--num-nodes", "is negative", "leave it out or give the number of nodes");
  if (const auto streamed = stream_convert(source, path, options)) return *streamed;
  check_whole(source, options);
  return write_converted(load_dataset(source, options.load), path, conversion_json(source, options), options);
}

}  // namespace nacre
