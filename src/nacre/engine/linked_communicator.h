// This header declares the communicator of a rank on a GPU of its own whose peers are GPUs of other
// processes. Rows go from GPU to GPU by a link (device/link.h), which NCCL implements. Texts, and
// the news that a rank has failed, go by a communicator of host memory, such as that of MPI.
//
// With every call that the link carries, ranks also meet in a call of the host. If a rank does not
// come, the host's communicator notices it. A thread that watches this communicator then gives the
// link up, so that no GPU waits for that rank any longer.
#pragma once

#include <memory>

#include "nacre/cluster/communicator.h"
#include "nacre/device/link.h"

namespace nacre {

class GpuCompiler;

// Returns a communicator of the ranks of `host` whose calls move memory of the compiler's device,
// which `link` connects.
std::unique_ptr<Communicator> make_linked_communicator(std::unique_ptr<Communicator> host,
                                                       const std::shared_ptr<GpuCompiler>& compiler,
                                                       std::unique_ptr<DeviceLink> link);

}  // namespace nacre
