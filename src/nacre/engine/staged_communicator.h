// This header declares the communicator of a rank on a GPU whose peers are in other processes. It
// copies the rows that the rank sends to page-locked memory of the host, sends them from there with
// a communicator of host memory, such as that of MPI, and copies what arrives to the GPU. The other
// ranks may be on GPUs or on the host.
//
// A call waits at its start until the GPU has reached it, because host memory must hold the rows
// before they are sent. After that the rank queues work for the GPU while rows travel.
#pragma once

#include <memory>

#include "nacre/cluster/communicator.h"

namespace nacre {

class GpuCompiler;

// Returns a communicator of the ranks of `host` whose calls move memory of the compiler's device.
// The texts of all_gather() and broadcast() lie in host memory all the same.
std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> host,
                                                       const std::shared_ptr<GpuCompiler>& compiler);

}  // namespace nacre
