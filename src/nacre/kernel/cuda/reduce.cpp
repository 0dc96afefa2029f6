// Programs over the edges of each row, reduced (see rows.h).
#include "nacre/base/error.h"
#include "nacre/kernel/cuda/rows_text.h"

namespace nacre::cuda {
namespace {

using cpu::Reduce;

constexpr int kThreads = 128;

constexpr const char* kStructs = R"(
struct Segment { u32 row; int partial; i64 begin, end; };
struct SplitRow { u32 row; int first, count, length; };
)";

class ReduceText {
 public:
  explicit ReduceText(const ReduceSpec& spec)
      : spec_(spec),
        width_(spec.program->widths[static_cast<size_t>(spec.value)]),
        thin_(widest(*spec.program) <= kThin && !has_products(*spec.program) &&
              (spec.tail == nullptr || (widest(*spec.tail) <= 2 * kThin && !has_products(*spec.tail)))),
        lanes_(thin_ ? 1 : lanes_for(std::max(widest(*spec.program), spec.tail == nullptr ? 1 : widest(*spec.tail)))),
        group_(thin_ ? entry_lanes(spec.side.mean_degree) : lanes_),
        batch_(thin_ ? 1 : batch_for(*spec.program, lanes_)),
        program_(*spec.program, {.lanes = lanes_, .batch = batch_}),
        tail_(
            spec.tail == nullptr ? empty_ : *spec.tail,
            {.lanes = lanes_, .name = "t", .operand = "q", .shared_offset = program_.shared_floats(), .root = root()}),
        slots_(slots_of(width_, lanes_)) {}

  RowSource walk() const {
    const std::string name = max() ? "reduce_max" : "reduce_sum";
    return source(name, fill(R"(
extern "C" __global__ void __launch_bounds__(${T}) ${NAME}(
    const Segment* __restrict__ segments, i64 count, const u32* __restrict__ col, const u32* __restrict__ edge_id,
    const u16* __restrict__ edge_type, const u32* __restrict__ row_vertex, const u64* __restrict__ step, float* out,
    int* argmax, float* partials, i64 num_partials${P}${Q}) {
${HEAD}  const i64 unit = (i64)blockIdx.x * ${G} + threadIdx.x / ${L};
  if (unit >= count) return;
  const Segment seg = segments[unit];
  const i64 row = seg.row;
  const i64 length = seg.end - seg.begin;
  const u32 vertex = ${VERTEX};
${SETUP}${ACC}${LOOP}  if (seg.partial >= 0) {
${KEEP}    return;
  }
${FINISH}}
)",
                             {{"T", kThreads},
                              {"NAME", name},
                              {"P", operand_params(*spec_.program, "p")},
                              {"Q", spec_.tail == nullptr ? "" : operand_params(*spec_.tail, "q")},
                              {"HEAD", head()},
                              {"G", kThreads / group_},
                              {"L", group_},
                              {"VERTEX", spec_.side.row_vertex ? "row_vertex[row]" : "(u32)row"},
                              {"SETUP", indent(program_.setup() + tail_.setup(), 1)},
                              {"ACC", indent(start(), 1)},
                              {"LOOP", indent(thin_ ? thin_loop() : wide_loop(), 1)},
                              {"KEEP", indent(keep(), 2)},
                              {"FINISH", indent(finish(), 1)}}));
  }

  RowSource pieces() const {
    return source("reduce_pieces", fill(R"(
extern "C" __global__ void __launch_bounds__(${T}) reduce_pieces(
    const SplitRow* __restrict__ rows, i64 count, const u64* __restrict__ step, float* out, int* argmax,
    const float* partials, i64 num_partials${P}${Q}) {
${HEAD}  const i64 unit = (i64)blockIdx.x * ${G} + threadIdx.x / ${L};
  if (unit >= count) return;
  const SplitRow split = rows[unit];
  const i64 row = split.row;
  const i64 length = split.length;
${SETUP}${ACC}  for (int piece = split.first; piece < split.first + split.count; ++piece) {
${ADD}  }
${FINISH}}
)",
                                        {{"T", kThreads},
                                         {"P", operand_params(*spec_.program, "p")},
                                         {"Q", spec_.tail == nullptr ? "" : operand_params(*spec_.tail, "q")},
                                         {"HEAD", head()},
                                         {"G", kThreads / group_},
                                         {"L", group_},
                                         {"SETUP", indent(tail_.setup(), 1)},
                                         {"ACC", indent(start(), 1)},
                                         {"ADD", indent(add_piece(), 2)},
                                         {"FINISH", indent(finish(), 1)}}));
  }

 private:
  bool max() const { return spec_.reduce == Reduce::max; }
  static std::string root() { return "acc"; }

  RowSource source(const std::string& name, const std::string& text) const {
    RowSource out;
    out.per_block = kThreads / group_;
    const int64_t shared = program_.shared_floats() + tail_.shared_floats();
    out.source = {name, prelude() + kStructs + text, kThreads, int64_t{4} * shared * out.per_block};
    return out;
  }

  std::string head() const {
    return fill(R"(  const int lane = threadIdx.x % ${L};
  const u32 mask = group_mask<${L}>();
  extern __shared__ float shared[];
  float* sh = shared + threadIdx.x / ${L} * ${SH};
)",
                {{"L", group_}, {"SH", program_.shared_floats() + tail_.shared_floats()}});
  }

  // One accumulator array (a scalar for values of width 1), and for maxima where each came from.
  std::string start() const {
    std::string text = width_ == 1 ? "float acc = " + std::string(max() ? literal(-INFINITY) : "0.0f") + ";\n"
                                   : array("acc", slots_, max() ? literal(-INFINITY) : "0.0f");
    if (max()) {
      text += width_ == 1 ? "int best = -1;\n"
                          : fill("int best[${S}];\n#pragma unroll\nfor (int s = 0; s < ${S}; ++s) best[s] = -1;\n",
                                 {{"S", slots_}});
    }
    return text;
  }

  std::string acc(const char* s) const { return width_ == 1 ? "acc" : std::string("acc[") + s + "]"; }
  std::string best(const char* s) const { return width_ == 1 ? "best" : std::string("best[") + s + "]"; }

  std::string accumulate(bool masked) const {
    std::string text;
    for (int u = 0; u < batch_; ++u) {
      const std::string value = program_.slot(spec_.value, u, "s");
      const std::string n = std::to_string(u);
      std::string one;
      if (max()) {
        // Entries come in the order of their positions: the first of equal ones stays.
        one = "if (" + std::string(masked ? "ok" + n + " && " : "") + "(" + value + " > " + acc("s") + " || " +
              best("s") + " < 0)) { " + acc("s") + " = " + value + "; " + best("s") + " = (int)pos" + n + "; }";
      } else {
        one = acc("s") + " += " + (masked ? "ok" + n + " ? " + value + " : 0.0f" : value) + ";";
      }
      text += "#pragma unroll\nfor (int s = 0; s < " + std::to_string(slots_) + "; ++s) " + one + "\n";
    }
    return text;
  }

  // Indices of batch row u out of what the lanes hold.
  std::string indices(bool masked) const {
    const EntryNames names(program_, spec_.side.rows_at_dst);
    std::string text;
    for (int u = 0; u < batch_; ++u) {
      const std::string n = std::to_string(u);
      const auto from = [&](const char* held) {
        return fill("__shfl_sync(mask, ${H}, k + ${U}, ${L})", {{"H", held}, {"U", n}, {"L", group_}});
      };
      if (masked) text += "const bool ok" + n + " = k + " + n + " < n;\n";
      const std::string other = from("my_col");
      if (names.needs_src) text += "const u32 src" + n + " = " + (spec_.side.rows_at_dst ? other : "vertex") + ";\n";
      if (names.needs_dst) text += "const u32 dst" + n + " = " + (spec_.side.rows_at_dst ? "vertex" : other) + ";\n";
      if (needs_position())
        text += "const i64 pos" + n + " = " + (spec_.side.edge_ids ? from("my_id") : "i0 + k + " + n) + ";\n";
      if (names.needs_type) text += "const u32 typ" + n + " = " + from("my_type") + ";\n";
    }
    return text;
  }

  bool needs_position() const {
    return max() || program_.uses(MicroOp::load) || program_.uses(MicroOp::take_max) ||
           program_.uses(MicroOp::dropout) || program_.uses(MicroOp::store);
  }

  // The lanes of a group hold the next entries; a few rows at a time are then walked together.
  std::string wide_loop() const {
    const EntryNames names(program_, spec_.side.rows_at_dst);
    std::string held;
    const bool needs_id = (needs_position() || names.needs_type) && spec_.side.edge_ids;
    held += "const u32 my_col = lane < n ? col[i0 + lane] : 0;\n";
    if (needs_id) held += "const u32 my_id = lane < n ? edge_id[i0 + lane] : 0;\n";
    if (names.needs_type)
      held += std::string("const u32 my_type = edge_type && lane < n ? edge_type[") +
              (needs_id ? "my_id" : "i0 + lane") + "] : 0;\n";
    return fill(
        R"(for (i64 i0 = seg.begin; i0 < seg.end; i0 += ${L}) {
  const int n = (int)min((i64)${L}, seg.end - i0);
${HELD}  int k = 0;
  for (; k + ${U} <= n; k += ${U}) {
${FULL}  }
${REST}}
)",
        {{"L", group_},
         {"HELD", indent(held, 1)},
         {"U", batch_},
         {"FULL", indent(indices(false) + program_.body(false) + accumulate(false), 2)},
         {"REST", batch_ == 1 ? ""
                              : "  if (k < n) {\n" + indent(indices(true) + program_.body(true) + accumulate(true), 2) +
                                    "  }\n"}});
  }

  // Every lane walks entries of its own; the group then adds up.
  std::string thin_loop() const {
    const EntryNames names(program_, spec_.side.rows_at_dst);
    std::string text = "const u32 other = col[i];\n";
    text += "const i64 pos0 = " + std::string(spec_.side.edge_ids ? "edge_id[i]" : "i") + ";\n";
    if (names.needs_src)
      text += std::string("const u32 src0 = ") + (spec_.side.rows_at_dst ? "other" : "vertex") + ";\n";
    if (names.needs_dst)
      text += std::string("const u32 dst0 = ") + (spec_.side.rows_at_dst ? "vertex" : "other") + ";\n";
    if (names.needs_type) text += "const u32 typ0 = edge_type ? edge_type[pos0] : 0;\n";
    return fill(
        R"(for (i64 i = seg.begin + lane; i < seg.end; i += ${L}) {
${BODY}}
#pragma unroll
for (int s = 0; s < ${S}; ++s) {
${COMBINE}}
)",
        {{"L", group_},
         {"BODY", indent(text + program_.body(false) + accumulate(false), 1)},
         {"S", slots_},
         {"COMBINE", indent(max() ? fill(R"(#pragma unroll
for (int d = ${L} / 2; d > 0; d /= 2) {
  const float x = __shfl_xor_sync(mask, ${A}, d);
  const int at = __shfl_xor_sync(mask, ${B}, d);
  if (at >= 0 && (${B} < 0 || x > ${A} || (x == ${A} && at < ${B}))) { ${A} = x; ${B} = at; }
}
)",
                                         {{"L", group_}, {"A", acc("s")}, {"B", best("s")}})
                                  : fill("${A} = group_sum<${L}>(${A}, mask);\n", {{"A", acc("s")}, {"L", group_}}),
                            1)}});
  }

  // Element of slot s, and whether this thread is the one to write it.
  std::string place() const {
    if (width_ == 1) return "const int j = 0;\n";
    return fill("const int j = (s / ${V} * ${L} + ${lane}) * ${V} + s % ${V};\n",
                {{"V", vector_of(width_)}, {"L", lanes_}, {"lane", lanes_ == 1 ? "0" : "lane"}});
  }
  std::string writes() const {
    if (thin_ || width_ == 1) return "lane == 0";
    return "j < " + std::to_string(width_);
  }

  std::string each(const std::string& statement) const {
    return fill("#pragma unroll\nfor (int s = 0; s < ${S}; ++s) {\n${P}${X}}\n",
                {{"S", slots_}, {"P", indent(place(), 1)}, {"X", indent(statement, 1)}});
  }

  std::string keep() const {
    const std::string at = "[(i64)seg.partial * " + std::to_string(width_) + " + j]";
    std::string text = "partials" + at + " = " + acc("s") + ";";
    if (max())
      text += " ((int*)partials + num_partials * " + std::to_string(width_) + ")" + at + " = " + best("s") + ";";
    return each("if (" + writes() + ") { " + text + " }\n");
  }

  std::string add_piece() const {
    const std::string w = std::to_string(width_);
    const std::string inside = width_ == 1 || thin_ ? "true" : "j < " + w;
    if (!max()) return each("if (" + inside + ") " + acc("s") + " += partials[(i64)piece * " + w + " + j];\n");
    return each(fill(R"(if (${IN}) {
  const float x = partials[(i64)piece * ${W} + j];
  const int at = ((const int*)partials + num_partials * ${W})[(i64)piece * ${W} + j];
  if (at >= 0 && (${B} < 0 || x > ${A})) { ${A} = x; ${B} = at; }
}
)",
                     {{"IN", inside}, {"W", w}, {"A", acc("s")}, {"B", best("s")}}));
  }

  std::string finish() const {
    std::string text;
    const std::string loop = "#pragma unroll\nfor (int s = 0; s < " + std::to_string(slots_) + "; ++s) ";
    if (spec_.reduce == Reduce::mean)
      text += "const float share = length > 0 ? 1.0f / (float)length : 0.0f;\n" + loop + acc("s") + " *= share;\n";
    if (max()) text += loop + "if (" + best("s") + " < 0) " + acc("s") + " = 0.0f;\n";
    if (spec_.argmax)
      text += each("if (" + writes() + ") argmax[row * " + std::to_string(width_) + " + j] = " + best("s") + ";\n");
    if (spec_.store) text += store_rows();
    if (spec_.tail == nullptr) return text;
    std::string tail = "const i64 pos0 = row;\n" + tail_.body(false);
    return text + (thin_ ? "if (lane == 0) {\n" + indent(tail, 1) + "}\n" : tail);
  }

  std::string store_rows() const {
    if (thin_ || width_ == 1)
      return each("if (" + writes() + ") out[row * " + std::to_string(width_) + " + j] = " + acc("s") + ";\n");
    const int v = vector_of(width_);
    return fill(R"(#pragma unroll
for (int c = 0; c < ${C}; ++c) {
  const int j = (c * ${L} + lane) * ${V};
  if (j < ${W}) store<${V}>(out + row * ${W} + j, acc + c * ${V});
}
)",
                {{"C", slots_ / v}, {"L", lanes_}, {"V", v}, {"W", width_}});
  }

  const ReduceSpec& spec_;
  RowProgram empty_;
  int64_t width_;
  bool thin_;
  int lanes_;  // threads that share a row's elements
  int group_;  // threads that share a row
  int batch_;
  ProgramText program_;
  ProgramText tail_;
  int slots_;
};

}  // namespace

RowSource reduce_source(const ReduceSpec& spec) { return ReduceText(spec).walk(); }

RowSource reduce_pieces_source(const ReduceSpec& spec) { return ReduceText(spec).pieces(); }

}  // namespace nacre::cuda
