#include "nacre/kernel/cuda/product_tail.h"

#include "nacre/kernel/cuda/mma.h"
#include "nacre/kernel/cuda/text.h"

namespace nacre::cuda {
namespace {

constexpr int kGroup = 4;      // threads that share a row
constexpr int kVector = 2;     // neighbouring columns of a thread
constexpr int64_t kLine = 32;  // floats that one prefetch brings

}  // namespace

ProductTail::ProductTail(const RowProgram& tail)
    : tail_(tail), text_(tail, {.lanes = kGroup, .vector = kVector, .root = "root"}) {}

bool ProductTail::fits(const RowProgram& tail, int64_t columns) {
  return columns % kVector == 0 && !has_products(tail) && vector_limit(tail) == 4;
}

int64_t ProductTail::shared_floats(int threads) const { return int64_t{text_.shared_floats()} * threads / kGroup; }

std::string ProductTail::body(const std::string& row, int64_t shared) const {
  // The row's number is an expression and not a variable. With a variable of type int, kernels of
  // 256 columns took 7 to 25 % longer on an H200 (docs/results_log.md), presumably because the
  // compiler no longer sees that the rows of both halves are a constant distance apart.
  const std::string at = fill("warp * 16 + half * 8 + tid % 32 / ${G}", {{"G", kGroup}});
  return fill(R"(// Lane l of a warp has columns 2 · (l % 4) and the next of every eight, in rows l / 4 and 8 more.
const int lane = tid % ${G};
const u32 mask = group_mask<${G}>();
float* sh = shared + ${SHARED} + tid / ${G} * ${SH};
#pragma unroll
for (int half = 0; half < 2; ++half) {
${ROW}  float root[N_TILES * 2];
#pragma unroll
  for (int s = 0; s < N_TILES * 2; ++s) root[s] = sums[0][s / 2][half * 2 + s % 2] * CUT_OFF;
${TAIL}}
)",
              {{"G", kGroup},
               {"SHARED", shared},
               {"SH", text_.shared_floats()},
               {"ROW", indent(fill(row, {{"AT", at}}), 1)},
               {"TAIL", indent(text_.body(false), 1)}});
}

std::string ProductTail::prefetch(const std::string& row) const {
  std::string text;
  for (const Micro& m : tail_.code) {
    if (m.op != MicroOp::load) continue;
    const int64_t width = tail_.widths[m.out];
    if (width < kVector * kGroup) continue;
    const int64_t lines = divide_up(width, kLine);
    text += fill(R"(for (int i = tid; i < BM * ${L}; i += THREADS) {
${ROW}  asm volatile("prefetch.global.L2 [%0];" ::"l"(p${P} + pos0 * ${W} + i % ${L} * ${LINE}));
}
)",
                 {{"L", lines},
                  {"ROW", indent(fill(row, {{"AT", fill("i / ${L}", {{"L", lines}})}}), 1)},
                  {"P", m.operand},
                  {"W", width},
                  {"LINE", kLine}});
  }
  return text;
}

}  // namespace nacre::cuda
