#include "vertex_names.h"

#include <algorithm>

#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"

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

namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string csv_name(const Dataset& d, int64_t v) {
  return d.node_names.empty() ? std::to_string(original_id(d, v)) : csv_field(d.node_names[v]);
}

std::string csv_class(const Dataset& d, int64_t k) {
  const auto at = static_cast<size_t>(k);
  return at < d.class_names.size() ? csv_field(d.class_names[at]) : std::to_string(k);
}

void write_names(const std::string& output, const Dataset& d, bool rows_named, bool classes) {
  const std::string stem = output.substr(0, output.rfind('.'));
  if (!rows_named && !d.node_names.empty()) {
    std::string text = "row,node\n";
    for (int64_t v = 0; v < d.num_nodes(); ++v) text += std::to_string(v) + "," + csv_name(d, v) + "\n";
    write_file(stem + ".nodes.csv", text);
    log_info("the nodes of the rows are named in " + stem + ".nodes.csv");
  }
  if (!classes || d.class_names.empty()) return;
  std::string text = "class,name\n";
  for (int64_t k = 0; k < d.num_classes; ++k) text += std::to_string(k) + "," + csv_class(d, k) + "\n";
  write_file(stem + ".classes.csv", text);
  log_info("the classes are named in " + stem + ".classes.csv");
}

}  // namespace nacre::cli
