// BlockRunner: one plan on blocks that change from step to step. The arena and the places of leaves
// are kept and grow when a batch needs more. What the blocks of a batch need besides (views, copies
// on a device) ends with the batch.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nacre/engine/executor.h"

namespace nacre {

// The values of a leaf in host memory.
struct LeafValue {
  std::string name;
  Tensor values;
};

class BlockRunner {
  struct Memory {
    std::shared_ptr<void> data;
    int64_t bytes = 0;
    // Grows with room to spare, so that batches of about the same size make it grow only a few
    // times.
    void* at_least(int64_t wanted, Backend& backend);
  };

 public:
  // Returns where a batch finds what was bound at `place`, if that is not the same for all batches.
  using Places = std::function<void*(void* place)>;

  // What the plan computes once must not depend on anything that changes from batch to batch.
  BlockRunner(Plan plan, std::shared_ptr<Backend> backend);

  const Plan& plan() const { return *plan_; }
  // Binds leaves and outputs that are at the same place for every batch, in the back end's memory.
  void bind(const std::string& leaf, void* data) { bound_[leaf] = data; }
  // Returns where the output will be. Outputs that are the same value share the place that was
  // bound first.
  void* bind_output(const std::string& output, void* data);

  // Must be called first, after bind(), if the plan computes anything once or batches have graphs
  // in common. Makes these shared parts with one batch and its leaves. Runs a step whose outputs
  // have no meaning.
  void share(Blocks blocks, const std::vector<LeafValue>& leaves);

  // Plans the memory of a batch and prepares the forms of its graphs. On the CPU, any thread may
  // call it, even while another batch runs.
  std::unique_ptr<Executor> prepare(Blocks blocks) const;
  // Prepares a batch and does everything else that comes before the first kernel: sends leaves to
  // the back end and binds kernels. Any thread may call it, on a GPU, too.
  struct Ready {
    std::unique_ptr<Executor> executor;
    // The arrays of the leaves by their names. They lie in the back end's memory.
    std::map<std::string, std::shared_ptr<void>> leaves;
  };
  // `room` names leaves that are filled later, with their bytes.
  Ready make_ready(Blocks blocks, const std::vector<LeafValue>& leaves, const std::map<std::string, int64_t>& room,
                   const Places& places = {});
  // Runs a prepared batch. `in_place` holds the leaves that are already in the back end's memory.
  void run(Executor& batch, const std::vector<LeafValue>& leaves, const std::map<std::string, void*>& in_place,
           const StepContext& step);
  // Runs a prepared batch beside batches on other tracks, on any thread of a host. A track has an
  // arena of its own. What was bound lies where `places` says.
  class Track {
    friend class BlockRunner;
    Memory arena_;
  };
  void run_on(Track& track, const Places& places, Executor& batch, const std::vector<LeafValue>& leaves,
              const std::map<std::string, void*>& in_place, const StepContext& step) const;
  int64_t bytes() const;
  // Frees the arena and the places of leaves; the next batch allocates them again.
  void release();
  // Return memory of at least `bytes` that is unused while no batch runs, and the values that were
  // computed once.
  std::shared_ptr<void> arena(int64_t bytes);
  ConstantPool& constants() { return constants_; }

 private:
  void require_shared() const;
  void* place(const LeafValue& leaf);
  void bind_kept(Executor& batch, const Places& places) const;
  void bind_ready(Ready& ready, const std::vector<LeafValue>& leaves, const std::map<std::string, int64_t>& room,
                  const Places& places);

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<Backend> backend_;
  bool computes_once_;
  std::map<std::string, void*> bound_, outputs_;
  mutable std::mutex mutex_;  // protects the arena
  Memory arena_;
  std::map<std::string, Memory> leaves_;  // used on a device
  ConstantPool constants_;
  // kept because forms of graphs are identified by addresses, which must not be used again
  Ready shared_;
};

}  // namespace nacre
