// Chooses the shares that the devices of a run should have. Ranks report what they know of their
// parts: the features of the part, the times that were measured while all ranks were running, and
// the memory of the device. From this the times of parts of other sizes are predicted, and
// search_shares() (cost/share_search.h) moves the shares until all devices take equally long (NU1,
// NU2, NU3, NU6).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nacre/cost/performance_model.h"
#include "nacre/cost/share_search.h"

namespace nacre {

// Holds what one rank reports about its part and its device. Seconds and bytes are those of one
// step.
struct PartReport {
  std::string device;  // name of the device as the user wrote it
  int64_t vertices = 0;
  int64_t edges = 0;
  int64_t halo = 0;
  std::vector<double> features;           // features of the part as it is (step_features.h)
  std::optional<PerformanceModel> model;  // stored performance model of the device, if there is one
  double kernel_seconds = 0;              // measured seconds of the kernels; 0 if not measured yet
  double edge_seconds = 0;                // the part of kernel_seconds in kernels that walk edges
  double exchange_seconds = 0;            // seconds of moving rows during which no kernel runs
  int64_t received_bytes = 0;             // bytes of rows that come from other ranks
  int64_t memory_bytes = 0;               // bytes of memory that the rank takes
  int64_t memory_limit = 0;               // the most bytes of memory that the rank may take
  // Predicted seconds of the kernels in bf16, divided by the seconds that they take now; 0 if the
  // rank cannot or must not switch to bf16.
  double bf16_part = 0;
};

struct BalanceSettings {
  double row_work = 10;      // how many in-edges the work of a vertex itself counts as
  double steps_left = 0;     // number of steps that the run still has
  double cost_seconds = 0;   // seconds that it takes to cut the graph and plan again
  bool moves_shares = true;  // false: the shares stay as they are
};

struct ShareChoice {
  bool moves = false;          // whether the run should go on with the shares below
  std::vector<double> shares;  // the new shares, which add up to 1
  // How many in-edges a vertex itself should count as when the graph is cut again.
  double row_work = 10;
  std::vector<PartTime> now;          // times of the parts as they are
  std::vector<PartTime> then;         // times that are predicted for the new shares
  std::string reason;                 // a text that says why work should be moved or not
  std::vector<std::string> left_out;  // a sentence for each device that gets nothing
};

// Returns which shares the ranks should have. If no rank has measured anything yet, all of them
// must have a model. The shares follow N(t) = N0·exp(−λt) + b, where b is the share at which the
// predicted times balance, N0 + b the present share, and t the mean number of vertices of a part:
// the times of parts with few vertices tell little, so little work is moved.
ShareChoice balance_shares(const std::vector<PartReport>& parts, const BalanceSettings& settings);

// Returns the seconds of the rank that takes longest.
double slowest(const std::vector<PartTime>& times);
// A step must become shorter by this share of its time before anything is changed.
inline constexpr double kTolerated = 0.03;

}  // namespace nacre
