// DeviceSeconds: the time that the communication of a rank takes on its device.
#pragma once

namespace nacre {

// Holds the seconds that a device has spent on communication.
struct DeviceSeconds {
  double waited = 0;   // the device waited for other ranks
  double moved = 0;    // the device copied and added rows
  double reduced = 0;  // the device added up arrays
};

}  // namespace nacre
