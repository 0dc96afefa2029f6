#include "nacre/schedule/epg/placing.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {
namespace {

// A Placer adds the work of a placing, one operation after another.
class Placer {
 public:
  Placer(const BatchGraph& graph, const Units& units, Placing& placing)
      : graph_(graph), units_(units), placing_(placing), work_of_(graph.operations.size(), -1) {}

  void place() {
    for (size_t i = 0; i < graph_.operations.size(); ++i) place_operation(static_cast<int>(i));
    placing_.update = work_of_[graph_.update];
    measure();
  }

 private:
  int add(PlacedWork work) {
    placing_.work.push_back(std::move(work));
    return static_cast<int>(placing_.work.size()) - 1;
  }

  // Returns the index of the work after which the input is on `device`, and adds a transfer if
  // there is none yet. Each part of a value travels only once to a device. A value travels between
  // two devices through the host.
  int value_on(const EpgInput& input, int device) {
    const int from = placing_.devices[input.operation];
    if (from == device) return work_of_[input.operation];
    const auto key = std::tuple(input.operation, input.part, device);
    const auto known = travelled_.find(key);
    if (known != travelled_.end()) {
      // An earlier operation may have read only some of the rows. The transfer then serves both
      // operations and takes as long as the longer of their transfers.
      PlacedWork& travel = placing_.work[known->second];
      travel.seconds = std::max(travel.seconds, input.seconds);
      return known->second;
    }
    int before = work_of_[input.operation];
    if (from != kHost && device != kHost) before = value_on(input, kHost);
    const int unit = device == kHost ? units_.to_host(from) : units_.to_device(device);
    PlacedWork travel{input.operation, true, unit, 1, input.seconds, {before}};
    return travelled_[key] = add(std::move(travel));
  }

  void place_operation(int i) {
    const EpgOperation& op = graph_.operations[i];
    const int device = placing_.devices[i];
    NACRE_CHECK(op.may_run_on(device), "an operation is placed on a device that cannot run it");
    PlacedWork work;
    work.operation = i;
    work.unit = device;
    work.workers = device == kHost && op.host_workers > 0 ? op.host_workers : units_.workers(device);
    work.seconds = op.seconds[device];
    for (const EpgInput& input : op.inputs) work.after.push_back(value_on(input, device));
    if (op.weight_bytes > 0) read_weights(op, device, work);
    work_of_[i] = add(std::move(work));
  }

  // Lets an operation read the weights on `device`. They lie on the device on which the update
  // runs, and travel if that is another one.
  void read_weights(const EpgOperation& op, int device, PlacedWork& work) {
    const int home = placing_.devices[graph_.update];
    if (home == device) {
      work.reads_weights = true;
      return;
    }
    int before = -1;
    if (home != kHost) before = add({-1, true, units_.to_host(home), 1, op.weight_seconds, {}, true});
    if (device != kHost) {
      PlacedWork travel{-1, true, units_.to_device(device), 1, op.weight_seconds, {}, before < 0};
      if (before >= 0) travel.after.push_back(before);
      before = add(std::move(travel));
    }
    work.after.push_back(before);
  }

  void measure() {
    placing_.load.assign(static_cast<size_t>(units_.count()), 0);
    std::vector<double> end, since_weights;
    placing_.head = -1;
    for (const PlacedWork& work : placing_.work) {
      placing_.load[work.unit] += work.seconds * work.workers / units_.workers(work.unit);
      double start = 0, since = work.reads_weights ? 0 : -1;
      for (const int before : work.after) {
        start = std::max(start, end[before]);
        since = std::max(since, since_weights[before]);
      }
      if (work.reads_weights && (placing_.head < 0 || start < placing_.head)) placing_.head = start;
      end.push_back(start + work.seconds);
      since_weights.push_back(since < 0 ? -1 : since + work.seconds);
      placing_.path = std::max(placing_.path, end.back());
    }
    placing_.head = std::max(0.0, placing_.head);
    placing_.weight_path = std::max(0.0, since_weights[placing_.update]);
  }

  const BatchGraph& graph_;
  const Units& units_;
  Placing& placing_;
  std::vector<int> work_of_;
  std::map<std::tuple<int, int, int>, int> travelled_;  // work by operation, part and device
};

// Calls found(devices) for all legal choices of devices. Operations that must share a device with
// an earlier one take its device. If `coarse` is set, all operations of layers after the first one
// share one device.
template <class Found>
void choose_devices(const BatchGraph& graph, int devices, bool coarse, const Found& found) {
  std::vector<int> chosen(graph.operations.size(), kHost);
  const auto leader = [&](size_t i) {
    const EpgOperation& op = graph.operations[i];
    if (op.with >= 0) return op.with;
    if (!coarse || op.layer == 0) return -1;
    for (size_t j = 0; j < i; ++j) {
      if (graph.operations[j].layer > 0) return static_cast<int>(j);
    }
    return -1;
  };
  const auto choose = [&](const auto& self, size_t i) -> void {
    if (i == graph.operations.size()) return found(chosen);
    const EpgOperation& op = graph.operations[i];
    const int with = leader(i);
    for (int d = 0; d < devices; ++d) {
      if (!op.may_run_on(d) || (with >= 0 && chosen[with] != d)) continue;
      chosen[i] = d;
      self(self, i + 1);
    }
  };
  choose(choose, 0);
}

// Returns the number of legal choices of devices, or 2^62 if it is larger.
size_t count_choices(const BatchGraph& graph, int devices) {
  constexpr size_t kMost = size_t{1} << 62;
  size_t count = 1;
  for (const EpgOperation& op : graph.operations) {
    if (op.with >= 0) continue;
    size_t here = 0;
    for (int d = 0; d < devices; ++d) here += op.may_run_on(d) ? 1 : 0;
    here = std::max<size_t>(1, here);
    count = count > kMost / here ? kMost : count * here;
  }
  return count;
}

bool beats(const Placing& a, const Placing& b) {
  if (a.path > b.path || a.weight_path > b.weight_path || a.head > b.head) return false;
  for (size_t u = 0; u < a.load.size(); ++u) {
    if (a.load[u] > b.load[u]) return false;
  }
  return true;
}

}  // namespace

std::string Units::name(int unit, const std::vector<std::string>& device_names) const {
  if (!is_link(unit)) return device_names[unit];
  const size_t device = 1 + static_cast<size_t>(unit - devices) / 2;
  return ((unit - devices) % 2 == 0 ? "to " : "from ") + device_names[device];
}

Units units_of(const ExecutionPlanGraph& graph) { return {static_cast<int>(graph.devices.size()), graph.host_workers}; }

double Placing::computing() const {
  // Each device but the host has two directions of a link, which are units, too.
  const size_t computers = (load.size() + 2) / 3;
  double sum = 0;
  for (size_t u = 0; u < computers; ++u) sum += load[u];
  return sum;
}

double Placing::travelling() const {
  double sum = 0;
  for (const double seconds : load) sum += seconds;
  return sum - computing();
}

int update_device(const ExecutionPlanGraph& graph, int batch, const Placing& placing) {
  return placing.devices[graph.batches[batch][placing.way].update];
}

Placing place_batch(const ExecutionPlanGraph& graph, int batch, int way, const std::vector<int>& devices) {
  const Units units = units_of(graph);
  Placing placing;
  placing.way = way;
  placing.devices = devices;
  Placer(graph.batches[batch][way], units, placing).place();
  return placing;
}

bool lists_all_placings(const ExecutionPlanGraph& graph, int batch, size_t most) {
  const auto devices = static_cast<int>(graph.devices.size());
  size_t count = 0;
  for (const BatchGraph& way : graph.batches[batch]) {
    count += count_choices(way, devices);
    if (count > most) return false;
  }
  return true;
}

std::vector<Placing> all_placings(const ExecutionPlanGraph& graph, int batch, size_t most) {
  const std::vector<BatchGraph>& ways = graph.batches[batch];
  const auto devices = static_cast<int>(graph.devices.size());
  const bool coarse = !lists_all_placings(graph, batch, most);
  std::vector<Placing> placings;
  for (size_t w = 0; w < ways.size(); ++w) {
    choose_devices(ways[w], devices, coarse, [&](const std::vector<int>& chosen) {
      placings.push_back(place_batch(graph, batch, static_cast<int>(w), chosen));
    });
  }
  return placings;
}

std::vector<Placing> worth_trying(const std::vector<Placing>& placings) {
  std::vector<Placing> kept;
  for (size_t i = 0; i < placings.size(); ++i) {
    bool beaten = false;
    for (size_t j = 0; j < placings.size() && !beaten; ++j)
      beaten = j != i && beats(placings[j], placings[i]) && (j < i || !beats(placings[i], placings[j]));
    if (!beaten) kept.push_back(placings[i]);
  }
  return kept;
}

const Placing& best_alone(const std::vector<Placing>& placings) {
  NACRE_CHECK(!placings.empty(), "a batch has no legal execution plan");
  return *std::min_element(placings.begin(), placings.end(),
                           [](const Placing& a, const Placing& b) { return a.path < b.path; });
}

}  // namespace nacre
