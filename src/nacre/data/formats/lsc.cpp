#include "nacre/data/formats/lsc.h"

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"

namespace nacre {

std::vector<LargeRelation> read_large_relations(const Place& place, const std::string& inside, const std::string& by,
                                                PairLayout layout) {
  std::vector<LargeRelation> relations;
  std::vector<std::string> notes;
  for (const std::string& folder : place.folders(inside)) {
    const std::string file = inside + "/" + folder + "/edge_index.npy";
    if (!is_relation(folder, by) || !place.has(file)) continue;
    relations.push_back(
        {split_relation(folder, by, place.at(inside)), file, pairs_from(NpyReader(place.open(file)), layout, notes)});
  }
  if (relations.empty()) {
    throw UserError(place.at(inside), "has no folder KIND" + by + "RELATION" + by + "KIND with an edge_index.npy");
  }
  return relations;
}

int64_t count_in_edges(const std::vector<LargeRelation>& relations, const std::string& kind) {
  int64_t top = -1;
  for (const LargeRelation& relation : relations) {
    if (relation.name.src == kind)
      for (const NodeId id : relation.edges.src) top = std::max<int64_t>(top, id);
    if (relation.name.dst == kind)
      for (const NodeId id : relation.edges.dst) top = std::max<int64_t>(top, id);
  }
  return top + 1;
}

void check_conversion(const NpyReader& array) {
  const NpyHeader& header = array.header();
  const bool mapped = header.type.kind == 'f' && header.type.size == 4 && !header.type.swap && !header.fortran;
  const int64_t bytes = mapped ? 0 : header.count * 4;
  const int64_t free = available_memory();
  if (bytes <= free) return;
  throw UserError(array.where(),
                  "takes " + human_bytes(static_cast<double>(bytes)) + " as f32, but " +
                      human_bytes(static_cast<double>(free)) + " of memory are free",
                  "train on a machine with more memory, or on fewer vertices");
}

}  // namespace nacre
