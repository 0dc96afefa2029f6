#include "nacre/data/formats/relation_name.h"

#include <tuple>

#include "nacre/base/error.h"

namespace nacre {

bool RelationName::operator<(const RelationName& other) const {
  return std::tie(src, name, dst) < std::tie(other.src, other.name, other.dst);
}

std::string RelationName::joined(const std::string& by) const { return src + by + name + by + dst; }

bool is_relation(const std::string& text, const std::string& by) {
  const size_t first = text.find(by);
  const size_t second = first == std::string::npos ? first : text.find(by, first + by.size());
  if (second == std::string::npos || text.find(by, second + by.size()) != std::string::npos) return false;
  return first > 0 && second > first + by.size() && second + by.size() < text.size();
}

RelationName split_relation(const std::string& text, const std::string& by, const std::string& where) {
  if (!is_relation(text, by)) {
    throw UserError(where, "'" + text.substr(0, 60) + "' is not the name of a relation",
                    "write KIND" + by + "RELATION" + by + "KIND");
  }
  const size_t first = text.find(by);
  const size_t second = text.find(by, first + by.size());
  return {text.substr(0, first), text.substr(first + by.size(), second - first - by.size()),
          text.substr(second + by.size())};
}

}  // namespace nacre
