// The messages of one rank: communication operations as calls of a communicator.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/device/device.h"
#include "nacre/kernel/rank_links.h"
#include "nacre/partition/local_graph.h"

namespace nacre {

class RankMessages {
 public:
  // `device` is null if the values of the rank lie in host memory.
  RankMessages(std::shared_ptr<const LocalGraph> local, Communicator& communicator, std::shared_ptr<Device> device);

  // See RankLinks. `to` may begin where `from` begins.
  std::unique_ptr<PendingCommunication> start_exchange(const void* from, void* to, int64_t row_bytes);
  std::unique_ptr<PendingCommunication> start_add(SumType type, const void* from, void* to, int64_t width);
  std::unique_ptr<PendingCommunication> start_all_reduce(const float* from, float* to, int64_t count);

 private:
  class Pending;
  class PendingAdd;
  using Bytes = std::vector<std::byte>;

  // Copies bytes within the memory of the rank, unless they are already there.
  void copy(void* to, const void* from, int64_t bytes) const;
  Rows halo_of(void* all, const PeerRows& peer, int64_t row_bytes) const;
  std::unique_ptr<PendingCommunication> add_on_host(SumType type, void* to, int64_t row_bytes,
                                                    ExchangeRequest& request);

  std::shared_ptr<const LocalGraph> local_;
  Communicator& communicator_;
  std::shared_ptr<Device> device_;
  // For each peer, the numbers of the rows that it needs, in the memory of the rank.
  std::vector<std::shared_ptr<const uint32_t>> send_;
  std::vector<Bytes> received_;  // memory for rows that wait to be added, which is kept
};

}  // namespace nacre
