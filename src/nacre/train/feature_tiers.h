// FeatureTiers: where the feature rows of a mini-batch run on a GPU lie, and how rows of the host
// reach the GPU. This file decides that, and FeatureStore (engine/gpu/feature_store.h) lays the
// rows out as decided.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/cost/feature_rates.h"
#include "nacre/engine/gpu/feature_store.h"
#include "nacre/place/compare.h"
#include "nacre/place/placement.h"
#include "nacre/train/run_data.h"

namespace nacre {

struct FeatureTiers {
  cuda::RowFormat format;
  int64_t vertices = 0;
  int64_t device_rows = 0;  // number of rows in the memory of the device
  // Whether kernels read the rows of the host over the link. If not, threads of the host gather the
  // rows of each batch, and these are copied.
  bool link = false;
  std::string why;  // why the link is used for rows of the host, or why it is not
  FeatureRates rates;
  std::string method;          // the method that chose the rows of the device; empty if there was
                               // no choice
  double placing_seconds = 0;  // seconds that the choice took
  // Whether the rows of the device change after each batch (--cache lookahead). The rows that
  // placement chose are then only the first ones there, and the host holds all rows.
  bool lookahead = false;
  // How many rows an epoch is expected to read from each tier, if the chosen rows stay in device
  // memory; 0 if not known.
  TierReads expected;

  int64_t host_rows() const { return vertices - device_rows; }
  bool mixed() const { return device_rows > 0 && device_rows < vertices; }
  int64_t device_bytes() const { return device_rows * format.stride(); }
  // Return the bytes of the tables that say where rows lie: those on the device, and those on the
  // host, which also has the lists of the rows of each tier.
  int64_t table_bytes() const { return mixed() && !lookahead ? vertices * 5 : 0; }
  int64_t host_table_bytes() const { return mixed() && !lookahead ? vertices * 10 : 0; }
  int64_t pinned_bytes() const { return link ? locked_rows() * format.stride() : 0; }
  // Returns the number of rows that would be page-locked if the link was used.
  int64_t locked_rows() const { return lookahead ? vertices : host_rows(); }
  // Returns the seconds that it takes to read one row of each tier.
  RowCosts costs() const;
  // Returns a sentence for people that says where the rows lie.
  std::string text() const;
};

struct TierRequest {
  const RunData& run;
  const Sampler& sampler;
  int64_t budget = 0;  // bytes of device memory that rows may take
  int64_t pinned = 0;  // bytes of the host's memory that may be page-locked
  std::string gpu;     // label of the GPU's profile
};

// The tiers, with the tables and lists that FeatureStore needs.
struct PlacedFeatures {
  FeatureTiers tiers;
  RowTables tables;           // where the row of each vertex lies; empty with a look-ahead, or if
                              // all rows lie in one place. Positions on the host have no gaps.
  Array<NodeId> device_rows;  // vertices whose rows lie in device memory (with a look-ahead: at
                              // first), by position
  Array<NodeId> host_rows;    // vertices whose rows lie on the host, by position; empty if all rows
                              // lie there or none does
  // With a look-ahead, the class of each row (SeatBook): the rows that placement puts into device
  // memory come before the others, and those that are read more often before those that are read
  // less.
  std::shared_ptr<const std::vector<uint8_t>> classes;
};

// Decides how many rows and which ones lie in device memory, and how the other rows get to the
// device. Throws UserError if --placement does not suit the run.
PlacedFeatures place_rows(const TierRequest& request);

// Returns what an epoch would load with each method of placement, the cheapest first. Methods that
// take long on this graph are left out. The list is empty if all rows are in the same place.
std::vector<JudgedPlacement> judge_methods(const RunData& run, const Sampler& sampler, const FeatureTiers& tiers);

// Returns the device's store for the features of the run. Rows of the host are not laid out yet.
std::shared_ptr<FeatureStore> make_store(const std::shared_ptr<Device>& device, const PlacedFeatures& placed,
                                         const Tensor& features);

}  // namespace nacre
