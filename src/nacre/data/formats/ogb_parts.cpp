#include "nacre/data/formats/ogb_parts.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/lines.h"

namespace nacre {

std::string ogb_split_folder(const Place& place, const std::string& variant) {
  const std::vector<std::string> found = place.folders("split");
  std::string list;
  for (const std::string& name : found) list += (list.empty() ? "" : ", ") + name;
  if (!variant.empty()) {
    if (std::find(found.begin(), found.end(), variant) != found.end()) return "split/" + variant;
    throw UserError(place.at("split"), "has no split '" + variant + "'", list.empty() ? "" : "found: " + list);
  }
  if (found.size() > 1) {
    throw UserError(place.at("split"), "holds several splits: " + list,
                    "choose one, as in --format ogb:" + found.front());
  }
  return found.empty() ? "" : "split/" + found.front();
}

void ogb_read_splits(const Place& place, const std::string& folder, int type, DatasetBuilder& builder) {
  Splits& splits = builder.data.splits;
  bool any = false;
  for (const auto& [name, part] :
       {std::pair{"train", &splits.train}, std::pair{"valid", &splits.val}, std::pair{"test", &splits.test}}) {
    const std::string inside = place.text(folder + "/" + name + ".csv");
    if (inside.empty()) continue;
    any = true;
    const auto file = place.open(inside);
    *part = builder.split(type, read_whole_numbers(file), file->name());
  }
  if (!any) builder.data.notes.push_back(place.at(folder) + " holds no train.csv.gz: no split was read");
}

int64_t ogb_count(const Place& place, const std::string& inside) {
  const auto file = place.open_text(inside);
  const std::vector<int64_t> counts = read_whole_numbers(file);
  if (counts.size() != 1) {
    throw UserError(file->name(), "lists " + human_count(static_cast<int64_t>(counts.size())) + " graphs",
                    "sets of one graph are read: ogbn-*");
  }
  if (counts[0] < 0) throw UserError(file->name(), "holds a negative count");
  return counts[0];
}

void ogb_note_unused(const Place& place, const std::string& folder, const std::vector<std::string>& known,
                     std::vector<std::string>& notes) {
  std::string unused;
  for (std::string name : place.files(folder)) {
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    if (std::find(known.begin(), known.end(), name) == known.end()) unused += (unused.empty() ? "" : ", ") + name;
  }
  if (!unused.empty()) notes.push_back("not used: " + unused);
}

}  // namespace nacre
