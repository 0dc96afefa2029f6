// A Placing is an execution plan of a batch. It chooses one way to write the batch and a device for
// every operation, and adds the transfers of values that other devices read. The rewriting rules of
// DAHA (pre-transformation, pre-aggregation and every other legal split) are placings.
#pragma once

#include <string>
#include <vector>

#include "nacre/schedule/epg/graph.h"

namespace nacre {

// Units numbers the units that work is done on: the host, every other device, and the two
// directions of the link of each device but the host.
struct Units {
  int devices = 1;
  int host_workers = 1;

  int count() const { return devices + 2 * (devices - 1); }
  int to_device(int device) const { return devices + 2 * (device - 1); }
  int to_host(int device) const { return devices + 2 * (device - 1) + 1; }
  int workers(int unit) const { return unit == kHost ? host_workers : 1; }
  bool is_link(int unit) const { return unit >= devices; }
  std::string name(int unit, const std::vector<std::string>& device_names) const;
};
Units units_of(const ExecutionPlanGraph& graph);

// PlacedWork is a piece of work on one unit: an operation or a transfer.
struct PlacedWork {
  // This is the number of the operation in the batch; for a transfer, that of the operation whose
  // value travels, or -1 for weights.
  int operation = -1;
  bool transfer = false;
  int unit = 0;
  int workers = 1;  // workers of the unit that the work takes
  double seconds = 0;
  std::vector<int> after;  // work of the same batch that must end before this work starts
  bool reads_weights = false;
};

struct Placing {
  int way = 0;               // index of the way to write the batch
  std::vector<int> devices;  // the device of each operation
  std::vector<PlacedWork> work;
  int update = -1;           // the work that applies the gradients
  std::vector<double> load;  // seconds of work of each unit, divided by its workers
  double path = 0;           // seconds of the longest chain of work
  double weight_path = 0;    // seconds of the longest chain from reading weights to their update
  double head = 0;           // the least seconds before weights are read

  double computing() const;  // the sum of `load` over the devices; travelling() sums over the links
  double travelling() const;
};

// Returns the device on which a placed batch applies its gradients. Weights and the state of the
// optimiser lie on this device, so it is the same for all batches of a schedule.
int update_device(const ExecutionPlanGraph& graph, int batch, const Placing& placing);

// Returns the placing of a batch that is written in the given way and runs its operations on these
// devices, which must be legal.
Placing place_batch(const ExecutionPlanGraph& graph, int batch, int way, const std::vector<int>& devices);

// If a batch has at most this many placings, all of them are listed.
inline constexpr size_t kMostPlacings = 4096;
// Returns all legal placings of a batch, in a fixed order. If there are more than `most`, returns
// only those in which all operations of the layers after the first one share a device.
std::vector<Placing> all_placings(const ExecutionPlanGraph& graph, int batch, size_t most = kMostPlacings);
// Returns whether all_placings() returns all legal placings of the batch.
bool lists_all_placings(const ExecutionPlanGraph& graph, int batch, size_t most = kMostPlacings);

// Returns the placings that are worth trying. A placing is left out if another one is at least as
// good in every load and every path; of equal placings, the first one stays.
std::vector<Placing> worth_trying(const std::vector<Placing>& placings);

// Returns the placing of a batch that takes the least time if the batch runs alone.
const Placing& best_alone(const std::vector<Placing>& placings);

// Returns the placings for which question(operation, device) is true for every operation.
template <class Question>
std::vector<Placing> placings_where(const std::vector<Placing>& placings, const ExecutionPlanGraph& graph, int batch,
                                    const Question& question) {
  std::vector<Placing> some;
  for (const Placing& p : placings) {
    const std::vector<EpgOperation>& operations = graph.batches[batch][p.way].operations;
    bool all = true;
    for (size_t i = 0; i < operations.size(); ++i) all = all && question(operations[i], p.devices[i]);
    if (all) some.push_back(p);
  }
  return some;
}

}  // namespace nacre
