// Feature placement decides which devices hold the feature row of each vertex, whether the host or
// the disk holds it, and where every device reads it (contract rows DP1 and DP3;
// docs/dev/placement.md).
//
// Rows lie in tiers: in the reading device's own memory, in that of a peer (another device of the
// same group), in host memory, and on disk. A row may lie on several devices. This room only
// decides where rows lie; it never touches device memory.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/place/accesses.h"
#include "nacre/tensor/array.h"

namespace nacre {

// Says who holds a row: the number of a device, or one of the two constants below.
using RowHolder = int8_t;
constexpr RowHolder kHeldByHost = -1;
constexpr RowHolder kHeldByDisk = -2;
constexpr int kMostHolders = 127;  // the largest number of devices

// Holds the seconds that it takes to read one row from each tier, as measured on the machine. The
// placement depends only on their quotients.
struct RowCosts {
  double own = 0;
  double peer = 0.2;
  double host = 1;
  double disk = 10;
};

struct PlacementRequest {
  std::string method = "probability";  // one of placement_methods()
  int64_t num_vertices = 0;
  std::vector<int64_t> device_rows;  // for each device: the most rows that it holds
  // For each device: its group. Devices of one group read each other's rows at the cost `peer`;
  // those of different groups do not read each other's rows. Empty: all are one group.
  std::vector<int> group;
  // For each device: its share of the batches of an epoch. Empty: all have the same.
  std::vector<double> share;
  int64_t host_rows = -1;  // the most rows that the host holds; -1: all of them
  RowCosts costs;
  // Algorithm 1 stores a new row in place of a copy if it is read more than alpha times as often.
  // Negative: the value that minimises the expected cost, from `costs` (best_alpha()).
  double alpha = -1;
  // Expected number of batches of an epoch that read each row. Empty: the method computes it from
  // `accesses`.
  std::span<const float> reads;
  AccessRequest accesses;          // the graph may be absent if `reads` suffices for the method
  int64_t presampled_batches = 0;  // number of batches that the method presampling draws; 0: those
                                   // of one epoch
  uint64_t seed = 0;               // seed of random placement
};

// Says where one device reads the row of every vertex.
struct RowTables {
  Array<RowHolder> dev_num;  // for each vertex: who holds the row
  Array<NodeId> buf_pos;     // for each vertex: position of the row in the memory of its holder
};

struct FeaturePlacement {
  std::string method;
  int64_t num_vertices = 0;
  std::vector<int> group;  // for each device: its group
  // True if devices read rows of their peers. Only in PaGraph's placement they do not.
  bool reads_peers = true;
  // device_rows[d][i] is the vertex whose row lies at position i of device d.
  std::vector<Array<NodeId>> device_rows;
  // True if the host holds the rows of all vertices. Then the position of a row is the number of
  // its vertex. If this is false, host_rows[i] is the vertex at position i of the host, and the
  // position of a row on disk is the number of its vertex.
  bool host_whole = true;
  Array<NodeId> host_rows;
  std::vector<float> reads;  // reads that the method was given or computed; may be empty
  double seconds = 0;        // seconds that place_features() took

  int devices() const { return static_cast<int>(device_rows.size()); }
  // Returns the number of rows in a tier, summed over all devices.
  int64_t rows_on_devices() const;
  int64_t rows_on_host() const { return host_whole ? num_vertices : host_rows.size(); }
  // Returns the number of rows of the file on disk, which has all rows, or 0 if the host has them.
  int64_t rows_on_disk() const { return host_whole ? 0 : num_vertices; }
};

// Places the features as the request says and returns the placement. Equal requests give equal
// placements on any number of threads. Throws UserError if the method is unknown or if the request
// does not suit it.
FeaturePlacement place_features(const PlacementRequest& request);

// Returns the tables of one reading device. A row is read where that is cheapest: from the device's
// own memory, from the peer with the lowest number that holds the row, from the host, or from disk.
// If `reader` is -1, the reader is the host, which reads from no device.
RowTables row_tables(const FeaturePlacement& placement, int reader);

// Holds the expected number of rows that are read in an epoch, by tier. seconds() returns what
// these reads cost.
struct TierReads {
  double own = 0;
  double peer = 0;
  double host = 0;
  double disk = 0;
  double seconds(const RowCosts& costs) const {
    return own * costs.own + peer * costs.peer + host * costs.host + disk * costs.disk;
  }
  double total() const { return own + peer + host + disk; }
};

// Returns for every device the expected number of rows that it reads in an epoch. `share` has each
// device's share of the batches of an epoch; if it is empty, all shares are equal.
std::vector<TierReads> expected_reads(const FeaturePlacement& placement, std::span<const float> reads,
                                      std::span<const double> share = {});
// Returns the objective that placement minimises: the largest expected cost over the devices.
double largest_cost(std::span<const TierReads> reads, const RowCosts& costs);

// Returns the alpha with which Algorithm 1 minimises the expected cost of a group of `devices`.
double best_alpha(const RowCosts& costs, int devices);

// Describes one method of placement. All methods take the same request and return the same type.
struct PlacementMethod {
  std::string_view name;  // name of the method, as --placement takes it
  std::string_view what;  // a few words about the method for people
  // True if the method chooses rows by how often they are read. Then `reads` are computed if none
  // are given.
  bool uses_reads = false;
};
// Returns all methods: first the one that wins in measurements, then the baselines of the paper.
std::span<const PlacementMethod> placement_methods();
std::vector<std::string> placement_method_names();
// Throws a UserError that names the option if no method has this name.
const PlacementMethod& placement_method(const std::string& name, const std::string& option = "--placement");

}  // namespace nacre
