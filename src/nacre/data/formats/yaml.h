// Reads the YAML documents of DGL's layouts into a plain tree.
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
  std::vector<Yaml> items;        // items of a list, or values of a map
  std::vector<std::string> keys;  // keys of a map
  std::string where;              // for messages, for example "meta.yaml:12"

  // Returns the field, or a Yaml of Kind::none if this is not a map or has no such field.
  const Yaml& get(const std::string& key) const;
  bool given() const { return kind != Kind::none; }
  // These functions return this value as a text, a whole number or a list, and throw UserError if
  // it is none.
  const std::string& string() const;
  int64_t whole() const;
  const std::vector<Yaml>& list() const;
  // These functions return the field `key` as a text or a list, and throw UserError if it is not
  // given.
  std::string string(const std::string& key) const;
  const std::vector<Yaml>& list(const std::string& key) const;
  // Returns the text of a field, or `otherwise` if the field is not given.
  std::string string(const std::string& key, const std::string& otherwise) const;
};

// Opens the file that `entry` names under `key`; text may be gzipped. Throws UserError naming the
// entry if the file is missing.
class DataSource;
std::shared_ptr<const MappedFile> named_file(const DataSource& source, const Yaml& entry, const std::string& key);

Yaml read_yaml(const std::shared_ptr<const MappedFile>& file);

}  // namespace nacre
