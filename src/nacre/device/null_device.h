// A device that is not there: plans can be bound to it, so that their kernels can be written out, compiled and counted
// on any machine. Memory is addresses without bytes behind them; nothing runs.
#pragma once

#include <memory>

#include "nacre/device/device.h"

namespace nacre {

// As large a device as `info` says; launches and copies do nothing.
std::unique_ptr<Device> make_null_device(const DeviceInfo& info);
// The figures of a large data-centre GPU, for plans of no device in particular.
DeviceInfo typical_gpu();

}  // namespace nacre
