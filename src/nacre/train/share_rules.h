// Shares out the work among the devices of a run (--shares) before anything is measured. A rule
// derives the shares from what is known of the devices. Shares that the user gives as numbers need
// no rule.
#pragma once

#include <string>
#include <vector>

#include "nacre/train/device.h"
#include "nacre/train/rank_devices.h"

namespace nacre {

// Returns the names of all rules: auto, uniform, cores, flops and frequency. With auto, the first
// shares follow a score of each device, and later ones predicted and measured times
// (share_balance.h).
std::vector<std::string> share_rule_names();

// Holds what is known of a device before it has computed anything; 0 stands for unknown. Processes
// send it to each other as bytes.
struct DeviceSpeed {
  double cores = 0;  // number of multiprocessors of a GPU, or of threads of the host
  // Speed that the first shares of --shares auto follow; a thread of the host counts as 1.
  double score = 0;
  double megahertz = 0;   // clock in MHz
  double peak_flops = 0;  // operations per second that the cores could do in f32
  // Operations per second of large matrix products, as `nacre profile` has measured them.
  double measured_flops = 0;
};
DeviceSpeed device_speed(const RankDevice& rank, const RunDevice& device, const std::string& precision);

struct FirstShares {
  std::vector<double> shares;  // one share for each device; they need not add up to 1
  std::string reason;          // a sentence that says what the shares follow
};
// Returns the shares by a rule. Throws UserError if the number that the rule reads is unknown for a
// device.
FirstShares shares_by_rule(const std::string& name, const std::vector<RankDevice>& devices,
                           const std::vector<DeviceSpeed>& speeds);

}  // namespace nacre
