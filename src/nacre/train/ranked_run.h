// RankedRun: what all ranks of a run over several devices agree on: the data, the devices, and
// which rank owns which node. Ranks other than 0 follow: they carry out the orders of rank 0.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "nacre/cluster/rank_team.h"
#include "nacre/train/rank_devices.h"
#include "nacre/train/rank_session.h"
#include "nacre/train/run_data.h"

namespace nacre {

// An order says what rank 0 wants the other ranks to do. It is sent as bytes.
struct RankOrder {
  enum class Kind : uint8_t { start, step, weights, average, evaluate, predict, embeddings, figures, rebuild, end };

  Kind kind = Kind::end;
  bool flag = false;   // step: share the weights after it; average: use it; evaluate: with the loss
  bool timed = false;  // step: time every kernel
  int64_t step = 0;
  double lr = 0;
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
  // Leaves out devices that would only slow the others down, unless the user gave shares, and adds
  // a note. Only for ranks of one process; all devices must be open.
  void leave_out_weak();
  // Deals out the nodes by the shares that the user gave or, if there are none, by a score of each
  // device: its threads or multiprocessors. Devices of this process must be open.
  void deal_out();
  // Deals out the nodes by other shares. No rank of this process may have a session then.
  void deal_out(std::vector<double> shares);
  double partition_seconds() const { return partition_seconds_; }
  // Returns whether some ranks compute on the host and others on GPUs.
  bool mixed() const;

  // Opens the device of a rank.
  void open(int rank);
  // Returns the opened device of a rank.
  const std::shared_ptr<const RunDevice>& device(int rank) const { return opened_[rank]; }
  // Sets what moves rows between GPUs.
  void move_with(std::shared_ptr<RankMemory> memory) { memory_ = std::move(memory); }
  // Returns what the session of a rank is made from. Its device must be open.
  RankSetup setup(const RankCalls& calls) const;
  // Does what a rank other than 0 does: makes its session, and carries out orders until the last.
  void follow(const RankCalls& calls);
  // Sends an order to all ranks. Called by rank 0.
  static void send(const RankOrder& order, Communicator& control);

 private:
  RunConfig config_of(int rank) const;
  // Returns how fast each device is taken to be, in threads of the host.
  std::vector<double> scores() const;

  RunData run_;
  SessionNeeds needs_;
  std::vector<RankDevice> devices_;
  std::shared_ptr<RankMemory> memory_;
  std::vector<double> shares_;
  Partition partition_;
  double partition_seconds_ = 0;
  std::vector<std::shared_ptr<GraphViews>> views_;
  std::vector<std::shared_ptr<const RunDevice>> opened_;
};

}  // namespace nacre
