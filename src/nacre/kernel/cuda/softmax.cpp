// Softmax over the edges of each destination, and its gradient (see rows.h). Both walk a row twice.
// The first walk stores the value of the program in the result, and keeps the maximum and the sum
// of the row in registers. The second walk computes the result. A row belongs to one group of
// threads or, if it is long, to all groups of a block, which combine their numbers through shared
// memory.
#include "nacre/kernel/cuda/rows_text.h"

namespace nacre::cuda {
namespace {

class SoftmaxText {
 public:
  SoftmaxText(const RowProgram& program, int value, bool gradient, int64_t mean_degree, bool whole_block)
      : program_(program),
        value_(value),
        gradient_(gradient),
        block_(whole_block),
        threads_(whole_block ? 512 : 128),
        width_(program.widths[value]),
        thin_(widest(program) <= kThin && !has_products(program)),
        most_(vector_limit(program)),
        lanes_(thin_ ? 1 : lanes_for(widest(program), most_)),
        group_(thin_ ? (whole_block ? 32 : entry_lanes(mean_degree)) : lanes_),
        batch_(thin_ ? 1 : batch_for(program, lanes_, most_, MicroOp::load_dst)),
        text_(program, {.lanes = lanes_, .batch = batch_, .vector = most_, .common = MicroOp::load_dst}),
        held_(held_of(width_, lanes_, most_)) {}

  RowSource make() const {
    RowSource out;
    out.per_block = block_ ? 1 : groups();
    Entry entry(gradient_ ? "softmax_grad" : "softmax", std::to_string(threads_));
    entry.takes<SoftmaxParams>();
    if (gradient_) entry.takes<SoftmaxGradParams>();
    add_operands(entry, program_, "p");
    const std::string text =
        fill(R"(
${ENTRY} {
  const int lane = threadIdx.x % ${L};
  const u32 mask = group_mask<${L}>();
  extern __shared__ float shared[];
  float* sh = shared + threadIdx.x / ${L} * ${SH};
  const i64 unit = ${UNIT};
  if (unit >= count) return;
  const i64 row = order[unit];
  const i64 begin = row_ptr[row], end = row_ptr[row + 1];
  const int part = ${PART};
${SETUP}${START}${LOOP}${AGREE}${LAST}}
)",
             {{"ENTRY", kEntryMark},
              {"L", group_},
              {"SH", text_.shared_floats()},
              {"UNIT", block_ ? "blockIdx.x"
                              : fill("(i64)blockIdx.x * ${G} + threadIdx.x / ${L}", {{"G", groups()}, {"L", group_}})},
              {"PART", block_ ? "threadIdx.x / " + std::to_string(group_) : "0"},
              {"SETUP", indent(text_.setup() + before_loop(), 1)},
              {"START", indent(start(), 1)},
              {"LOOP", indent(thin_ ? thin_loop() : wide_loop(), 1)},
              {"AGREE", indent(block_ ? agree() : "", 1)},
              {"LAST", indent(last(), 1)}});
    out.source = entry.source(prelude() + text, threads_,
                              int64_t{4} * groups() * (text_.shared_floats() + (block_ ? 2 * width_ : 0)));
    return out;
  }

 private:
  int groups() const { return threads_ / group_; }
  // Returns the number of groups of threads that share a row.
  int groups_of_row() const { return block_ ? groups() : 1; }

  std::string before_loop() const {
    const std::string text = text_.prologue();
    return text.empty() ? "" : "const u32 dst0 = (u32)row;\n" + text;
  }

  std::string start() const {
    return array("sum", held_, "0.0f") + (gradient_ ? "" : array("top", held_, literal(-INFINITY)));
  }

  std::string place() const {
    if (width_ == 1) return "const int j = 0;\n";
    return fill("const int j = (s / ${V} * ${L} + ${lane}) * ${V} + s % ${V};\n",
                {{"V", vector_of(width_, most_)}, {"L", lanes_}, {"lane", lanes_ == 1 ? "0" : "lane"}});
  }
  // Returns the condition that the thread has element j of the row. If the value has one element,
  // all threads have it.
  std::string inside() const { return lanes_ == 1 || width_ == 1 ? "true" : "j < " + std::to_string(width_); }
  std::string writes() const { return lanes_ > 1 && width_ == 1 ? "lane == 0" : inside(); }

  std::string first(int u, bool masked) const {
    const std::string n = std::to_string(u);
    const std::string update = gradient_ ? "if (" + inside() + ") sum[s] += v * y[at];\n"
                                         : "const float high = fmaxf(top[s], v);\n"
                                           "sum[s] = sum[s] * expf(top[s] - high) + expf(v - high);\ntop[s] = high;\n";
    return fill(R"(#pragma unroll
for (int s = 0; s < ${S}; ++s) {
${PLACE}  const float v = ${V};
  const i64 at = (i64)pos${u} * ${W} + j;
${OK}${UPDATE}  if (${WRITES}) out[at] = v;
${END}}
)",
                {{"S", held_},
                 {"PLACE", indent(place(), 1)},
                 {"V", text_.own_element(value_, u, "s")},
                 {"u", n},
                 {"W", width_},
                 {"OK", masked ? "  if (ok" + n + ") {\n" : ""},
                 {"UPDATE", indent(update, 1)},
                 {"WRITES", writes()},
                 {"END", masked ? "  }\n" : ""}});
  }

  std::string indices(bool masked) const {
    const EntryNames names(text_, true);
    std::string text;
    for (int u = 0; u < batch_; ++u) {
      const std::string n = std::to_string(u);
      if (masked) text += "const bool ok" + n + " = i0 + " + n + " < end;\n";
      text += "const i64 pos" + n + " = " + (masked ? "ok" + n + " ? i0 + " + n + " : begin" : "i0 + " + n) + ";\n";
      if (names.needs_src) text += "const u32 src" + n + " = col[pos" + n + "];\n";
      if (names.needs_dst) text += "const u32 dst" + n + " = (u32)row;\n";
      if (names.needs_type) text += "const u32 typ" + n + " = edge_type ? edge_type[pos" + n + "] : 0;\n";
    }
    return text;
  }

  std::string pass(bool masked) const {
    std::string text = indices(masked) + text_.body(masked);
    for (int u = 0; u < batch_; ++u) text += first(u, masked);
    return text;
  }

  std::string wide_loop() const {
    return fill(R"(i64 i0 = begin + (i64)part * ${U};
for (; i0 + ${U} <= end; i0 += ${STEP}) {
${FULL}}
${REST})",
                {{"U", batch_},
                 {"STEP", batch_ * groups_of_row()},
                 {"FULL", indent(pass(false), 1)},
                 {"REST", batch_ == 1 ? "" : "if (i0 < end) {\n" + indent(pass(true), 1) + "}\n"}});
  }

  std::string thin_loop() const {
    const std::string combine =
        gradient_ ? "sum[s] = group_sum<${L}>(sum[s], mask);\n"
                  : "const float high = group_max<${L}>(top[s], mask);\n"
                    "sum[s] = group_sum<${L}>(top[s] == high ? sum[s] : sum[s] * expf(top[s] - high), mask);\n"
                    "top[s] = high;\n";
    return fill(R"(for (i64 i0 = begin + part * ${L} + lane; i0 < end; i0 += ${STEP}) {
${BODY}}
#pragma unroll
for (int s = 0; s < ${S}; ++s) {
${C}}
)",
                {{"L", group_},
                 {"STEP", group_ * groups_of_row()},
                 {"BODY", indent(pass(false), 1)},
                 {"S", held_},
                 {"C", indent(fill(combine, {{"L", group_}}), 1)}});
  }

  // Returns the statements that combine the sums and maxima of the groups of a block, in the order
  // of the groups.
  std::string agree() const {
    const std::string own = gradient_
                                ? "if (${W}) sums[part * ${N} + j] = sum[s];\n"
                                : "if (${W}) { sums[part * ${N} + j] = sum[s]; tops[part * ${N} + j] = top[s]; }\n";
    const std::string all = gradient_ ? R"(float total = 0.0f;
for (int g = 0; g < ${G}; ++g) total += sums[g * ${N} + j];
sum[s] = total;
)"
                                      : R"(float high = tops[j];
for (int g = 1; g < ${G}; ++g) high = fmaxf(high, tops[g * ${N} + j]);
float total = 0.0f;
for (int g = 0; g < ${G}; ++g) total += sums[g * ${N} + j] > 0.0f ? sums[g * ${N} + j] * expf(tops[g * ${N} + j] - high) : 0.0f;
sum[s] = total;
top[s] = high;
)";
    const auto words = [&](const std::string& text) {
      return fill(text, {{"W", thin_ ? "lane == 0" : writes()}, {"N", width_}, {"G", groups()}});
    };
    const std::string loop =
        "#pragma unroll\nfor (int s = 0; s < " + std::to_string(held_) + "; ++s) {\n" + indent(place(), 1);
    return fill("float* sums = shared + ${AT};\nfloat* tops = sums + ${SIZE};\n(void)tops;\n",
                {{"AT", groups() * text_.shared_floats()}, {"SIZE", groups() * width_}}) +
           loop + indent(words(own), 1) + "}\n__syncthreads();\n" + loop + "  if (" + inside() + ") {\n" +
           indent(words(all), 2) + "  }\n}\n";
  }

  // Returns the text of the second walk. In short rows, every thread has entries of its own.
  std::string last() const {
    const std::string value = gradient_ ? "y[at] * (out[at] - sum[s])" : "expf(out[at] - top[s]) / sum[s]";
    const bool own = thin_ || width_ == 1;
    return std::string(block_  ? "__syncthreads();\n"
                       : thin_ ? ""
                               : "__syncwarp(mask);\n") +
           fill(R"(for (i64 i = begin + ${FIRST}; i < end; i += ${STEP}) {
#pragma unroll
  for (int s = 0; s < ${S}; ++s) {
${PLACE}    const i64 at = i * ${W} + j;
    if (${IN}) out[at] = ${X};
  }
}
)",
                {{"FIRST", own ? "part * " + std::to_string(group_) + " + lane" : "part"},
                 {"STEP", own ? group_ * groups_of_row() : groups_of_row()},
                 {"S", held_},
                 {"PLACE", indent(place(), 2)},
                 {"W", width_},
                 {"IN", inside()},
                 {"X", value}});
  }

  const RowProgram& program_;
  int value_;
  bool gradient_;
  bool block_;
  int threads_;
  int64_t width_;
  bool thin_;
  int most_;  // most elements of a vector
  int lanes_, group_, batch_;
  ProgramText text_;
  int held_;
};

}  // namespace

RowSource softmax_source(const RowProgram& program, int value, int64_t mean_degree, bool whole_block) {
  return SoftmaxText(program, value, false, mean_degree, whole_block).make();
}

RowSource softmax_grad_source(const RowProgram& program, int value, int64_t mean_degree, bool whole_block) {
  return SoftmaxText(program, value, true, mean_degree, whole_block).make();
}

}  // namespace nacre::cuda
