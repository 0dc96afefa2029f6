#include "vertex_names.h"

#include <algorithm>

namespace nacre::cli {

size_t kind_of(const Dataset& d, int64_t v) {
  if (!d.heterogeneous()) return 0;
  const auto next = std::upper_bound(d.node_offsets.begin(), d.node_offsets.end(), v);
  return static_cast<size_t>(next - d.node_offsets.begin()) - 1;
}

int64_t original_id(const Dataset& d, int64_t v) {
  if (!d.original_ids.empty()) return d.original_ids[v];
  return d.heterogeneous() ? v - d.node_offsets[kind_of(d, v)] : v;
}

std::string csv_name(const Dataset& d, int64_t v) {
  if (d.node_names.empty()) return std::to_string(original_id(d, v));
  const std::string& name = d.node_names[v];
  if (name.find_first_of(",\"\n") == std::string::npos) return name;
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace nacre::cli
