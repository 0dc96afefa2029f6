// Where a kernel of a GPU plan runs: on the device, by the binder of its family, or on the host
// between copies.
#pragma once

#include "nacre/plan/variants.h"

namespace nacre {

// The kernels that one binder of the GPU back end binds. Kernels of the family `host` have no
// version for the GPU.
enum class KernelFamily : uint8_t { host, rows, matrix, typed, tasks, lstm, loss, copy, exchange };
KernelFamily family_of(const Kernel& kernel, const Dfg& dfg);
// Returns whether the kernel has no version for the GPU: its operands are brought to the host, and
// its results are sent back.
bool runs_on_host(const Kernel& kernel, const Dfg& dfg);
// Returns whether every step waits for the host: the kernel runs there and has operands, so that a
// step with it cannot be recorded as a graph of launches.
bool waits_for_host(const Kernel& kernel, const Dfg& dfg);
// Returns whether a kernel of kind spmm is a sum over the edges of pairs, which the GPU's typed
// kernels compute.
bool sums_pairs(const Kernel& kernel);
// Returns whether the kernel reads and writes values that lie in memory as bf16.
bool takes_bf16(const Kernel& kernel, const Dfg& dfg);

struct PlaceFacts {
  std::string_view kind;
  bool no_gpu_version = false;
};
PlaceFacts place_facts(const PlannedKernel& k);
enum class KernelPlace { device, host };
const VariantList<PlaceFacts>& place_variants();

}  // namespace nacre
