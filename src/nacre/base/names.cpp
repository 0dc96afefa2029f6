#include "nacre/base/names.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"

namespace nacre {
namespace {

// Returns `name` in lower case, without hyphens, underscores and blanks.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c != '-' && c != '_' && c != ' ') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), row[j] + 1, next[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

std::string nearest_name(const std::string& given, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // a longer text is no mistyped name
  const std::string said = plain(given);
  if (said.empty() || said.size() > kLongest) return "";
  std::string best;
  // Among names at equal distance, the one whose length differs least wins.
  std::pair<size_t, size_t> best_distance = {std::max<size_t>(1, said.size() / 2) + 1, 0};
  for (const std::string& name : known) {
    const std::string other = plain(name);
    size_t distance = edit_distance(said, other);
    // If one of the two texts begins with the other, their distance counts as 1 at most, no matter
    // how many letters are missing.
    if (said.size() >= 3 && (other.starts_with(said) || said.starts_with(other)))
      distance = std::min<size_t>(distance, 1);
    const size_t longer = std::max(said.size(), other.size()) - std::min(said.size(), other.size());
    if (std::pair(distance, longer) < best_distance) {
      best_distance = {distance, longer};
      best = name;
    }
  }
  return best;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string suggest(const std::string& given, const std::vector<std::string>& known) {
  const std::string best = nearest_name(given, known);
  const std::string all = "choose " + listed(known);
  return best.empty() ? all : "did you mean '" + best + "'? " + all;
}

std::optional<std::string> find_name(const std::string& given, const std::vector<std::string>& known,
                                     const std::vector<Synonym>& synonyms) {
  for (const std::string& name : known) {
    if (name == given) return name;
  }
  const std::string said = plain(given);
  for (const std::string& name : known) {
    if (plain(name) == said && !said.empty()) return name;
  }
  for (const Synonym& s : synonyms) {
    if (plain(s.said) == said && std::ranges::find(known, s.meant) != known.end()) return s.meant;
  }
  return std::nullopt;
}

std::string choose_name(const std::string& option, const std::string& what, const std::string& given,
                        const std::vector<std::string>& known, const std::vector<Synonym>& synonyms) {
  if (const auto name = find_name(given, known, synonyms)) return *name;
  throw UserError(option, "unknown " + what + " '" + given + "'", suggest(given, known));
}

std::string counted(int64_t count, const std::string& one, const std::string& many) {
  return human_count(count) + " " + (count == 1 ? one : many.empty() ? one + "s" : many);
}

}  // namespace nacre
