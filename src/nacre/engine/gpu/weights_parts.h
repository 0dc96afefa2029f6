// Numbers of edges in the order in which a kernel walks the edges. Read one by one where rows are gathered, each would
// cost a sector of memory in the way of the rows.
#pragma once

#include "nacre/engine/gpu/context.h"

namespace nacre {

// An order of edges: the position of each entry's edge, on the host, and a name for it.
struct KeptOrder {
  const EdgeId* edges;
  int64_t entries;
  std::string key;
};

// Whether a value of edges is the same in every step.
bool constant_edges(const GpuKernel& g, NodeRef value);
// Rows of the value, `width` numbers each, of `count` entries whose edges are at `edges` in device memory.
Step order_edges(const GpuKernel& g, NodeRef value, const EdgeId* edges, int64_t count, void* to);
// A constant in that order, kept for all steps, and the step that brings it there once it has been computed.
GpuContext::Derived& kept_edges(const GpuKernel& g, NodeRef value, const KeptOrder& order);
Step order_kept_edges(const GpuKernel& g, NodeRef value, const KeptOrder& order);

}  // namespace nacre
