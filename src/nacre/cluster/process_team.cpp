#include "nacre/cluster/process_team.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/cluster/packet_hub.h"
#include "nacre/cluster/rank_router.h"

namespace nacre {

struct ProcessTeam::Rank {
  std::unique_ptr<Communicator> data, control;
  std::thread thread;        // the first rank has none: it runs on the caller's thread
  std::exception_ptr error;  // what the body threw; read after the thread has ended

  // Tells all ranks of a failure that this rank has caught.
  void pass_on(const RankFailure& failure) const {
    if (data) data->pass_on(failure);
    control->pass_on(failure);
  }
  void abort(const std::string& reason) const {
    if (data) data->abort(reason);
    control->abort(reason);
  }

  void run(const Body& body) {
    try {
      body({*data, *control});
    } catch (const RankFailure& failure) {
      error = std::current_exception();
      pass_on(failure);
    } catch (const std::exception& thrown) {
      error = std::current_exception();
      abort(thrown.what());
    }
  }
};

ProcessTeam::ProcessTeam(MpiRanks& processes, std::vector<int> process_of, double timeout)
    : timeout_(timeout), processes_(processes.connect(timeout)) {
  of_process_.process_of = std::move(process_of);
  const std::shared_ptr<RankRouter> router = processes.route(of_process_.process_of);
  for (int r = 0; r < static_cast<int>(of_process_.process_of.size()); ++r) {
    if (of_process_.process_of[r] != processes.rank()) continue;
    of_process_.own.push_back(r);
    of_process_.hubs.push_back(std::make_shared<PacketHub>(router->connect(r)));
    ranks_.push_back(std::make_unique<Rank>());
    ranks_.back()->control = of_process_.hubs.back()->connect(timeout);
  }
  NACRE_CHECK(!own().empty(), "a process has no rank");
}

ProcessTeam::~ProcessTeam() {
  // A rank whose communicator is gone takes part in no further call, so ranks that wait for it fail
  // instead of waiting for ever.
  ranks_[0]->data.reset();
  ranks_[0]->control.reset();
  wait();
}

Communicator& ProcessTeam::control() { return *ranks_[0]->control; }

void ProcessTeam::connect_devices(const std::shared_ptr<RankMemory>& memory, const StageRank& stage) {
  for (const auto& rank : ranks_) rank->data.reset();
  auto all = connect_two_levels(of_process_, memory, stage, timeout_);
  for (size_t i = 0; i < ranks_.size(); ++i) ranks_[i]->data = std::move(all[i]);
}

void ProcessTeam::start(const Body& body) {
  for (size_t i = 1; i < ranks_.size(); ++i) {
    ranks_[i]->error = nullptr;
    ranks_[i]->thread = std::thread([rank = ranks_[i].get(), body] { rank->run(body); });
  }
}

void ProcessTeam::wait() {
  for (const auto& rank : ranks_) {
    if (rank->thread.joinable()) rank->thread.join();
  }
}

RankCalls ProcessTeam::calls() { return {*ranks_[0]->data, *ranks_[0]->control}; }

void ProcessTeam::fail() {
  const std::exception_ptr thrown = std::current_exception();
  int failed = own()[0];
  try {
    std::rethrow_exception(thrown);
  } catch (const RankFailure& failure) {
    failed = failure.rank();
    ranks_[0]->pass_on(failure);
  } catch (const std::exception& error) {
    ranks_[0]->abort(error.what());
  }
  wait();
  const auto at = std::find(own().begin(), own().end(), failed);
  const std::exception_ptr theirs = at == own().end() ? nullptr : ranks_[at - own().begin()]->error;
  std::rethrow_exception(theirs ? theirs : thrown);
}

}  // namespace nacre
