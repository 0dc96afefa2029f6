// Decides which edge attributes matter to a model (WG1). Indexing attributes are followed by an
// indexing operation of the model's DFG. Inherent attributes (degrees) shape the work without being
// followed. All others are unused and do not appear in tables.
#pragma once

#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/gtask/table.h"

namespace nacre {

enum class Role : uint8_t { indexing, inherent, unused };

struct AttributeRole {
  Location location;
  Attribute attribute;
  Role role;
  std::vector<NodeRef> nodes;  // the operations that follow the attribute (indexing only)
};

// Returns the role of every (location, attribute) pair that exists, in table order.
std::vector<AttributeRole> attribute_roles(const Dfg& dfg);
std::string attribute_text(const std::vector<AttributeRole>& roles);

// Returns the distinct tables that are worth trying for the DFG. They restrict only attributes that
// the DFG uses: types if operations follow them, and degrees if sequences are read. A DFG that does
// not use the graph gets the table without restrictions.
std::vector<PartitionTable> candidate_tables(const Dfg& dfg);

}  // namespace nacre
