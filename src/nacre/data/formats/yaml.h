// The YAML documents of DGL's layouts, as a plain tree.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/data/mapped_file.h"

namespace nacre {

struct Yaml {
  enum class Kind { none, scalar, list, map };
  Kind kind = Kind::none;
  std::string text;
  std::vector<Yaml> items;        // of a list; of a map, its values
  std::vector<std::string> keys;  // of a map
  std::string where;              // "meta.yaml:12", for messages

  // The field, or nothing (Kind::none) when this is no map or has no such field.
  const Yaml& get(const std::string& key) const;
  bool given() const { return kind != Kind::none; }
  // Throw UserError unless this is such a thing.
  const std::string& string() const;
  int64_t whole() const;
  const std::vector<Yaml>& list() const;
  // The same of a field that must be given.
  std::string string(const std::string& key) const;
  const std::vector<Yaml>& list(const std::string& key) const;
  // Text of a field; `otherwise` when it is not given.
  std::string string(const std::string& key, const std::string& otherwise) const;
};

// The file that `entry` names under `key`; plain or gzipped text too. Throws UserError at the entry when it is missing.
class Place;
std::shared_ptr<const MappedFile> named_file(const Place& place, const Yaml& entry, const std::string& key);

Yaml read_yaml(const std::shared_ptr<const MappedFile>& file);

}  // namespace nacre
