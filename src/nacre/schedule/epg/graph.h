// The execution plan graph (EPG) of a mini-batch (DA5) holds the operations of the batch, the
// values that they pass on, and how long each operation takes on every device that may run it. It
// is plain data: this file neither reads the graph of the data set nor runs anything. The cost
// model predicts the times (cost/operation_costs.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nacre {

enum class EpgKind : uint8_t { sample, gather, aggregate, combine, combine_grad, aggregate_grad, update };
std::string_view epg_kind_name(EpgKind kind);

// The host is device 0 of every EPG. It has several workers; every other device has one.
inline constexpr int kHost = 0;

// EpgInput describes a value that an operation reads.
struct EpgInput {
  int operation = 0;   // the operation of the batch that makes the value
  double bytes = 0;    // bytes that travel if the value lies on another device
  double seconds = 0;  // seconds in which these bytes travel between the host and a device
  // This is the number of the part of the value that is read. Different parts travel one by one: a
  // sample has the ids of its vertices (part 0) and the block of layer l (part l + 1). Other values
  // have one part.
  int part = 0;
};

struct EpgOperation {
  EpgKind kind = EpgKind::sample;
  int layer = 0;
  // These are the predicted seconds on each device; negative if the operation cannot run on that
  // device.
  std::vector<double> seconds;
  // If the operation runs on the host, it takes this many workers; 0 stands for all workers.
  int host_workers = 0;
  std::vector<EpgInput> inputs;
  // The operation must run on the device of this earlier operation, because it reads what that
  // operation has left there; -1 if there is none.
  int with = -1;
  // The operation reads this many bytes of weights; 0 if it reads none. An operation that reads
  // weights waits for the update of an earlier batch (ExecutionPlanGraph::staleness).
  double weight_bytes = 0;
  double weight_seconds = 0;  // seconds in which the weights travel

  bool may_run_on(int device) const { return seconds[device] >= 0; }
};

// BatchGraph is one way to write the operations of a batch. `name` says which rewriting made it: it
// has a letter for each layer, "a" for aggregation first or "c" for combination first (the
// pre-transformation of the paper).
struct BatchGraph {
  std::string name;
  std::vector<EpgOperation> operations;  // an operation reads only values of earlier ones
  int update = -1;                       // the operation that applies the gradients
};

// ExecutionPlanGraph holds the EPGs of all batches that are scheduled together.
struct ExecutionPlanGraph {
  std::vector<std::string> devices;  // names of the devices; the host is the first
  int host_workers = 1;              // number of one-worker operations that the host runs at once
  // For each batch, these are the ways to write it. All ways of a batch compute the same values.
  std::vector<std::vector<BatchGraph>> batches;
  // The update of batch i must come before batch i + 1 + staleness reads weights. If staleness is
  // 0, the result is the same as if the batches ran one after the other.
  int staleness = 0;

  int num_batches() const { return static_cast<int>(batches.size()); }
  // Checks that operations are in order, that each can run somewhere, and that no number is wrong.
  // Throws InternalError.
  void validate() const;
};

// BatchShape holds what is known of a batch before it is trained: the sizes of its blocks and the
// widths of its rows.
struct BatchShape {
  struct Layer {
    double sources = 0, destinations = 0, edges = 0;
    double width_in = 0, width_out = 0;  // elements of a row before and after the layer
    double weights = 0;                  // number of parameters of the layer
    // If true, the combination also reads the rows that the destinations had before the
    // aggregation.
    bool reads_self = false;
    bool may_combine_first = false;  // whether combining first computes the same values
  };
  std::vector<Layer> layers;
  double vertices() const { return layers.empty() ? 0 : layers.front().sources; }
};

// EpgPrices returns the predictions that an EPG is built from.
class EpgPrices {
 public:
  virtual ~EpgPrices() = default;
  // Returns the predicted seconds of an operation of a batch, or a negative number if the device
  // cannot run it. `combine_first` says in which order the layer is computed.
  virtual double seconds(int device, EpgKind kind, const BatchShape& batch, int layer, bool combine_first) const = 0;
  // Returns the predicted seconds in which `bytes` bytes travel between the host and a device.
  virtual double transfer(double bytes) const = 0;
};

// Returns all ways to write a batch, one for every combination of legal orders of its layers.
std::vector<BatchGraph> batch_graphs(const BatchShape& shape, const EpgPrices& prices, int devices);

}  // namespace nacre
