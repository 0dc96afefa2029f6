#include "nacre/gtask/table.h"

#include <charconv>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/gtask/sort_keys.h"

namespace nacre {
namespace {

constexpr std::array<std::string_view, kLocations> kLocationNames = {"src", "dst", "edge"};
constexpr std::array<std::string_view, kAttributes> kAttributeNames = {"id", "type", "degree"};

[[noreturn]] void refuse(std::string_view part, const std::string& what, const std::string& remedy) {
  throw UserError("partition table", "'" + std::string(part) + "': " + what, remedy);
}

std::string_view trim(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

template <size_t N>
size_t index_of(const std::array<std::string_view, N>& names, std::string_view name) {
  size_t i = 0;
  while (i < N && names[i] != name) ++i;
  return i;
}

Restriction parse_restriction(std::string_view part, std::string_view value) {
  if (value == "min") return {Restriction::minimum, 0};
  int64_t k = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), k);
  if (error == std::errc::result_out_of_range) refuse(part, "the number is too large", "use a whole number or min");
  if (error != std::errc{} || end != value.data() + value.size()) {
    refuse(part, "is not a number of distinct values", "use a whole number or min");
  }
  if (k < 1) refuse(part, "a gTask holds at least one value", "use 1 or more, or min");
  return {Restriction::exact, k};
}

void parse_entry(PartitionTable& table, std::string_view part) {
  const std::string usage = "write LOCATION-ATTRIBUTE=K or =min, such as dst-id=1 or edge-type=1";
  const size_t equals = part.find('=');
  if (part.empty() || equals == std::string_view::npos) refuse(part, "is not a restriction", usage);
  const std::string_view name = trim(part.substr(0, equals));
  const size_t dash = name.find('-');
  if (dash == std::string_view::npos) refuse(part, "unknown attribute '" + std::string(name) + "'", usage);
  const size_t location = index_of(kLocationNames, name.substr(0, dash));
  const size_t attribute = index_of(kAttributeNames, name.substr(dash + 1));
  const std::string known = "use src-id, src-degree, dst-id, dst-degree, edge-id or edge-type";
  if (location == kLocations || attribute == kAttributes) {
    refuse(part, "unknown attribute '" + std::string(name) + "'", known);
  }
  const auto where = static_cast<Location>(location);
  const auto which = static_cast<Attribute>(attribute);
  if (!entry_exists(where, which)) {
    refuse(part, which == Attribute::type ? "nodes have no types" : "edges have no degree", known);
  }
  if (!table.free(where, which)) refuse(part, std::string(name) + " is restricted twice", "name it once");
  table.set(where, which, parse_restriction(part, trim(part.substr(equals + 1))));
}

}  // namespace

std::string entry_name(Location location, Attribute attribute) {
  return std::string(kLocationNames[static_cast<size_t>(location)]) + "-" +
         std::string(kAttributeNames[static_cast<size_t>(attribute)]);
}

bool entry_exists(Location location, Attribute attribute) {
  return attribute == Attribute::id || (attribute == Attribute::type) == (location == Location::edge);
}

PartitionTable PartitionTable::parse(std::string_view text) {
  PartitionTable table;
  if (trim(text).empty()) return table;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    parse_entry(table, trim(text.substr(from, comma - from)));
    from = comma + 1;
  }
  return table;
}

std::string PartitionTable::text() const {
  std::string text;
  for (int l = 0; l < kLocations; ++l) {
    for (int a = 0; a < kAttributes; ++a) {
      const Restriction& entry = at(static_cast<Location>(l), static_cast<Attribute>(a));
      if (entry.kind == Restriction::free) continue;
      if (!text.empty()) text += ',';
      text += entry_name(static_cast<Location>(l), static_cast<Attribute>(a)) + "=";
      text += entry.kind == Restriction::minimum ? "min" : std::to_string(entry.k);
    }
  }
  return text;
}

void PartitionTable::set(Location location, Attribute attribute, Restriction restriction) {
  const bool exact = restriction.kind == Restriction::exact;
  NACRE_CHECK(restriction.kind == Restriction::free || entry_exists(location, attribute),
              "a table cannot restrict " + entry_name(location, attribute));
  NACRE_CHECK(!exact || restriction.k >= 1, "a gTask holds at least one value");
  if (!exact) restriction.k = 0;
  entries_[static_cast<size_t>(location)][static_cast<size_t>(attribute)] = restriction;
}

PartitionTable PartitionTable::mirrored() const {
  PartitionTable table = *this;
  std::swap(table.entries_[static_cast<size_t>(Location::src)], table.entries_[static_cast<size_t>(Location::dst)]);
  return table;
}

bool PartitionTable::empty() const { return *this == PartitionTable(); }

bool PartitionTable::owns(Location end) const {
  if (end == Location::edge) return true;
  if (at(Location::edge, Attribute::id).kind == Restriction::exact) return false;
  // If the first keys all belong to this end, the edges of each of its vertices are together. Keys
  // after the last one that can close a gTask do not matter.
  bool sorted_by_end = true;
  for (const SortKey& key : sort_keys(*this)) {
    sorted_by_end = sorted_by_end && key.location == end;
    if (at(key.location, key.attribute).kind == Restriction::exact && !sorted_by_end) return false;
  }
  return true;
}

}  // namespace nacre
