// What the large sets (MAG240M, IGB) share: folders by kind and by relation, with arrays that may be larger than
// memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/data/formats/builder.h"
#include "nacre/data/formats/place.h"
#include "nacre/data/formats/relation_name.h"
#include "nacre/data/npy_edges.h"

namespace nacre {

struct LargeRelation {
  RelationName name;
  std::string file;  // inside the place
  EdgeList edges;
};

// Every folder of `inside` named KIND`by`RELATION`by`KIND with an edge_index.npy, in the order of their names.
std::vector<LargeRelation> read_large_relations(const Place& place, const std::string& inside, const std::string& by,
                                                PairLayout layout);
// The largest id of `kind` among the edges, + 1.
int64_t count_in_edges(const std::vector<LargeRelation>& relations, const std::string& kind);
// Throws UserError when features of this size, converted to f32, cannot be held in memory.
void check_conversion(const NpyReader& array);

}  // namespace nacre
