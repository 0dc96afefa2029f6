#include "nacre/data/edge_columns.h"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace nacre {

EdgeColumn edge_column_named(std::string_view name) {
  std::string low;
  for (const char c : name) {
    if (c != '"' && c != '\'' && c != '_' && c != '-' && c != ':')
      low += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), low) != names.end();
  };
  if (is_one_of({"src", "source", "from", "srcid", "sourceid", "fromnodeid", "fromid", "u", "head", "node1", "id1",
                 "startid"})) {
    return EdgeColumn::src;
  }
  if (is_one_of({"dst", "dest", "target", "to", "dstid", "targetid", "tonodeid", "toid", "v", "tail", "node2", "id2",
                 "endid"})) {
    return EdgeColumn::dst;
  }
  if (is_one_of({"weight", "w", "value", "edgeweight"})) return EdgeColumn::weight;
  if (is_one_of({"type", "etype", "edgetype", "rel", "relation", "reltype"})) return EdgeColumn::type;
  return EdgeColumn::ignored;
}

}  // namespace nacre
