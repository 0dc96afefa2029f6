// RankedRun: what all ranks of a run over several devices agree on: the data, the devices, and
// which rank owns which node or computes which mini-batches. Ranks other than 0 follow: they carry
// out the orders of rank 0.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "nacre/cluster/process_team.h"
#include "nacre/cluster/rank_team.h"
#include "nacre/train/rank_devices.h"
#include "nacre/train/rank_session.h"
#include "nacre/train/run_data.h"
#include "nacre/train/share_rules.h"

namespace nacre {

// An order says what rank 0 wants the other ranks to do. It is sent as bytes.
struct RankOrder {
  enum class Kind : uint8_t {
    start,
    step,
    weights,
    average,
    evaluate,
    predict,
    embeddings,
    figures,
    times,
    describe,
    rebuild,
    epoch,          // mini-batches: begin an epoch
    time_batches,   // mini-batches: time a few of them
    count_batches,  // mini-batches: take other numbers of them, which are sent after the order
    wait,           // wait for the next order, because rank 0 is busy
    end
  };

  Kind kind = Kind::end;
  // The meaning of `flag` depends on the kind of the order. step: the ranks share the weights after
  // it; average: the moving average of the weights is used from now on, not the weights themselves;
  // evaluate: the loss is wanted; describe: nothing is returned if a rank has no stored model.
  bool flag = false;
  bool timed = false;  // whether every kernel of the step is timed
  int64_t step = 0;
  double lr = 0;
  // For orders to begin an epoch: its number, its first batch, and the number of epochs of the run.
  int64_t epoch = 0, first = 0, epochs = 0;
  int64_t shuffled_from = 0;  // for orders to begin an epoch: the first epoch that is shuffled
};

// Holds the settings with which ranks are made anew: how the nodes are dealt out, and which ranks
// compute in bf16. Rank 0 sends them to other processes.
struct NewShares {
  std::vector<double> shares;
  double row_work = 0;     // how many in-edges the work of a vertex itself counts as
  std::vector<char> bf16;  // whether the run has switched each rank to bf16; empty: none
  // If true, the graph is cut as if nothing had been dealt out before.
  bool cuts_anew = false;

  std::string packed() const;
  static NewShares unpacked(const std::string& bytes);
};

class RankedRun {
 public:
  // Completes `config`. Throws UserError if data, model and devices do not fit together.
  RankedRun(Dataset dataset, RunConfig config, const SessionNeeds& needs);

  const RunData& data() const { return run_; }
  std::vector<std::string>& notes() { return run_.notes; }
  const SessionNeeds& needs() const { return needs_; }
  const std::vector<RankDevice>& devices() const { return devices_; }
  const Partition& partition() const { return partition_; }
  // Returns the share of the work that each rank is given; they add up to 1.
  const std::vector<double>& shares() const { return shares_; }
  // Returns how many mini-batches each rank computes in a step.
  const std::vector<int64_t>& counts() const { return counts_; }
  // Sets how many mini-batches each rank computes in a step. RankedBatchSession calls it on rank 0
  // only.
  void take_counts(std::vector<int64_t> counts);
  // Takes the settings of sampling for mini-batches, completed for the model.
  void complete(const SampleOptions& sampling) { run_.config.sampling = sampling; }
  // Returns whether the run chooses and changes the shares by itself (--shares auto).
  bool chooses_shares() const;
  const std::vector<DeviceSpeed>& speeds() const { return speeds_; }
  // If the run chooses the shares, leaves out the devices that would only slow the others down, and
  // adds a note on each. This is only for ranks of one process, and all devices must be open.
  void leave_out_weak();
  // Tells every process of the run how fast the devices of the others are. Each process must have
  // opened its devices.
  void share_speeds(Communicator& processes);
  // Deals out the nodes, or the mini-batches, by the shares that the user gave or, if there are
  // none, by a rule (share_rules.h), and adds a note that says why. The speeds of all devices must
  // be known.
  void deal_out();
  // Deals out the nodes, or the mini-batches, by these shares. No rank of this process may have a
  // session at that time.
  void deal_out(std::vector<double> shares);
  // Deals out the nodes by other shares than before. Unless the graph is to be cut anew, few nodes
  // change their rank. No rank of this process may have a session at that time.
  void deal_out_again(const NewShares& wanted);
  double partition_seconds() const { return partition_seconds_; }
  // Sets the precisions of the ranks. Devices that are open must be opened again.
  void take_precisions(const NewShares& wanted);
  // Returns for each rank whether the run has switched it to bf16.
  std::vector<char> switched() const;
  // Returns whether the run may switch ranks to bf16 (--precision auto).
  bool chooses_precisions() const;
  // Returns whether some ranks compute on the host and others on GPUs.
  bool mixed() const;

  // Opens the device of a rank.
  void open(int rank);
  // Opens the devices of all ranks anew. Devices that were open are closed first, because parts of
  // one GPU can only be opened if enough multiprocessors are free.
  void open_all();
  // Returns the opened device of a rank.
  const std::shared_ptr<const RunDevice>& device(int rank) const { return opened_[rank]; }
  // Returns what the session of a rank is made from. Its device must be open.
  RankSetup setup(const RankCalls& calls) const;
  // Opens the device of this process, connects it with those of the other processes, and deals out
  // the nodes: as `wanted` says or, if it is null, as deal_out() does. All processes call this at
  // the same time, and none may have a session then.
  void join(MpiTeam& team, const NewShares* wanted);
  // Does what join(MpiTeam&, …) does, in a process that drives several ranks: opens all devices of
  // the process, and connects them with each other and with those of the other processes.
  void join(ProcessTeam& team, const NewShares* wanted);
  // Returns the session of a rank of this process other than rank 0; null if there is none. Rank 0
  // may read it between two orders, because the other rank then waits for the next order.
  const RankSession* session(int rank) const { return sessions_[rank]; }
  // Does what a rank other than 0 does: makes its session, and carries out orders until the last
  // one, which it returns.
  RankOrder follow(const RankCalls& calls);
  // Do what follow(const RankCalls&) does, for a process that has one rank (MpiTeam) or several
  // (ProcessTeam). If rank 0 orders new shares, join the other processes again and go on.
  void follow(MpiTeam& team);
  void follow(ProcessTeam& team);
  // Starts a thread of the team for each rank that this process drives besides its first one. These
  // ranks wait there for orders of rank 0 and carry them out.
  void start_others(ProcessTeam& team);
  // Sends an order to all ranks. Called by rank 0.
  static void send(const RankOrder& order, Communicator& control);
  // Orders all ranks to end their sessions and to join() again with other shares. Only rank 0 calls
  // this.
  static void rebuild(const NewShares& wanted, Communicator& control);

 private:
  // Keeps a partition, the shares that it follows, and the seconds since `start` as the time that
  // partitioning took.
  void take_partition(Partition partition, std::vector<double> shares, double start);
  bool in_batches() const { return run_.config.mode == "minibatch"; }
  RunConfig config_of(int rank) const;
  // Returns how many ranks of this process share the memory of `rank`, which is counted, too.
  int sharing(int rank) const;
  // Returns the ranks whose devices would only slow the others down. Returns none if the user gave
  // the shares.
  std::vector<int> weak_devices() const;

  RunData run_;
  SessionNeeds needs_;
  std::vector<RankDevice> devices_;
  std::vector<double> shares_;
  std::vector<int64_t> counts_;
  Partition partition_;
  double partition_seconds_ = 0;
  std::vector<std::shared_ptr<GraphViews>> views_;
  std::vector<std::shared_ptr<const RunDevice>> opened_;
  std::vector<DeviceSpeed> speeds_;
  // Sessions of this process's ranks that run follow(); null for the other ranks.
  std::vector<const RankSession*> sessions_;
};

}  // namespace nacre
