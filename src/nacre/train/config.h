// RunConfig: everything that determines a run, as one value. Names follow the command line.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/data/load.h"
#include "nacre/model/model.h"
#include "nacre/partition/partition.h"
#include "nacre/plan/plan.h"
#include "nacre/sample/sample.h"
#include "nacre/schedule/batch_loader.h"
#include "nacre/train/optimizer.h"

namespace nacre {

// The value of --shares with which the run chooses and changes the shares by itself.
inline constexpr const char* kAutomaticShares = "auto";

// The largest value of --staleness. The run holds a copy of the weights for each update that a
// batch may lack.
inline constexpr int kMostStaleness = 1'000'000;
// Throws UserError if --staleness is negative or more than kMostStaleness. A program can call this
// function before it reads the data. A session also compares --staleness with the number of batches
// of an epoch.
void check_most_staleness(int staleness);

// The value of --precision with which GPUs begin with tf32, and those that have too much work
// switch to bf16.
inline constexpr const char* kAutomaticPrecision = "auto";

// How several devices train one graph together. Each device is a rank (docs/many_devices.md).
struct RankOptions {
  // A name for each rank (rank_devices.h); empty if the run has one device.
  std::vector<std::string> devices;
  // The share of each rank; if empty, share_rule gives the shares.
  std::vector<double> shares;
  std::string share_rule = kAutomaticShares;  // the rule by which the work is shared out
                                              // (share_rules.h)
  PartitionOptions partition;                 // how the nodes are dealt out
  // Which rows travel between ranks: auto, or a name of HaloRows (dfg/distribute.h).
  std::string halo_rows = "auto";
  // How rows get from the GPU of one process to that of another: nccl, staged (through host memory)
  // or auto, which is nccl if every process has a GPU of its own.
  std::string comm = "auto";
  double timeout = kCommTimeout;  // seconds that ranks wait for each other
  bool overlap = true;            // ranks compute while rows travel
  // The number of this process among those that MPI has started; -1: one process drives all
  // devices.
  int own = -1;
  // The process of each rank if processes drive several ranks; empty: each process is a rank.
  std::vector<int> processes = {};

  bool several() const { return !devices.empty(); }
  // Returns whether the device of a rank is driven by this process.
  bool drives(size_t rank) const {
    return own < 0 || own == (processes.empty() ? static_cast<int>(rank) : processes[rank]);
  }
  // Returns the devices as they are written in --devices, where those of one process are joined by
  // '+'.
  std::vector<std::string> entries() const;
};

// Says where the feature rows of mini-batches lie, and in which type they are stored
// (docs/minibatches.md).
struct FeatureOptions {
  std::string type = "f32";  // type that features are stored in: f32, bf16 or f16
  // Bytes of features in the memory of each device; if empty, features take the memory that is
  // left.
  std::vector<int64_t> budget;
  std::string placement = "auto";  // the method that chooses which rows lie where: auto or a name
                                   // of placement_methods()
  // How a GPU gets rows of the host: link (its kernels read them), copy (threads of the host gather
  // them) or auto.
  std::string host_rows = "auto";
  // How much more often samples contain vertices whose rows are in device memory (near_sampling.h):
  // off, a factor, or auto.
  std::string locality = "off";
  // Which rows lie in device memory: static (always the same) or lookahead (those that the next
  // batches read soonest).
  std::string cache = "static";
};

struct RunConfig {
  // ---- Settings of the data.
  std::string data;
  LoadOptions load;
  // The folder in which the run was started. Relative paths begin there.
  std::string folder;
  std::string normalize_features = "auto";  // whether features are normalised: auto, row or none
  // The number of edge types that typed models give untyped graphs.
  int relations = 7;
  // The names of the classes, if they are words. They are filled in from the data.
  std::vector<std::string> class_names;
  // ---- Settings of the model. Sizes and types are filled in from the data.
  ModelOptions model;
  // ---- Settings of training.
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  int epochs = 200;
  uint64_t seed = 0;
  // The weights of the classes: balanced, a list or a file (class_weights.h). If this is empty, all
  // classes weigh 1.
  std::string class_weights;
  // The run folder or .safetensors file with the first weights. If this is empty, they are random.
  std::string init;
  std::string metric = "auto";
  int eval_every = 1;
  int patience = 0;  // evaluations without improvement before the run stops; 0 = never
  // Which weights are kept: best (by the validation score), loss (by the validation loss) or last.
  std::string select = "best";
  // ---- Settings of the execution.
  std::string device = "auto";  // the name of the device (device.h)
  RankOptions ranks;            // settings of runs on several devices
  // The name of the precision. With several devices, it may also be auto, or a list with a name for
  // each device.
  std::string precision = "f32";
  std::string mode = "full";  // "full" or "minibatch"
  int64_t batch_size = 1024;  // number of seeds of a mini-batch
  // Says whether the training nodes of mini-batches are shuffled in every epoch: "always", "never",
  // or "adaptive" (from the epoch on at which the accuracy curve bends).
  std::string shuffle = "always";
  // For mini-batches: how many updates the weights that a batch reads may lack, at most
  // kMostStaleness.
  int staleness = 0;
  SampleOptions sampling;  // how mini-batches are drawn
  // For mini-batches: the name of the schedule that the run follows (batch_schedules.h).
  std::string batch_schedule = "auto";
  LoaderOptions loader = {.in_flight = -1};  // in_flight -1: as many batches as suits the device
  // For mini-batches: where features lie, which is auto, device or host.
  std::string features_on = "auto";
  FeatureOptions features;
  // For mini-batches: where neighbours are drawn, which is auto, device or host.
  std::string sample_on = "auto";
  // For mini-batches: bytes of host memory for feature rows; 0 means that features are not limited.
  int64_t host_budget = 0;
  // Whether rows that stay on disk are packed for groups of batches: auto, on or off.
  std::string pack = "auto";
  std::string pack_folder;  // folder for packs; empty: packs lie in the folder of the data
  // Bytes of features that stay on disk because of host_budget; filled in from the data.
  int64_t disk_bytes = 0;
  int threads = 0;            // 0 = all
  std::string plan = "auto";  // see plan/policy.h
  // The order in which a run on the whole graph numbers the vertices (vertex_order.h): auto, or a
  // name of graph/reorder.h.
  std::string reorder = "auto";
  // Whether plans are made by rules and nothing is timed, so that every run gives the same weights,
  // to the bit, on any number of threads.
  bool deterministic = false;
  bool plan_cache = true;
  // When values are dropped and computed again: auto (also to save memory), or fit (only if the run
  // would not fit otherwise).
  std::string recompute = "auto";
  std::set<std::string> disabled_passes;  // passes of the planner that are left out (plan/passes.h)
  int64_t memory_limit = 0;               // bytes; 0 = what the machine has free
  // The part of memory_limit that the process takes besides the data of the run.
  int64_t program_bytes = 0;
  // Whether the run is part of another program, such as a Python program. What that program shares
  // with other processes, and the files that it has mapped, are then not counted for the run.
  bool embedded = false;
  // Settings of recommenders (recommend.h) by the names of their options, for config.json; empty
  // for other models.
  std::map<std::string, std::string> recommend;
};

// Return settings as JSON. config_json() has all of them, for config.json. weights_config_json()
// leaves out how the run was executed, so that the weights file has the same bytes on any number of
// threads. result_settings_json() has only what the resulting weights depend on, for the
// fingerprint, so that a run may be resumed with more threads or another metrics file.
std::string config_json(const RunConfig& config);
std::string weights_config_json(const RunConfig& config);
std::string result_settings_json(const RunConfig& config);
// Returns where the data at `path` are: at `path` itself or, if it is a relative path at which
// nothing exists, at `path` relative to `folder`. Returns `path` if nothing exists there either.
std::string found_again(const std::string& path, const std::string& folder);
// Sets in `config` the settings of model and data that a checkpoint was trained with. A relative
// path of the data at which nothing exists is taken relative to the folder in which the run was
// started. Throws a UserError that names `where` if `text` is not usable.
void apply_config_json(const std::string& text, const std::string& where, RunConfig& config);

}  // namespace nacre
