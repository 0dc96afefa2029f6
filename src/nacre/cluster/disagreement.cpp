#include "nacre/cluster/disagreement.h"

#include <fmt/format.h>

namespace nacre {
namespace {

std::string text_of(MessageSize size) { return fmt::format("{} rows of {} bytes", size.rows, size.row_bytes); }

}  // namespace

std::string other_kind(CallKind own, CallKind others) {
  return fmt::format("it calls {} where other ranks call {}", name_of(own), name_of(others));
}

std::string other_message(MessageSize sent, int receiver, MessageSize expected, const std::string& name) {
  return fmt::format("it sends {} where rank {} expects {} in '{}'", text_of(sent), receiver, text_of(expected), name);
}

std::string other_sum(SumSize own, SumSize others, const std::string& name) {
  return fmt::format("it adds up {} elements of {} bytes in '{}' where other ranks add up {} of {}", own.count,
                     bytes_of(own.type), name, others.count, bytes_of(others.type));
}

}  // namespace nacre
