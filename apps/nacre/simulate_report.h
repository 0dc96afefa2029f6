// Prints the results of nacre simulate: a table over numbers of devices, as text or as JSON.
#pragma once

#include <string>
#include <vector>

#include "nacre/train/simulate.h"

namespace nacre::cli {

struct SimulationReport {
  std::string data, counted_on;  // the data set that is simulated, and the one whose work was
                                 // counted
  int64_t nodes = 0, edges = 0;  // size of the data set that is simulated
  double scale = 1;
  ModelOptions model;
  Hardware hardware;
  std::vector<SimulatedRun> runs;
};

std::string counted_devices(int64_t count);
std::string simulation_text(const SimulationReport& report);
std::string simulation_json(const SimulationReport& report);

}  // namespace nacre::cli
