// Why ranks fail that do not make the same call.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/cluster/call_kind.h"
#include "nacre/cluster/sums.h"

namespace nacre {

// The number of rows of a message and their size.
struct MessageSize {
  int64_t rows = 0;
  int64_t row_bytes = 0;

  bool operator==(const MessageSize&) const = default;
  int64_t bytes() const { return rows * row_bytes; }
};

// The elements of a sum.
struct SumSize {
  SumType type = SumType::f32;
  int64_t count = 0;

  bool operator==(const SumSize&) const = default;
};

// These return the reason of a failure of the rank that is described first. `name` is that of the
// call.
std::string other_kind(CallKind own, CallKind others);
std::string other_message(MessageSize sent, int receiver, MessageSize expected, const std::string& name);
std::string other_sum(SumSize own, SumSize others, const std::string& name);

}  // namespace nacre
