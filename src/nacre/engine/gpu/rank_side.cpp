#include "nacre/engine/gpu/rank_side.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/function_key.h"

namespace nacre {

RankSide::RankSide(std::shared_ptr<GpuCompiler> compiler, std::shared_ptr<Device> allocator) {
  if (compiler != nullptr) {
    device = compiler->device();
    context_ = std::make_shared<GpuContext>(std::move(compiler), std::make_shared<GraphViews>(), GpuOptions{});
  }
  buffers = std::make_shared<RankBuffers>(device, std::move(allocator));
}

void RankSide::move(const ConstRows& from, const Rows& to, cuda::RowAction action) {
  using cuda::RowAction;
  const auto bits =
      static_cast<uint64_t>(reinterpret_cast<uintptr_t>(from.data) | reinterpret_cast<uintptr_t>(to.data)) |
      static_cast<uint64_t>(from.row_bytes | to.row_bytes | from.step() | to.step());
  cuda::RowMove move;
  move.action = action;
  int64_t from_word = 8, to_word = 8;  // bytes; where there are bf16, a word has four elements
  if (action == RowAction::copy || action == RowAction::add) {
    NACRE_CHECK(bits % 4 == 0, "ranks on GPUs exchange rows of whole words only");
    move.floats = bits % 16 == 0 ? 4 : bits % 8 == 0 ? 2 : 1;
    from_word = to_word = 4 * move.floats;
  } else {
    if (action == RowAction::narrow) from_word = 16;
    if (action == RowAction::widen || action == RowAction::widen_add) to_word = 16;
    NACRE_CHECK(bits % 8 == 0 && from.row_bytes / from_word == to.row_bytes / to_word,
                "rows of bf16 have a multiple of four elements");
  }
  move.words = from.row_bytes / from_word;
  const GpuFunction& function = context_->compiler().function(
      FunctionKey("move rows").add(move.floats).add(move.words).add(static_cast<int>(action)).bytes(),
      [&] { return cuda::RowSource{cuda::move_rows(move)}; });
  const cuda::MoveRowsParams params = {.from = from.data,
                                       .from_index = from.index,
                                       .to = to.data,
                                       .to_index = to.index,
                                       .rows = from.count,
                                       .from_pitch = from.step() / from_word,
                                       .to_pitch = to.step() / to_word};
  context_->launch(function, cuda::move_blocks(move, from.count), params)();
}

void RankSide::sum(SumType type, const std::vector<void*>& arrays, void* out, int64_t count) {
  const bool doubles = type == SumType::f64;
  const int number = static_cast<int>(arrays.size());
  const GpuFunction& function =
      context_->compiler().function(FunctionKey("sum arrays").add(number).add(doubles).bytes(),
                                    [&] { return cuda::RowSource{cuda::sum_arrays(number, doubles)}; });
  cuda::LaunchParams params(cuda::SumArraysParams{.out = out, .count = count});
  params.operands(arrays);
  context_->launch(function, (count + cuda::kSumThreads - 1) / cuda::kSumThreads, params)();
}

void RankSide::wait_for(const BesideWork& work) {
  if (!measuring || work.from == nullptr) return device->wait_for(work.to);
  DeviceEvent from = device->record();
  device->wait_for(work.to);
  spans.push_back({work.what, std::move(from), device->record(), 1, work});
}

cuda::RowAction received_action(const std::optional<SumType>& add) {
  if (!add) return cuda::RowAction::copy;
  NACRE_CHECK(*add != SumType::f64, "ranks on GPUs add rows of f32 and bf16 only");
  return *add == SumType::f32 ? cuda::RowAction::add : cuda::RowAction::add_bf16;
}

DeviceSeconds RankSide::take_seconds() {
  DeviceSeconds sum;
  for (const Span& span : spans) {
    const double seconds = device->elapsed(span.from, span.to);
    if (span.beside.from == nullptr) {
      sum.*span.what += span.counted * seconds;
      continue;
    }
    const double work = std::min(seconds, device->elapsed(span.beside.from, span.beside.to));
    sum.*span.what += work;
    sum.waited += seconds - work;
  }
  spans.clear();
  return sum;
}

}  // namespace nacre
