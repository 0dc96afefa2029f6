// RowConverter: converts the rows that a rank whose values are f32 sends to ranks that store them
// as bf16, and those that it receives from them.
//
// Between two ranks, rows travel as bf16 if one of the two stores them so. The other rank converts,
// because it is the only one that can: what it sends would be rounded at the other end anyway, and
// what it receives has no more bits. So half the bytes travel, every element is converted once, and
// nothing is lost that f32 on the way would have kept.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "nacre/cluster/communicator.h"
#include "nacre/engine/gpu/rank_buffers.h"
#include "nacre/kernel/rank_links.h"

namespace nacre {

class GpuCompiler;
struct RankSide;

class RowConverter {
 public:
  // If `compiler` is null, the values of the rank lie in host memory.
  explicit RowConverter(std::shared_ptr<GpuCompiler> compiler);
  ~RowConverter();

  // Holds the messages of one call that are converted.
  struct Messages {
    struct Received {
      ConstRows from;  // rows of bf16
      Rows to;         // rows of f32
      std::optional<SumType> add;
    };
    std::vector<Received> received;
    std::vector<RankBuffer> buffers;  // memory of the rows that travel
  };

  // Replaces those rows of the request that must travel as bf16 by buffers of bf16, and returns
  // what finish() needs. All rows of the request are f32. What the rank sends is converted in this
  // call.
  Messages convert(ExchangeRequest& request, const RowTypes& types);
  // Converts what has arrived, after the end of the call.
  void finish(Messages& messages);

 private:
  std::byte* take(int64_t bytes, Messages& messages);

  std::shared_ptr<GpuCompiler> compiler_;
  std::unique_ptr<RankSide> side_;  // the rank's side of a GPU, made at the first conversion
  std::vector<RankBuffer> free_;    // memory of the host that is not in use
};

}  // namespace nacre
