// RankColumns: describes the all-to-alls of ranks that aggregate in columns as calls of a
// communicator. to_columns gives each rank some columns of the rows of all vertices, and to_rows
// gives the rows back.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/device/device.h"
#include "nacre/partition/partition.h"

namespace nacre {

class RankColumns {
 public:
  // `partition` has the owner of each vertex, and must outlive this object. `shares` are those of
  // the ranks in the columns; empty means equal shares. `device` is null if the values of the rank
  // lie in host memory. `order` has the rows of the rank's own vertices by their numbers in the
  // whole graph (rows_by_number()).
  RankColumns(const Partition& partition, std::vector<double> shares, int rank, std::shared_ptr<Device> device,
              Array<NodeId> order);

  const std::vector<double>& shares() const { return shares_; }
  // Returns how many of `width` columns rank `rank` has.
  int64_t count(int rank, int64_t width) const;

  // Return what this rank sends and receives. `own` are rows of its own vertices, with `width`
  // elements of `element_bytes` bytes each, and `all` the rank's columns of the rows of all
  // vertices. The lists of vertices are made at the first call.
  ExchangeRequest to_columns(const std::byte* own, std::byte* all, int64_t width, int64_t element_bytes);
  ExchangeRequest to_rows(const std::byte* all, std::byte* own, int64_t width, int64_t element_bytes);
  // Fills `all` with zeros. A rank whose share has no columns calls this, because it holds one
  // column all the same.
  void clear(void* all, int64_t element_bytes) const;

 private:
  // Lists the vertices that one rank owns, in ascending order. The list is in the memory of the
  // device on which this rank computes.
  struct Owned {
    std::shared_ptr<const uint32_t> numbers;
    int64_t count = 0;
  };
  const std::vector<Owned>& owned();
  std::shared_ptr<const uint32_t> in_memory(std::vector<uint32_t> list) const;

  const Partition* partition_;
  std::vector<double> shares_;
  int rank_;
  std::shared_ptr<Device> device_;
  Array<NodeId> order_;
  std::vector<Owned> owned_;                // lists by rank; empty before the first call
  std::shared_ptr<const uint32_t> sorted_;  // order_ in the memory of this rank, or null
};

}  // namespace nacre
