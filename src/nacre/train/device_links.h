// Connects the devices of processes that MPI has started (--comm).
#pragma once

#include <memory>
#include <string>

#include "nacre/cluster/communicator.h"
#include "nacre/train/device.h"

namespace nacre {

struct DeviceLinks {
  // The communicator that moves memory of the device.
  std::unique_ptr<Communicator> communicator;
  // A sentence that says how rows travel; empty if there are no GPUs.
  std::string note;
};

// Connects the device of this process with those of the others. `host` connects the processes in
// host memory. All processes call this at the same time. If all have GPUs of their own, the GPUs
// are linked by NCCL, unless config.ranks.comm asks for something else. Throws UserError if
// config.ranks.comm asks for a connection that is not possible.
DeviceLinks link_devices(std::unique_ptr<Communicator> host, const RunDevice& device, const RunConfig& config);

}  // namespace nacre
