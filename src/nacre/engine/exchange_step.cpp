#include "nacre/engine/exchange_step.h"

#include <algorithm>
#include <utility>

#include "nacre/plan/narrow.h"

namespace nacre {
namespace {

// Returns the two halves of an exchange without other ranks: the first copies the rows that operand
// and result have in common, and the second does nothing.
ExchangeStep bind_copy_of(const Executor& executor, const Communication& what, int64_t rows) {
  const int64_t bytes = rows * what.row_bytes();
  return {[&backend = executor.backend(), what, bytes] {
            if (what.from != what.to) backend.copy(what.to, what.from, bytes);
          },
          [] {}};
}

}  // namespace

ExchangeStep bind_exchange(const Executor& executor, const Kernel& kernel) {
  const Dfg& dfg = executor.plan().dfg;
  const Node& root = dfg[kernel.root];
  const Blocks& blocks = executor.blocks();
  const NodeRef operand = root.inputs[0];
  Communication what;
  what.op = root.op;
  what.from = executor.pointer(operand);
  what.to = executor.pointer(kernel.root);
  what.rows = blocks.rows(dfg[operand].type.space);
  what.width = (root.op == Op::to_columns ? dfg[operand] : root).type.row_size();
  what.reversed = blocks.is_reversed(root.type.space);
  what.types = {moves_bf16(executor.plan(), kernel), kernel.narrow_ranks.empty() ? nullptr : &kernel.narrow_ranks};
  RankLinks* links = blocks.links();
  if (links == nullptr) return bind_copy_of(executor, what, std::min(what.rows, blocks.rows(root.type.space)));
  const auto pending = std::make_shared<std::unique_ptr<PendingCommunication>>();
  return {[links, what, pending] { *pending = links->start(what); },
          [pending] {
            // The operation is taken out of `pending` first, so it is destroyed even if finish()
            // throws. Such an exception ends the run.
            const std::unique_ptr<PendingCommunication> now = std::exchange(*pending, nullptr);
            now->finish();
          }};
}

}  // namespace nacre
