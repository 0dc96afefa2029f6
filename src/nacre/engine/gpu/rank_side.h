// RankSide: does the work of one rank's device for communication with other ranks. It moves rows,
// adds up arrays, lends memory for copies, and measures the time of this work if asked to.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nacre/cluster/device_seconds.h"
#include "nacre/cluster/rows.h"
#include "nacre/cluster/sums.h"
#include "nacre/engine/gpu/context.h"
#include "nacre/engine/gpu/rank_buffers.h"
#include "nacre/kernel/cuda/exchange.h"

namespace nacre {

// Describes work on the second stream of a device.
struct BesideWork {
  DeviceEvent from;  // null if the work is not measured
  DeviceEvent to;
  double DeviceSeconds::*what = nullptr;
};

struct RankSide {
  // If `compiler` is null, the values of the rank lie in host memory. `allocator` allocates
  // page-locked memory.
  RankSide(std::shared_ptr<GpuCompiler> compiler, std::shared_ptr<Device> allocator);

  // These functions queue work on the device. move() copies, adds or converts rows. sum() adds up
  // arrays in their order.
  void move(const ConstRows& from, const Rows& to, cuda::RowAction action = cuda::RowAction::copy);
  void sum(SumType type, const std::vector<void*>& arrays, void* out, int64_t count);

  // Calls queue(), which queues work on the device. If measuring is on, measures how long the
  // device takes for this work.
  template <class Queue>
  void measured(double DeviceSeconds::*what, const Queue& queue) {
    if (!measuring) return queue();
    DeviceEvent from = device->record();
    queue();
    spans.push_back({what, std::move(from), device->record()});
  }
  // Calls queue(), which queues work on the second stream of the device. `what` names the counter
  // that gets the seconds in which other work waits for this work (wait_for()).
  template <class Queue>
  BesideWork beside(double DeviceSeconds::*what, const Queue& queue) {
    BesideWork work;
    if (measuring) work.from = device->record();
    queue();
    work.to = device->record();
    work.what = what;
    return work;
  }
  // Makes what is queued on the first stream from now on wait for `work` of the second stream.
  void wait_for(const BesideWork& work);
  // Returns the seconds of what was measured since the last call, and waits for the device.
  DeviceSeconds take_seconds();

  std::shared_ptr<Device> device;  // the rank's GPU; null if its values lie in host memory
  std::shared_ptr<RankBuffers> buffers;

  // Describes work of the device between two of its events. `what` names the kind of seconds that
  // it counts as, and `counted` is the share of the seconds that counts.
  struct Span {
    double DeviceSeconds::*what;
    DeviceEvent from, to;
    double counted = 1;
    // If `beside` has events, the device waited between `from` and `to` for the work of `beside`.
    // Of these seconds, as many as that work took count as `what`, and the rest as waiting for
    // other ranks.
    BesideWork beside = {};
  };
  bool measuring = false;
  std::vector<Span> spans;

 private:
  std::shared_ptr<GpuContext> context_;  // what launches the kernels that move and add rows
};

// Returns how received rows are written to their places: copied, or added if `add` is given. Throws
// if a GPU cannot add rows of this type.
cuda::RowAction received_action(const std::optional<SumType>& add);

// Returns an array as rows of four elements, or of one if their number does not allow that.
template <class Range>
Range as_rows(SumType type, decltype(Range::data) data, int64_t count) {
  const int64_t each = count % 4 == 0 ? 4 : 1;
  return {data, count / each, each * bytes_of(type), 0, nullptr};
}

}  // namespace nacre
