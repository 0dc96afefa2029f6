#include "nacre/cluster/rank_threads.h"

#include <exception>
#include <thread>
#include <utility>

namespace nacre {

struct RankThreads::Rank {
  std::unique_ptr<Communicator> data, control;
  std::thread thread;        // none for rank 0
  std::exception_ptr error;  // what the body threw; read after the thread has ended

  // Tells all ranks why this one has failed.
  void abort(const std::string& reason) const {
    data->abort(reason);
    control->abort(reason);
  }

  void run(const Body& body) {
    try {
      body({*data, *control});
    } catch (const RankFailure& failure) {
      // A failure of another rank was thrown by one of the two communicators. The ranks that wait
      // in the other communicator must hear of it, too.
      error = std::current_exception();
      abort(failure.what());
    } catch (const std::exception& thrown) {
      error = std::current_exception();
      abort(thrown.what());
    }
  }
};

RankThreads::RankThreads(int size, const GroupOptions& data, const Body& body) {
  GroupOptions host = data;
  host.memory = nullptr;
  auto all_data = make_group(size, data);
  auto all_control = make_group(size, host);
  for (int r = 0; r < size; ++r) {
    ranks_.push_back(std::make_unique<Rank>());
    ranks_[r]->data = std::move(all_data[r]);
    ranks_[r]->control = std::move(all_control[r]);
  }
  try {
    for (int r = 1; r < size; ++r) {
      ranks_[r]->thread = std::thread([rank = ranks_[r].get(), body] { rank->run(body); });
    }
  } catch (const std::exception& error) {
    ranks_[0]->abort(error.what());
    end();
    throw;
  }
}

RankThreads::~RankThreads() { end(); }

void RankThreads::end() {
  // A rank whose communicator is gone takes part in no further call, so ranks that wait for it
  // fail instead of waiting for ever.
  if (ranks_[0]->control) {
    ranks_[0]->data.reset();
    ranks_[0]->control.reset();
  }
  for (const auto& rank : ranks_) {
    if (rank->thread.joinable()) rank->thread.join();
  }
}

RankCalls RankThreads::calls() { return {*ranks_[0]->data, *ranks_[0]->control}; }

void RankThreads::fail() {
  const std::exception_ptr own = std::current_exception();
  int failed = 0;
  try {
    std::rethrow_exception(own);
  } catch (const RankFailure& failure) {
    failed = failure.rank();
    ranks_[0]->abort(failure.what());
  } catch (const std::exception& error) {
    ranks_[0]->abort(error.what());
  }
  end();
  const std::exception_ptr theirs = ranks_[failed]->error;
  std::rethrow_exception(failed > 0 && theirs ? theirs : own);
}

}  // namespace nacre
