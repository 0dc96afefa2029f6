// DeviceSeconds: what the communication of a rank costs its device.
#pragma once

namespace nacre {

// Seconds that a device has spent on communication.
struct DeviceSeconds {
  double waited = 0;   // the device waited for other ranks
  double moved = 0;    // the device copied and added rows
  double reduced = 0;  // the device added up arrays
};

}  // namespace nacre
