// Declares what nacre partition prints.
#pragma once

#include <string>
#include <vector>

#include "nacre/partition/stats.h"

namespace nacre::cli {

struct PartitionRun {
  std::string data;
  PartitionOptions options;
  std::vector<double> shares;
  bool cached = false;
  double seconds = 0;
};

std::string title_of(const PartitionRun& run);
std::string imbalance_text(const PartitionStats& stats);  // returns for example "2.1 %"
std::string partition_text(const PartitionRun& run, const PartitionStats& stats);
std::string partition_json(const PartitionRun& run, const PartitionStats& stats);

}  // namespace nacre::cli
