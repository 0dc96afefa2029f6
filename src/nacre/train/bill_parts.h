// Declarations that the files which count the bill share. Other files do not include this one.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/train/bill.h"

namespace nacre {

// Bytes of host memory that the drivers and compilers of a GPU take.
inline constexpr int64_t kGpuLibraries = int64_t{768} << 20;

// Estimates that are larger than this number of bytes are replaced by it, so that their sums do not
// overflow.
inline constexpr double kMostBytes = 0x1p59;

// Returns whether the run computes on a GPU; false if the device does not exist, which is refused
// elsewhere.
bool runs_on_gpu(const RunConfig& config);

// Returns the bytes of the values of all parameters.
double parameter_bytes(const Dfg& dfg, int64_t nodes, int64_t edge_types);
// Returns how many arrays of the size of the parameters a run holds: values, moments, a moving
// average, the best so far, gradients, and those of the tracks.
int64_t parameter_copies(const RunConfig& config, bool training);

// Throws a UserError that says that `need` bytes are needed for what the text `what` names, and
// that `bound` allows fewer.
[[noreturn]] void refuse_memory(const std::string& what, double need, const MemoryBound& bound,
                                const std::string& remedy);

// The remedy for a model that is too large.
inline constexpr const char* kSmallerModel =
    "use a smaller --hidden, fewer --layers, --heads or --relations, or a smaller graph";

}  // namespace nacre
