// Graph partition tables (WG2) say how the edges of a graph are cut into gTasks. A table restricts
// the number of distinct values that an edge attribute may take among the edges of one gTask:
// exactly k (a gTask is closed before it gets a k+1st value), as few as possible (`min`), or any
// number. Vertex-centric, edge-centric, neighbour grouping, 2-D and padded plans are all tables.
//
// Text form, as in `--plan`: restrictions separated by commas, each LOCATION-ATTRIBUTE=K or =min,
// for example
//   dst-id=1                 vertex-centric                edge-id=1            edge-centric
//   dst-id=1,edge-id=32      neighbour grouping            src-id=64,dst-id=64  2-D
//   dst-id=16,dst-degree=min destinations of similar degree src-id=64,edge-type=1
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace nacre {

enum class Location : uint8_t { src, dst, edge };
enum class Attribute : uint8_t { id, type, degree };
inline constexpr int kLocations = 3;
inline constexpr int kAttributes = 3;

// Returns a name such as "dst-id". Only src-id, src-degree, dst-id, dst-degree, edge-id and
// edge-type exist.
std::string entry_name(Location location, Attribute attribute);
bool entry_exists(Location location, Attribute attribute);

struct Restriction {
  enum Kind : uint8_t { free, exact, minimum };
  Kind kind = free;
  int64_t k = 0;  // used by `exact` only
  friend bool operator==(const Restriction&, const Restriction&) = default;
};

class PartitionTable {
 public:
  // Reads a table from its text form. Throws UserError, which names the wrong part, for an unknown
  // name, k < 1, a repeated entry, or an entry that does not exist (edge-degree; src-type and
  // dst-type, because vertices have no types).
  static PartitionTable parse(std::string_view text);
  // Returns the canonical text form: parse(text()) == *this. A table without restrictions (one
  // gTask) gives "".
  std::string text() const;

  const Restriction& at(Location location, Attribute attribute) const {
    return entries_[static_cast<size_t>(location)][static_cast<size_t>(attribute)];
  }
  void set(Location location, Attribute attribute, Restriction restriction);
  bool free(Location location, Attribute attribute) const { return at(location, attribute).kind == Restriction::free; }
  bool empty() const;  // whether there is no restriction at all
  // Returns the table with sources and destinations exchanged, which does the same work backwards.
  PartitionTable mirrored() const;
  // Returns whether all edges of a destination (or source) are in one gTask, so that a gTask owns
  // the rows it writes. This holds if only attributes of that end can close a gTask, and the edges
  // are sorted by that end before anything else (see sort_keys.h).
  bool owns(Location end) const;

  friend bool operator==(const PartitionTable&, const PartitionTable&) = default;

 private:
  std::array<std::array<Restriction, kAttributes>, kLocations> entries_;
};

}  // namespace nacre
