// The bill of a run: what the process will hold in each of its phases, the program itself included.
// The largest phase is the one figure that is compared with --memory-limit, or with what the
// machine has left.
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
  // What the user should change if a phase other than reading does not fit. If this is empty, the
  // message names the model or the graph.
  std::string remedy;

  const MemoryPhase& largest() const;
  int64_t bytes() const { return phases.empty() ? 0 : largest().bytes(); }
  // Returns one line for each phase, the parts of the largest phase, and the figure that counts.
  std::string text() const;
};

// The largest number of bytes that a process may hold, and where that limit comes from.
struct MemoryBound {
  int64_t bytes = 0;
  std::string by;  // "--memory-limit", "free memory", "the control group", …
};
// Returns the bound of host memory. If the run computes on a GPU (`on_gpu`), --memory-limit is a
// limit of the GPU's memory and does not count here.
MemoryBound host_bound(const RunConfig& config, bool on_gpu);
// Throws UserError, which names the phase and its largest part, if the bill is larger than the
// bound.
void require_fit(const Bill& bill, const MemoryBound& bound);

// Returns the bytes that plans may take. On the host, these are --memory-limit without the memory
// of the program or what is already held, whichever is more. On a GPU, they are --memory-limit.
// Returns 0 if there is no such limit.
int64_t room_for_plans(const RunConfig& config);

// Returns the bytes of the program, its libraries and its threads.
int64_t program_bytes();

// What a run is for.
struct RunPurpose {
  bool trains = true;  // false: it predicts with existing weights
  // The bytes of weights and optimiser state that are read when the session is ready.
  int64_t loaded = 0;
  // Whether the run is part of a program that did other things before, such as a Python program.
  // What the process holds before the run then counts as the program, and the peak of its memory
  // says nothing about the run.
  bool embedded = false;
  bool data_in_memory = false;  // whether the data were read or made before the run
};

// Returns the part of the bill that is certain before anything is read; it leaves out the values of
// a step. Allocates nothing.
Bill bill_before_reading(const RunConfig& config, const DataSizes& sizes, const RunPurpose& purpose);

// Returns what every plan of the model holds in a GPU's memory, as far as it is certain before
// anything is read. Returns nothing if the sizes are not enough to know the model.
std::vector<MemoryItem> device_before_reading(const RunConfig& config, const DataSizes& sizes, bool trains);
// Throws UserError if device_before_reading() counts more than the run's GPU has free, or than
// --memory-limit. Does nothing on the host.
void require_device(const RunConfig& config, const DataSizes& sizes, bool trains);

// Returns the options of the model that would be built for data of these sizes, with defaults
// filled in. Throws UserError if they do not fit together.
ModelOptions model_for(const RunConfig& config, const DataSizes& sizes);

// What a session takes of the host's memory, by its own figures.
struct HostMemory {
  std::vector<MemoryItem> training;    // everything held while it trains (or predicts)
  std::vector<MemoryItem> evaluating;  // what evaluation takes in addition to `training`
  std::vector<MemoryItem> loading;     // what reading the weights of a checkpoint takes in addition
  std::vector<MemoryItem> writing;     // what writing predictions takes in addition
  int64_t held = 0;                    // the part of all these bytes that is already held
  std::string remedy = {};             // as in Bill
  bool gpu = false;                    // whether it computes on a GPU
  bool trains = true;                  // false: it only predicts
  bool embedded = false;               // as in RunPurpose
};
// Returns the bill of a session that was made but not started. A phase that is over counts with its
// measured size if that is more than in `before`, the bill made before the data were read, unless
// the run is embedded. `mapped` is the number of bytes of the data that belong to a mapped file.
Bill bill_of(const HostMemory& session, const Bill& before, int64_t mapped);

// Returns the bytes that sorting scores for a ranking metric takes; 0 for other metrics.
int64_t ranking_bytes(const std::string& metric, const Dataset& dataset);

// Throws UserError if the parameters (if `training`, with their optimiser state, gradients and best
// values) do not fit. Called before they are allocated.
void require_parameters(const Dfg& dfg, const Blocks& blocks, const RunConfig& config, bool training);

}  // namespace nacre
