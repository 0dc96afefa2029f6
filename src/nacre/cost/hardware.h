// Describes hardware: devices in machines, and the links between them. Runs are simulated on
// described hardware, which need not exist (train/simulate.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/cost/model.h"

namespace nacre {

// Says how fast rows travel from one device to the others.
struct LinkRates {
  // A device sends this many bytes per second while it receives as many. 0 means that there is no
  // link, because the devices read each other's memory as fast as their own.
  double bandwidth = 0;
  double latency = 0;  // seconds that a communication takes at least
  double message = 0;  // additional seconds for each device that rows are exchanged with
};

// Describes devices of one kind. Rates are those of one device.
struct DescribedDevice {
  std::string name;
  int count = 1;        // number of these devices in each machine
  bool gpu = true;      // whether the device is a GPU; otherwise it is cores of a host
  CostModel model;      // seconds of counted work, while other devices rest
  double together = 1;  // share of the memory rates that is left while the other devices run, too
  int64_t cache_bytes = 0;
  int64_t memory_bytes = 0;   // size of the memory; 0 if no limit is known
  int multiprocessors = 132;  // number of multiprocessors, if the device is a GPU
  int threads = 1;            // number of threads, if the device is cores of a host
  std::string rates;          // a text that says where the rates come from
};

struct Hardware {
  std::string name;
  std::vector<DescribedDevice> devices;  // the devices of one machine
  int machines = 1;                      // the largest number of machines
  LinkRates inside;                      // links between devices of one machine
  LinkRates between;                     // links between devices of different machines
  // If true, links move rows while devices compute. If false, a device does not compute while it
  // moves rows.
  bool overlap = true;

  int devices_of_machine() const;
  int most_ranks() const { return machines * devices_of_machine(); }
  int machine_of(int rank) const { return rank / devices_of_machine(); }
  // Returns the device of a rank. Ranks take the devices of the first machine, then those of the
  // second, and so on.
  const DescribedDevice& device_of(int rank) const;
  // Returns a line of text for each assumption about this hardware.
  std::vector<std::string> assumptions() const;
};

// Returns the names of the hardware that named_hardware() knows.
std::vector<std::string> hardware_names();
// Returns the hardware of that name. Throws UserError for other names.
Hardware named_hardware(const std::string& name);

}  // namespace nacre
