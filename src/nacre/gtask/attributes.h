// Which edge attributes matter to a model (WG1): indexing attributes are followed by an indexing
// operation of its DFG; inherent ones (degrees) shape the work without being followed; the rest are
// unused and stay out of tables.
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
  std::vector<NodeRef> nodes;  // the operations that follow it (indexing only)
};

// Every (location, attribute) pair that exists, in table order.
std::vector<AttributeRole> attribute_roles(const Dfg& dfg);
std::string attribute_text(const std::vector<AttributeRole>& roles);

// Distinct tables worth trying for the DFG: restrictions on the attributes it uses, so on types
// where operations follow them and on degrees where sequences are read. A DFG that uses no graph
// gets the table without restrictions.
std::vector<PartitionTable> candidate_tables(const Dfg& dfg);

}  // namespace nacre
