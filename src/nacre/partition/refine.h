// Improves a partition by moving vertices between parts.
#pragma once

#include <cstdint>

#include "nacre/partition/view.h"
#include "nacre/partition/work.h"

namespace nacre {

// Holds a partition that is being changed.
struct PartDraft {
  const UndirectedView& view;
  const int64_t* work;
  const Balance& balance;
  uint16_t* part;  // the part of each vertex
  std::vector<int64_t> load;
};

// Connections adds up the weights of a vertex's edges by part. Clearing the sums takes time in
// proportion to the number of parts that the edges lead to.
class Connections {
 public:
  explicit Connections(int parts) : weight_(parts, 0) {}
  void count(const UndirectedView& view, const uint16_t* part, int64_t v) {
    for (const uint16_t p : met_) weight_[p] = 0;
    met_.clear();
    view.each(v, [&](NodeId u, uint32_t weight) {
      const uint16_t p = part[u];
      if (weight_[p] == 0) met_.push_back(p);
      weight_[p] += weight;
    });
  }
  int64_t operator[](int p) const { return weight_[p]; }
  const std::vector<uint16_t>& met() const { return met_; }

 private:
  std::vector<int64_t> weight_;
  std::vector<uint16_t> met_;
};

// Moves vertices to the part with most of their edges while the cut becomes smaller and the work of
// all parts stays within its bounds. Stops after `rounds`, or when little changes.
void refine(PartDraft& draft, int rounds);

// Moves vertices, those whose move costs least first, until the work of every part is within its
// bounds or no vertex is small enough to help.
void rebalance(PartDraft& draft);

// Returns the weight of all edges between different parts.
int64_t cut_weight(const UndirectedView& view, const uint16_t* part);

}  // namespace nacre
