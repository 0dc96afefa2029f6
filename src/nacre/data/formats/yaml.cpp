#include "nacre/data/formats/yaml.h"

#include <yaml-cpp/yaml.h>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/data_source.h"
#include "nacre/data/formats/lines.h"

namespace nacre {
namespace {

constexpr int64_t kMaxBytes = 4 << 20;
constexpr int kMaxDepth = 16;
constexpr int kMaxNodes = 1'000'000;  // aliases can make a short document huge

class Copier {
 public:
  explicit Copier(const std::string& name) : name_(name) {}

  Yaml copy(const YAML::Node& node, int depth) {
    Yaml out;
    out.where = name_ + ":" + std::to_string(node.Mark().line + 1);
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes)
      throw UserError(out.where, "is nested too deeply or refers to itself");
    if (node.IsScalar()) {
      out.kind = Yaml::Kind::scalar;
      out.text = node.Scalar();
    } else if (node.IsSequence()) {
      out.kind = Yaml::Kind::list;
      for (const YAML::Node& item : node) out.items.push_back(copy(item, depth + 1));
    } else if (node.IsMap()) {
      out.kind = Yaml::Kind::map;
      for (const auto& field : node) {
        if (!field.first.IsScalar()) throw UserError(out.where, "has a key that is not a word");
        out.keys.push_back(field.first.Scalar());
        out.items.push_back(copy(field.second, depth + 1));
      }
    }
    return out;
  }

 private:
  const std::string& name_;
  int nodes_ = 0;
};

}  // namespace

const Yaml& Yaml::get(const std::string& key) const {
  static const Yaml nothing;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return items[i];
  }
  return nothing;
}

const std::string& Yaml::string() const {
  if (kind != Kind::scalar) throw UserError(where, "a word is expected here");
  return text;
}

int64_t Yaml::whole() const {
  int64_t value = 0;
  if (kind != Kind::scalar || !parse_whole(text, value)) throw UserError(where, "a whole number is expected here");
  return value;
}

const std::vector<Yaml>& Yaml::list() const {
  if (kind != Kind::list) throw UserError(where, "a list is expected here");
  return items;
}

std::string Yaml::string(const std::string& key) const {
  if (!get(key).given()) throw UserError(where, "has no '" + key + "'");
  return get(key).string();
}

const std::vector<Yaml>& Yaml::list(const std::string& key) const {
  if (!get(key).given()) throw UserError(where, "has no '" + key + "'");
  return get(key).list();
}

std::string Yaml::string(const std::string& key, const std::string& otherwise) const {
  const Yaml& field = get(key);
  return field.given() ? field.string() : otherwise;
}

std::shared_ptr<const MappedFile> named_file(const DataSource& source, const Yaml& entry, const std::string& key) {
  const std::string inside = entry.string(key);
  if (source.text(inside).empty()) {
    throw UserError(entry.get(key).where, "names " + in_quotes(inside) + ", which is missing",
                    "the data set is incomplete: fetch it again");
  }
  return source.open_text(inside);
}

Yaml read_yaml(const std::shared_ptr<const MappedFile>& file) {
  if (file->size() > kMaxBytes)
    throw UserError(file->name() + " at byte " + std::to_string(kMaxBytes),
                    "is larger than " + human_bytes(kMaxBytes) + " of YAML");
  const std::string text(reinterpret_cast<const char*>(file->bytes().data()), static_cast<size_t>(file->size()));
  try {
    Yaml root = Copier(file->name()).copy(YAML::Load(text), 0);
    if (root.kind != Yaml::Kind::map)
      throw UserError(file->name() + ":1", "is not a YAML document of 'key: value' lines");
    return root;
  } catch (const YAML::Exception& error) {
    throw UserError(file->name() + ":" + std::to_string(error.mark.line + 1), "is not valid YAML: " + error.msg);
  }
}

}  // namespace nacre
