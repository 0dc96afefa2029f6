// Names of relations as files and keys spell them: "paper___cites___paper".
#pragma once

#include <string>

namespace nacre {

struct RelationName {
  std::string src;
  std::string name;
  std::string dst;

  bool operator<(const RelationName& other) const;
  std::string joined(const std::string& by) const;
};

// Returns the three names in `text`. Throws UserError naming `where` unless `text` is three names
// with `by` between them.
RelationName split_relation(const std::string& text, const std::string& by, const std::string& where);
bool is_relation(const std::string& text, const std::string& by);

}  // namespace nacre
