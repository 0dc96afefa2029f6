#include "nacre/data/formats/ogb_parts.h"

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/formats/torch_file.h"

namespace nacre {
namespace {

constexpr const char* kDict = "split_dict.pt";
constexpr std::pair<const char*, DatasetBuilder::Part> kParts[] = {
    {"train", DatasetBuilder::Part::train}, {"valid", DatasetBuilder::Part::val}, {"test", DatasetBuilder::Part::test}};

// Reads {"train": ids, "valid": …}, or {"train": {KIND: ids}, …}. Returns false if there is no such
// file.
bool read_split_dict(const DataSource& source, const std::string& folder, const std::string& kind, int type,
                     DatasetBuilder& builder) {
  if (!source.has(folder + "/" + kDict)) return false;
  const TorchFile file(source.open(folder + "/" + kDict));
  for (const auto& [name, part] : kParts) {
    const auto ids = file.numbers(name, kind);
    if (ids.has_value()) builder.set_split(part, type, *ids, {file.name() + "[" + name + "]", "entry"});
  }
  return true;
}

}  // namespace

std::string ogb_split_folder(const DataSource& source, const std::string& variant) {
  const std::vector<std::string> found = source.folders("split");
  std::string list;
  for (const std::string& name : found) list += (list.empty() ? "" : ", ") + name;
  if (!variant.empty()) {
    if (std::find(found.begin(), found.end(), variant) != found.end()) return "split/" + variant;
    throw UserError(source.at("split"), "has no split '" + variant + "'", list.empty() ? "" : "found: " + list);
  }
  if (found.size() > 1) {
    throw UserError(source.at("split"), "holds several splits: " + list,
                    "choose one, as in --format ogb:" + found.front());
  }
  return found.empty() ? "" : "split/" + found.front();
}

void ogb_read_splits(const DataSource& source, const std::string& folder, int type, DatasetBuilder& builder) {
  bool any = false;
  for (const auto& [name, part] : kParts) {
    const std::string text = source.text(folder + "/" + name + ".csv");
    const std::string tensor = folder + "/" + name + ".pt";
    if (text.empty() && !source.has(tensor)) continue;
    any = true;
    if (!text.empty()) {
      const auto file = source.open(text);
      builder.set_split(part, type, read_whole_numbers(file), {file->name()});
    } else {
      const TorchFile file(source.open(tensor));
      builder.set_split(part, type, file.numbers("").value_or(std::vector<int64_t>()), {file.name(), "entry"});
    }
  }
  if (!any && !read_split_dict(source, folder, "", type, builder))
    builder.data.notes.push_back(source.at(folder) + " holds no train.csv.gz and no split_dict.pt: no split was read");
}

bool ogb_read_split_dict(const DataSource& source, const std::string& folder, DatasetBuilder& builder) {
  if (!source.has(folder + "/" + kDict)) return false;
  const TorchFile file(source.open(folder + "/" + kDict));
  const std::vector<std::string> kinds = file.keys("train");
  if (kinds.empty()) throw UserError(file.name() + " at byte 0", "names no kind of node under 'train'");
  return read_split_dict(source, folder, kinds[0], builder.type(kinds[0], file.name() + " at byte 0"), builder);
}

int64_t ogb_count(const DataSource& source, const std::string& inside) {
  const auto file = source.open_text(inside);
  const std::vector<int64_t> counts = read_whole_numbers(file);
  if (counts.size() != 1) {
    throw UserError(file->name() + " row " + std::to_string(std::min<size_t>(1, counts.size())),
                    "lists " + human_count(static_cast<int64_t>(counts.size())) + " graphs",
                    "only sets of one graph are supported: ogbn-*");
  }
  if (counts[0] < 0) throw UserError(file->name() + " row 0", "holds a negative count");
  return counts[0];
}

void ogb_note_unused(const DataSource& source, const std::string& folder, const std::vector<std::string>& known,
                     std::vector<std::string>& notes) {
  std::string unused;
  for (std::string name : source.files(folder)) {
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    if (std::find(known.begin(), known.end(), name) == known.end()) unused += (unused.empty() ? "" : ", ") + name;
  }
  if (!unused.empty()) notes.push_back("not used: " + unused);
}

}  // namespace nacre
