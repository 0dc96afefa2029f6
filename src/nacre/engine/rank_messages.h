// RankMessages: carries out the communication operations of one rank (exchange, exchange_add and
// all_reduce) by calls of its communicator.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/device/device.h"
#include "nacre/engine/rank_columns.h"
#include "nacre/engine/row_converter.h"
#include "nacre/kernel/rank_links.h"
#include "nacre/partition/local_graph.h"

namespace nacre {

class RankMessages {
 public:
  // `compiler` is that of the rank's GPU, or null if the values of the rank lie in host memory.
  // `columns` says how ranks deal out columns.
  RankMessages(std::shared_ptr<const LocalGraph> local, RankColumns columns, Communicator& communicator,
               const std::shared_ptr<GpuCompiler>& compiler);

  // These functions start the operations that RankLinks describes. `to` may begin where `from`
  // begins.
  std::unique_ptr<PendingCommunication> start_exchange(const void* from, void* to, int64_t row_bytes,
                                                       const RowTypes& types = {});
  std::unique_ptr<PendingCommunication> start_add(SumType type, const void* from, void* to, int64_t width,
                                                  const RowTypes& types = {});
  std::unique_ptr<PendingCommunication> start_all_reduce(const float* from, float* to, int64_t count);
  std::unique_ptr<PendingCommunication> start_to_columns(const void* from, void* to, int64_t width,
                                                         int64_t element_bytes);
  std::unique_ptr<PendingCommunication> start_to_rows(const void* from, void* to, int64_t width, int64_t element_bytes);

 private:
  class Pending;
  class PendingRows;
  class PendingAdd;
  using Bytes = std::vector<std::byte>;

  // Copies bytes within the memory of the rank, unless they are already there.
  void copy(void* to, const void* from, int64_t bytes) const;
  Rows halo_of(void* all, const PeerRows& peer, int64_t row_bytes) const;
  std::unique_ptr<PendingCommunication> add_on_host(SumType type, void* to, int64_t row_bytes, ExchangeRequest& request,
                                                    const RowTypes& types);

  std::shared_ptr<const LocalGraph> local_;
  RankColumns columns_;
  Communicator& communicator_;
  std::shared_ptr<Device> device_;
  RowConverter converter_;
  // For each peer, the numbers of the rows that it needs, in the memory of the rank.
  std::vector<std::shared_ptr<const uint32_t>> send_;
  std::vector<Bytes> received_;  // memory for rows that wait to be added, which is kept
};

}  // namespace nacre
