// What the large sets (MAG240M, IGB) share: folders by kind and by relation, with arrays that may be larger than
// memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nacre/data/formats/builder.h"
#include "nacre/data/formats/place.h"
#include "nacre/data/formats/relation_name.h"

namespace nacre {

struct LargeRelation {
  RelationName name;
  EdgeInput edges;
  std::optional<LargestEnds> largest;  // once they were looked for
};

// Every folder of `inside` named KIND`by`RELATION`by`KIND with an edge_index.npy, in the order of their names.
std::vector<LargeRelation> open_large_relations(const Place& place, const std::string& inside, const std::string& by,
                                                PairLayout layout);
// The largest id of `kind` among the edges, + 1. Reads the edges of its relations once. Throws UserError naming the
// edge when it is out of all proportion to their number.
int64_t count_in_edges(std::vector<LargeRelation>& relations, const std::string& kind);
bool has_edges(const std::vector<LargeRelation>& relations, const std::string& kind);
void add_relations(std::vector<LargeRelation> relations, DatasetBuilder& builder);

}  // namespace nacre
