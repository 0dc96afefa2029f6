// Writes texts that say how the call of a rank differs from the calls of other ranks. A rank whose
// call differs fails.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/cluster/call_kind.h"
#include "nacre/cluster/sums.h"

namespace nacre {

// Says how many rows a message has and how large they are.
struct MessageSize {
  int64_t rows = 0;
  int64_t row_bytes = 0;

  bool operator==(const MessageSize&) const = default;
  int64_t bytes() const { return rows * row_bytes; }
};

// Holds the type and the number of the elements of a sum over ranks.
struct SumSize {
  SumType type = SumType::f32;
  int64_t count = 0;

  bool operator==(const SumSize&) const = default;
};

// These functions return a text that says why a rank has failed. The first argument says what the
// failed rank did; the arguments after it say what other ranks did. `name` is the name of the call.
std::string other_kind(CallKind own, CallKind others);
std::string other_message(MessageSize sent, int receiver, MessageSize expected, const std::string& name);
std::string other_sum(SumSize own, SumSize others, const std::string& name);

}  // namespace nacre
