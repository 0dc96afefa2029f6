// These functions bring values of edges into the order in which a kernel walks the edges. A kernel
// that gathers rows and looked up each value by its edge would read a whole memory sector for each
// value.
#pragma once

#include "nacre/engine/gpu/context.h"

namespace nacre {

// Describes an order of edges: the edge of each entry, on the host, and a name of the order.
struct KeptOrder {
  const EdgeId* edges;
  int64_t entries;
  std::string key;
};

// Returns the step that copies the rows of a value to `to`, in the order of `count` entries.
// `edges` has the edge of each entry, in device memory.
Step order_edges(const GpuKernel& g, NodeRef value, const EdgeId* edges, int64_t count, void* to);
// Returns the memory that holds a constant value for all steps, with its rows in the given order.
GpuContext::Derived& kept_edges(const GpuKernel& g, NodeRef value, const KeptOrder& order);
// Returns the step that fills the memory of kept_edges() when the constants have been computed
// anew.
Step order_kept_edges(const GpuKernel& g, NodeRef value, const KeptOrder& order);

}  // namespace nacre
