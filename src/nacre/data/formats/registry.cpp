#include <algorithm>
#include <string_view>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/data/formats/format.h"

namespace nacre {
namespace {

const Format& by_name(const std::string& name) {
  const std::span<const Format> all = formats();
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const Format& f : all) names.emplace_back(f.name);
  const std::string known = choose_name("--format", "format", name.substr(0, 40), names);
  return *std::find_if(all.begin(), all.end(), [&](const Format& f) { return known == f.name; });
}

std::string contents(const DataSource& source) {
  constexpr size_t shown = 6;
  std::vector<std::string> names = source.files();
  for (const std::string& folder : source.folders()) names.push_back(folder + "/");
  std::string text;
  for (size_t i = 0; i < std::min(shown, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > shown) text += " and " + std::to_string(names.size() - shown) + " more";
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::span<const Format> formats() {
  static const std::vector<Format> all = all_formats();
  return all;
}

std::string format_names() {
  std::string names;
  for (const Format& format : formats()) names += (names.empty() ? "" : ", ") + std::string(format.name);
  return names;
}

Choice choose_format(const DataSource& source, const std::string& asked) {
  if (!asked.empty()) {
    const size_t colon = asked.find(':');
    const Format& format = by_name(asked.substr(0, colon));
    const std::string variant = colon == std::string::npos ? "" : asked.substr(colon + 1);
    if (!variant.empty() && std::string(format.variants).empty())
      throw UserError("--format", std::string(format.name) + " has no variants", "leave out ':" + variant + "'");
    return {&format, variant};
  }
  std::vector<const Format*> fitting;
  std::string reasons;
  for (const bool general : {false, true}) {
    for (const Format& format : formats()) {
      const std::string why = format.general == general ? format.recognise(source) : "";
      if (why.empty()) continue;
      fitting.push_back(&format);
      reasons += (reasons.empty() ? "" : ", ") + std::string(format.name) + " (" + why + ")";
    }
    if (!fitting.empty()) break;
  }
  if (fitting.size() == 1) return {fitting[0], ""};
  if (fitting.empty()) {
    if (!source.is_folder()) refuse_stranger(source);
    throw UserError(source.path(), "is a folder of no known layout; it holds " + contents(source),
                    "name a file in it, or say what it is with --format: " + format_names());
  }
  throw UserError(source.path(), "could be " + reasons, "say which with --format");
}

bool is_own_file(const Choice& choice) { return std::string_view(choice.format->name) == "nacre"; }

}  // namespace nacre
