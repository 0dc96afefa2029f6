// Declares what the readers of the large sets (MAG240M, IGB) share: folders for kinds and
// relations, with arrays that may be larger than memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nacre/data/formats/builder.h"
#include "nacre/data/formats/data_source.h"
#include "nacre/data/formats/relation_name.h"

namespace nacre {

struct LargeRelation {
  RelationName name;
  EdgeInput edges;
  std::optional<LargestEnds> largest;  // largest ends of the edges, once they have been looked for
};

// Opens every folder of `inside` that is named KIND`by`RELATION`by`KIND and has an edge_index.npy,
// in the order of their names.
std::vector<LargeRelation> open_large_relations(const DataSource& source, const std::string& inside,
                                                const std::string& by, PairLayout layout);
// Returns the largest id of `kind` among the edges, plus 1. Reads the edges of its relations once.
// Throws UserError naming the edge if the id is out of all proportion to the number of edges.
int64_t count_in_edges(std::vector<LargeRelation>& relations, const std::string& kind);
bool has_edges(const std::vector<LargeRelation>& relations, const std::string& kind);
void add_relations(std::vector<LargeRelation> relations, DatasetBuilder& builder);

}  // namespace nacre
