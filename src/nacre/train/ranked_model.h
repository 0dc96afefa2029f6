// RankedModel: a run over several devices, as rank 0 sees it. The other ranks follow: they wait for
// orders of rank 0 and carry them out at the same time as rank 0 does. They are threads of this
// process or processes that MPI started. RankedSession (whole graph) and RankedBatchSession
// (mini-batches) say what ranks compute.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/base/thread_team.h"
#include "nacre/train/ranked_run.h"
#include "nacre/train/vertex_model.h"

namespace nacre {

class RankedModel : public VertexModel {
 public:
  const RunConfig& config() const override { return run_.data().config; }
  const Dataset& dataset() const override { return run_.data().dataset; }
  const std::vector<std::string>& notes() const override { return run_.data().notes; }
  const std::string& metric() const override { return run_.data().metric; }
  std::string fingerprint() const override { return run_.data().fingerprint(); }

  std::vector<MemoryItem> memory() const override;
  std::string take_rank_times() override;

  const std::vector<RankDevice>& devices() const { return run_.devices(); }
  int ranks() const { return static_cast<int>(devices().size()); }
  // Returns the share of the work that each rank was given; they add up to 1.
  const std::vector<double>& shares() const { return run_.shares(); }
  // Returns the figures of all ranks so far. Waits for the other ranks.
  virtual std::vector<RankFigures> figures() = 0;
  // Returns the figures of all ranks before the first step.
  const std::vector<RankFigures>& planned() const { return planned_; }

 protected:
  // Completes `config`. Throws UserError if data, model and devices do not fit together.
  RankedModel(Dataset dataset, RunConfig config, const SessionNeeds& needs);

  // Connects the ranks, which make their sessions at the same time as the caller makes that of rank
  // 0.
  void connect();
  // Makes this process join the others (RankedRun::join()).
  void join(const NewShares* wanted);
  // Opens the devices of all ranks, deals out the work, and connects the ranks as threads of this
  // process. If `wanted` is null, the run chooses the shares.
  std::unique_ptr<RankTeam> start_threads(const NewShares* wanted);
  // Gives rank 0 its threads. Calls make(), which makes the session of rank 0.
  void make_own(FunctionRef<void()> make);
  // Gives the order to all ranks, and carries out the part of rank 0 by calling `own`.
  void give(const RankOrder& order, FunctionRef<void()> own);
  // Must be called inside a handler of an exception. Ends all ranks, and throws what the failed
  // rank threw (RankTeam::fail()).
  [[noreturn]] void fail();
  // Ends the sessions of all ranks. The destructor of a derived class calls this.
  void end_ranks();
  // Returns the times of all ranks. Waits for the other ranks.
  virtual std::vector<RankTimes> all_times() = 0;
  // Throws UserError if ranks that share a memory do not fit into it together, or if a rank that is
  // a process of its own does not fit into what it may use. `remedy` says what to do then.
  void require_memory(const std::string& remedy) const;
  // Returns the memory of the ranks of this process on the host.
  std::vector<MemoryItem> host_of_ranks() const;
  bool in_processes() const { return processes_ != nullptr || grouped_ != nullptr; }

  double start_;
  RankedRun run_;
  std::unique_ptr<RankTeam> team_;
  // The team of processes if each of them is one rank; otherwise null.
  MpiTeam* processes_ = nullptr;
  // The team of processes if they drive several ranks; otherwise null.
  ProcessTeam* grouped_ = nullptr;
  std::unique_ptr<ThreadTeam> threads_;  // threads of rank 0
  std::vector<RankFigures> planned_;     // figures of all ranks before the first step

 private:
  bool failed_ = false;          // the team has ended because of a failure
  std::vector<RankTimes> told_;  // times of all ranks at the last call of take_rank_times()
};

}  // namespace nacre
