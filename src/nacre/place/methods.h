// Lists the methods of placement. Only files of this room include this header.
#pragma once

#include <string_view>
#include <vector>

#include "nacre/place/placement.h"

namespace nacre {

// Holds what a method decides: the rows of every device, and the order in which rows are wanted.
struct PlacedRows {
  std::vector<Array<NodeId>> device_rows;
  Array<NodeId> order;       // all vertices, the most wanted row first
  std::vector<float> reads;  // reads that the method counted itself; may be empty
  bool reads_peers = true;
};

// Describes a method and the function that runs it. Requests are complete when they reach a method:
// there is a group and a share for every device, alpha is not negative, and there are reads if the
// method uses them.
struct PlacementRule {
  PlacementMethod method;
  PlacedRows (*place)(const PlacementRequest& request);
};
std::span<const PlacementRule> placement_rules();

// Returns the devices of every group.
std::vector<std::vector<int>> devices_of_groups(std::span<const int> group);

// Distributes vertices over devices by PaGraph's rule: the devices' training vertices have
// neighbourhoods that overlap little and are of similar size. Every device wants the rows of its
// neighbourhood, and no device reads another's memory.
PlacedRows place_by_pagraph(const PlacementRequest& request);

}  // namespace nacre
