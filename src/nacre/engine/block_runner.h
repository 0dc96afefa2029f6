// BlockRunner: one plan on blocks that change from step to step. Arena and places of leaves are kept and grow when a
// batch needs more; what a batch's blocks need besides (views, copies on a device) goes with the batch.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nacre/engine/executor.h"

namespace nacre {

// A leaf's values in host memory.
struct LeafValue {
  std::string name;
  Tensor values;
};

class BlockRunner {
 public:
  // What the plan computes once must depend on nothing that changes from batch to batch.
  BlockRunner(Plan plan, std::shared_ptr<Backend> backend);

  const Plan& plan() const { return *plan_; }
  // Leaves and outputs that lie at the same place for every batch (in the back end's memory).
  void bind(const std::string& leaf, void* data) { bound_[leaf] = data; }
  // Returns where the output will lie: outputs that are one and the same value share the place bound first.
  void* bind_output(const std::string& output, void* data);

  // To be called first, after bind(), if the plan computes anything once or batches have graphs in common: makes that,
  // with one batch and its leaves, for all. Runs a step whose outputs mean nothing.
  void share(Blocks blocks, const std::vector<LeafValue>& leaves);

  // Plans the memory of a batch and prepares its graphs' forms. On the CPU it may be called from any thread, also while
  // another batch runs.
  std::unique_ptr<Executor> prepare(Blocks blocks) const;
  // The same and all else that comes before the first kernel: leaves are sent to the back end, kernels are bound. From
  // any thread on a GPU too.
  struct Ready {
    std::unique_ptr<Executor> executor;
    std::map<std::string, std::shared_ptr<void>> leaves;  // in the back end's memory
  };
  // `room`: leaves, by their bytes, that are filled later.
  Ready make_ready(Blocks blocks, const std::vector<LeafValue>& leaves, const std::map<std::string, int64_t>& room);
  // Runs a prepared batch. Leaves that are already in the back end's memory come as `in_place`.
  void run(Executor& batch, const std::vector<LeafValue>& leaves, const std::map<std::string, void*>& in_place,
           const StepContext& step);
  int64_t bytes() const;
  // Gives the arena and the places of leaves back; the next batch takes them anew.
  void release();
  // Memory that lies idle while no batch runs, at least `bytes`, and what was computed once.
  std::shared_ptr<void> arena(int64_t bytes);
  ConstantPool& constants() { return constants_; }

 private:
  void require_shared() const;
  void* place(const LeafValue& leaf);
  void bind_ready(Ready& ready, const std::vector<LeafValue>& leaves, const std::map<std::string, int64_t>& room);

  struct Memory {
    std::shared_ptr<void> data;
    int64_t bytes = 0;
    // Grown with some room to spare, so that batches of about one size grow it a few times only.
    void* at_least(int64_t wanted, Backend& backend);
  };
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<Backend> backend_;
  bool computes_once_;
  std::map<std::string, void*> bound_, outputs_;
  mutable std::mutex mutex_;  // of the arena
  Memory arena_;
  std::map<std::string, Memory> leaves_;  // on a device
  ConstantPool constants_;
  Ready shared_;  // forms of graphs are known by addresses, which must not come again
};

}  // namespace nacre
