// BlockRunner: runs one plan on blocks that change from step to step. The arena and the places of
// leaves are kept, and grow when a batch needs more. Everything else that the blocks of a batch
// need (views, copies on a device) is freed with the batch.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nacre/engine/executor.h"

namespace nacre {

// Holds the values of a leaf in host memory.
struct LeafValue {
  std::string name;
  Tensor values;
};

class BlockRunner {
  struct Memory {
    std::shared_ptr<void> data;
    int64_t bytes = 0;
    // Returns memory of at least `wanted` bytes. When the memory grows, it gets room to spare, so
    // that batches of about the same size make it grow only a few times.
    void* at_least(int64_t wanted, Backend& backend);
  };

 public:
  // A function of this type returns where a batch finds what was bound at `place`, if batches do
  // not all find it there.
  using Places = std::function<void*(void* place)>;

  // What `plan` computes once must not depend on anything that changes from batch to batch.
  BlockRunner(Plan plan, std::shared_ptr<Backend> backend);

  const Plan& plan() const { return *plan_; }
  // Binds leaves and outputs that are at the same place for every batch, in the back end's memory.
  void bind(const std::string& leaf, void* data) { bound_[leaf] = data; }
  // Binds an output and returns where it will be: at `data` or, if another output with the same
  // value was bound before, at the place of that output.
  void* bind_output(const std::string& output, void* data);

  // Makes what batches share: the values that the plan computes once, and the forms of graphs that
  // batches have in common. For this, it runs a step on these blocks and leaves, whose outputs have
  // no meaning. If the plan or the batches share anything, this must be called after bind() and
  // before all functions below.
  void share(Blocks blocks, const std::vector<LeafValue>& leaves);

  // Plans the memory of a batch and prepares the forms of its graphs. On the CPU, any thread may
  // call it, even while another batch runs.
  std::unique_ptr<Executor> prepare(Blocks blocks) const;
  // Holds a batch that is ready to run.
  struct Ready {
    std::unique_ptr<Executor> executor;
    // The arrays of the leaves by their names. They lie in the back end's memory.
    std::map<std::string, std::shared_ptr<void>> leaves;
  };
  // Prepares a batch and does everything else that comes before the first kernel: sends leaves to
  // the back end and binds kernels. `room` names leaves that are filled later, with their bytes.
  // Any thread may call this function, also on a GPU.
  Ready make_ready(Blocks blocks, const std::vector<LeafValue>& leaves, const std::map<std::string, int64_t>& room,
                   const Places& places = {});
  // Runs a prepared batch. `in_place` holds the leaves that are already in the back end's memory.
  void run(Executor& batch, const std::vector<LeafValue>& leaves, const std::map<std::string, void*>& in_place,
           const StepContext& step);
  // Holds the arena of a track, on which batches run beside batches on other tracks.
  class Track {
    friend class BlockRunner;
    Memory arena_;
  };
  // Runs a prepared batch on a track. Any thread of a host may call this function. What was bound
  // lies where `places` says.
  void run_on(Track& track, const Places& places, Executor& batch, const std::vector<LeafValue>& leaves,
              const std::map<std::string, void*>& in_place, const StepContext& step) const;
  int64_t bytes() const;
  // Frees the arena and the places of leaves; the next batch allocates them again.
  void release();
  // arena() returns memory of at least `bytes` bytes that is unused while no batch runs.
  // constants() returns the values that were computed once.
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
  // The batch of share() is kept, because the forms of its graphs are found by the addresses of
  // these graphs, which no later graph may have.
  Ready shared_;
};

}  // namespace nacre
