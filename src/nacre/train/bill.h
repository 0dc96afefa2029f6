// The bill of a run: what the process will hold in each of its phases, the program itself included. The largest phase
// is the one figure that is compared with --memory-limit, or with what the machine has left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nacre/data/sizes.h"
#include "nacre/engine/memory.h"
#include "nacre/kernel/blocks.h"
#include "nacre/train/config.h"

namespace nacre {

struct MemoryPhase {
  std::string name;
  std::vector<MemoryItem> items;

  int64_t bytes() const { return total_bytes(items); }
};

struct Bill {
  std::vector<MemoryPhase> phases;

  const MemoryPhase& largest() const;
  int64_t bytes() const { return phases.empty() ? 0 : largest().bytes(); }
  // One line for each phase, the parts of the largest, and the figure that counts.
  std::string text() const;
};

// What a process may hold in all, and who says so.
struct MemoryBound {
  int64_t bytes = 0;
  std::string by;  // "--memory-limit", "free memory", "the control group", …
};
// Of the host. --memory-limit is of the device where a run computes on one.
MemoryBound host_bound(const RunConfig& config, bool on_gpu);
// Throws UserError when the bill is larger, naming the phase and its largest part.
void require_fit(const Bill& bill, const MemoryBound& bound);

// What plans may take: --memory-limit without the program and what is held already; 0 where nothing was asked for.
int64_t room_for_plans(const RunConfig& config);

// The program, its libraries and its threads, in bytes.
int64_t program_bytes();

// What a run is for.
struct RunPurpose {
  bool trains = true;  // false: it predicts with weights that are there
  int64_t loaded = 0;  // bytes of weights and optimiser state that are read when the session is ready
};

// What is certain before anything is read: reading, preparing, and training without the values of a step. Nothing is
// allocated.
Bill bill_before_reading(const RunConfig& config, const DataSizes& sizes, const RunPurpose& purpose);

// The same of a GPU's memory: what every plan of the model holds there. Empty if the sizes do not
// tell the model.
std::vector<MemoryItem> device_before_reading(const RunConfig& config, const DataSizes& sizes, bool trains);
// Throws UserError if that is more than the run's GPU has free, or than --memory-limit. Does
// nothing on the host.
void require_device(const RunConfig& config, const DataSizes& sizes, bool trains);

// The model that would be built for data of these sizes, its options complete. Throws UserError where they do not fit
// together.
ModelOptions model_for(const RunConfig& config, const DataSizes& sizes);

// What a session takes of the host's memory, by its own figures.
struct HostMemory {
  std::vector<MemoryItem> training;    // all that is held while it trains (or predicts)
  std::vector<MemoryItem> evaluating;  // more than that, while it evaluates
  std::vector<MemoryItem> loading;     // more than that, while weights of a checkpoint are read
  std::vector<MemoryItem> writing;     // more than that, while predictions are written
  int64_t held = 0;                    // of all this, what is held already
  bool gpu = false;                    // it computes on a GPU
  bool trains = true;                  // false: it only predicts
};
// Of a session that has been made and not been started. What is over counts as it was measured, where that is more
// than `before`, the bill made before the data were read. `mapped`: bytes of the data that are a mapped file's.
Bill bill_of(const HostMemory& session, const Bill& before, int64_t mapped);

// What sorting scores for a ranking metric takes; 0 for others.
int64_t ranking_bytes(const std::string& metric, const Dataset& dataset);

// Refuses, before they are allocated, parameters (with their optimiser state, gradients and best values, if `training`)
// that do not fit.
void require_parameters(const Dfg& dfg, const Blocks& blocks, const RunConfig& config, bool training);

}  // namespace nacre
