// A twin before anything is drawn: its counts at the wanted scale, and what it will cost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/data/twin.h"

namespace nacre {

// Names the streams of random numbers. Each purpose has a key of its own.
enum class TwinStream : uint64_t {
  communities,
  degrees,
  out_degrees,
  partners,
  labels,
  class_order,
  labelled,
  splits,
  targets,
  profiles,
  means,
  noise,
  words,
  roads,
  regions
};

struct PlannedRelation {
  int from = 0;
  int to = 0;
  int64_t draws = 0;       // number of pairs if symmetric, otherwise of directed edges
  bool symmetric = false;  // whether both directions are stored
  double homophily = 0;
  DegreeTail out;
  DegreeTail in;
};

struct TwinPlan {
  const TwinSpec* spec = nullptr;
  std::string name;  // for example "twin:arxiv@0.1"
  uint64_t seed = 0;
  double scale = 1;
  int64_t num_nodes = 0;
  int64_t num_edges = 0;   // number of edges as stored
  int64_t self_loops = 0;  // 1 if a symmetric original has an odd number of edges
  int64_t communities = 0;
  std::vector<int64_t> kind_begin;  // first vertex id of each kind, kinds + 1
  std::vector<PlannedRelation> relations;
  std::vector<std::string> notes;

  uint64_t key(TwinStream stream, uint64_t index = 0) const;
  int64_t kind_size(int kind) const { return kind_begin[kind + 1] - kind_begin[kind]; }
  int kind_of(int64_t vertex) const;
  bool labelled_kind(int kind) const { return spec->kinds.empty() || spec->kinds[kind].labelled; }
};

TwinPlan plan_twin(std::string_view name_and_scale, uint64_t seed);

// Returns the most bytes held at any moment while the twin is generated, with or without features.
int64_t twin_peak_bytes(const TwinPlan& plan, bool features = true);
// Throws UserError that names a scale that fits if `available` bytes do not hold the twin.
void require_memory(const TwinPlan& plan, int64_t available, bool features = true);

}  // namespace nacre
