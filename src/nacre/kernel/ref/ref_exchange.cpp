// Defines the reference of the communication between ranks. Without other ranks, every operation
// copies.
#include <algorithm>
#include <cstring>

#include "nacre/base/error.h"
#include "nacre/kernel/ref/ref_impl.h"

namespace nacre::ref {

template <class T>
bool run_exchange(const Call<T>& call) {
  if (op_info(call.node.op).op_class != OpClass::communication) return false;
  const auto* in = static_cast<const T*>(call.inputs[0].data);
  auto* out = static_cast<T*>(call.result.data);
  const int64_t width = call.out_type().row_size();
  const int64_t rows = std::min(call.inputs[0].rows, call.result.rows);
  const auto bytes = count(rows * width) * sizeof(T);
  RankLinks* links = call.blocks.links();
  const bool reversed = call.blocks.is_reversed(call.out_type().space);
  if (links == nullptr || call.node.op == Op::all_reduce) {
    NACRE_CHECK(call.inputs[0].type.row_size() == width, "without other ranks, the operand must have all columns");
    if (bytes > 0) std::memcpy(out, in, bytes);
    if (links != nullptr) links->all_reduce(out, rows * width);
  } else if (call.node.op == Op::exchange) {
    links->exchange(in, out, width * static_cast<int64_t>(sizeof(T)), reversed);
  } else if (call.node.op == Op::to_columns) {
    links->to_columns(in, out, call.inputs[0].type.row_size(), sizeof(T));
  } else if (call.node.op == Op::to_rows) {
    links->to_rows(in, out, width, sizeof(T));
  } else {
    links->exchange_add(in, out, width, reversed);
  }
  return true;
}

NACRE_REF_FAMILY(run_exchange);

}  // namespace nacre::ref
