#include "nacre/data/formats/lsc.h"

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/data/node_data.h"

namespace nacre {

std::vector<LargeRelation> open_large_relations(const DataSource& source, const std::string& inside,
                                                const std::string& by, PairLayout layout) {
  std::vector<LargeRelation> relations;
  for (const std::string& folder : source.folders(inside)) {
    const std::string file = inside + "/" + folder + "/edge_index.npy";
    if (!is_relation(folder, by) || !source.has(file)) continue;
    relations.push_back({split_relation(folder, by, source.at(inside)), npy_edges(source.open(file), layout)});
  }
  if (relations.empty()) {
    throw UserError(source.at(inside), "has no folder KIND" + by + "RELATION" + by + "KIND with an edge_index.npy");
  }
  return relations;
}

int64_t count_in_edges(std::vector<LargeRelation>& relations, const std::string& kind) {
  int64_t top = -1;
  int64_t edges = 0;
  std::string where;
  const auto take = [&](const LargeRelation& relation, int64_t id, int64_t edge) {
    if (id <= top) return;
    top = id;
    where = relation.edges.where + " edge " + std::to_string(edge);
  };
  for (LargeRelation& relation : relations) {
    if (relation.name.src != kind && relation.name.dst != kind) continue;
    if (!relation.largest) relation.largest = largest_ends(relation.edges);
    edges += relation.edges.at_most;
    if (relation.name.src == kind) take(relation, relation.largest->src, relation.largest->src_edge);
    if (relation.name.dst == kind) take(relation, relation.largest->dst, relation.largest->dst_edge);
  }
  check_vertex_count(top + 1, edges, where);
  return top + 1;
}

bool has_edges(const std::vector<LargeRelation>& relations, const std::string& kind) {
  return std::any_of(relations.begin(), relations.end(), [&](const LargeRelation& r) {
    return r.edges.at_most > 0 && (r.name.src == kind || r.name.dst == kind);
  });
}

void add_relations(std::vector<LargeRelation> relations, DatasetBuilder& builder) {
  for (LargeRelation& r : relations) {
    const int src = builder.type(r.name.src, r.edges.where + " at byte 0");
    const int dst = builder.type(r.name.dst, r.edges.where + " at byte 0");
    builder.add_edges({src, r.name.name, dst}, std::move(r.edges));
  }
}

}  // namespace nacre
