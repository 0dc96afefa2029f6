// Row programs reduced over the edges of each row (see rows.h). A group of threads takes one unit
// of work: a listed segment (a row or a piece of a long one) or, after those, a row by its number.
// The group has `walkers` times `lanes` threads. Each walker visits every walkers-th edge with
// `lanes` threads, which share the elements of a row, and the sums of the walkers are added at the
// end. The group that is the last to finish a piece of a row adds the pieces in their order, so the
// result does not depend on which group was last.
#include "nacre/base/error.h"
#include "nacre/kernel/cuda/rows_text.h"

namespace nacre::cuda {
namespace {

constexpr int kReduceThreads = 128;
constexpr int64_t kUnit = 4;  // overlapping tiles begin at multiples of this many columns

std::string structs_text() { return "\n" + struct_text<reduction::Segment>() + struct_text<reduction::SplitRow>(); }

// Returns the number of threads for the elements of a row: as many as there are vectors, or fewer
// if many threads would be idle.
int lanes_of_reduction(int64_t width, int most) {
  const int v = vector_of(width, most);
  const int64_t vectors = (width + v - 1) / v;
  int best = lanes_for(width, most);
  const auto padded = [&](int lanes) { return (vectors + lanes - 1) / lanes * lanes; };
  // Fewer lanes are tried only as long as they read at least 64 bytes of a row at once.
  for (int lanes = best / 2; lanes >= 1 && lanes * v >= 4 * most; lanes /= 2) {
    if (static_cast<double>(padded(lanes)) < 0.87 * static_cast<double>(padded(best))) best = lanes;
  }
  return best;
}

bool is_thin(const ReduceSpec& spec) {
  return widest(*spec.program) <= kThin && !has_products(*spec.program) &&
         (spec.tail == nullptr || (widest(*spec.tail) <= 2 * kThin && !has_products(*spec.tail)));
}

int vector_of_spec(const ReduceSpec& spec) {
  return std::max(vector_limit(*spec.program), spec.tail == nullptr ? 4 : vector_limit(*spec.tail));
}

int lanes_of(const ReduceSpec& spec) {
  if (is_thin(spec)) return 1;
  const int most = vector_of_spec(spec);
  const int64_t width = std::max(widest(*spec.program), spec.tail == nullptr ? 1 : widest(*spec.tail));
  return width == spec.program->widths[spec.value] ? lanes_of_reduction(width, most) : lanes_for(width, most);
}

MicroOp common(const ReduceSpec& spec) { return spec.side.rows_at_dst ? MicroOp::load_dst : MicroOp::load_src; }

// Returns the floats between rows of operand 0 if it is gathered in tiles; otherwise 0.
int64_t gathered_stride(const ReduceSpec& spec) {
  if (spec.tiles == 1) return 0;
  return spec.tile_pitch > 0 ? spec.tiles * spec.tile_pitch : spec.row_width;
}

// Computes the columns of tiles: tile t begins at column t · units / gaps · unit, and the last tile
// ends with the row.
struct TileColumns {
  int64_t units, gaps = 1, unit = 1;
  explicit TileColumns(const ReduceSpec& spec) : units(spec.program->widths[spec.value]) {
    const int64_t width = units;
    if (width * spec.tiles == spec.row_width) return;
    NACRE_CHECK(width % kUnit == 0 && spec.row_width % kUnit == 0,
                "overlapping tiles need widths that are multiples of 4");
    units = (spec.row_width - width) / kUnit;
    gaps = spec.tiles - 1;
    unit = kUnit;
  }
  int64_t of(int64_t tile) const { return tile * units / gaps * unit; }
  std::string text() const {
    return fill("tile * ${N} / ${GAPS} * ${UNIT}", {{"N", units}, {"GAPS", gaps}, {"UNIT", unit}});
  }
};

// Returns the number of walkers that have work in a row of mean length.
int walkers_for(const ReduceSpec& spec, int lanes, int batch) {
  int walkers = 1;
  while (lanes * walkers < 32 && int64_t{batch} * walkers < spec.side.mean_degree) walkers *= 2;
  return walkers;
}

class ReduceText {
 public:
  explicit ReduceText(const ReduceSpec& spec)
      : spec_(spec),
        width_(spec.program->widths[spec.value]),
        thin_(is_thin(spec)),
        most_(vector_of_spec(spec)),
        lanes_(lanes_of(spec)),
        batch_(spec.batch > 0 ? std::min(spec.batch, reduce_batch(spec)) : reduce_batch(spec)),
        walkers_(thin_ ? entry_lanes(spec.side.mean_degree) : walkers_for(spec, lanes_, reduce_batch(spec))),
        group_(lanes_ * walkers_),
        program_(*spec.program, {.lanes = lanes_,
                                 .batch = batch_,
                                 .vector = most_,
                                 .strides = {gathered_stride(spec)},
                                 .common = common(spec)}),
        tail_(spec.tail == nullptr ? empty_ : *spec.tail, {.lanes = lanes_,
                                                           .vector = most_,
                                                           .name = "t",
                                                           .operand = "q",
                                                           .shared_offset = program_.shared_floats(),
                                                           .root = "acc"}),
        held_(held_of(width_, lanes_, most_)) {
    NACRE_CHECK(spec.tiles == 1 || (spec.tail == nullptr && !spec.argmax && !thin_),
                "this reduction cannot work in tiles of columns");
    NACRE_CHECK(spec.tiles > 1 || spec.tile_pitch == 0, "the rows are a copy in tiles, but the reduction has one tile");
  }

  RowSource make() const {
    Entry entry(max() ? "reduce_max" : "reduce_sum", bounds());
    add_operands(entry.takes<ReduceParams>(), *spec_.program, "p");
    if (spec_.tail != nullptr) add_operands(entry, *spec_.tail, "q");
    RowSource out;
    out.per_block = kReduceThreads / group_;
    const std::string text = fill(R"(
typedef ${OFFSET} Offset;
typedef ${OUT} Out;
${ENTRY} {
  const int member = threadIdx.x % ${G};
  const int lane = member % ${L};
  const int walker = member / ${L};
  const u32 group = group_mask<${G}>();
  const u32 mask = group_mask<${L}>();
  extern __shared__ float shared[];
  float* sh = shared + threadIdx.x / ${L} * ${SH};
  i64 unit = (i64)blockIdx.x * ${PER} + threadIdx.x / ${G};
${TILE}  if (unit >= count) return;
  Segment seg;
  if (unit < listed) {
    seg = segments[unit];
  } else {
    unit += first_row - listed;
    seg.row = (u32)unit;
    seg.partial = seg.split = -1;
    seg.begin = offsets[unit];
    seg.end = offsets[unit + 1];
    if (seg.end - seg.begin > longest) return;  // `segments` holds the pieces of this long row
  }
  const i64 row = seg.row;
  i64 length = seg.end - seg.begin;
  const u32 vertex = ${VERTEX};
${SETUP}${ACC}${LOOP}${COMBINE}  if (seg.partial >= 0) {
${JOIN}  }
${FINISH}}
)",
                                  {{"ENTRY", kEntryMark},
                                   {"OFFSET", spec_.side.long_offsets ? "i64" : "u32"},
                                   {"OUT", spec_.narrow_out ? "u16" : "float"},
                                   {"G", group_},
                                   {"L", lanes_},
                                   {"SH", program_.shared_floats() + tail_.shared_floats()},
                                   {"PER", out.per_block},
                                   {"TILE", tile()},
                                   {"VERTEX", spec_.side.row_vertex ? "row_vertex[row]" : "(u32)row"},
                                   {"SETUP", indent(program_.setup() + tail_.setup() + before_loop(), 1)},
                                   {"ACC", indent(start(), 1)},
                                   {"LOOP", indent(thin_ ? thin_loop() : wide_loop(), 1)},
                                   {"COMBINE", indent(combine(), 1)},
                                   {"JOIN", indent(join(), 2)},
                                   {"FINISH", indent(finish(), 1)}});
    const int64_t shared = program_.shared_floats() + tail_.shared_floats();
    out.source = entry.source(prelude() + structs_text() + text, kReduceThreads,
                              int64_t{4} * shared * (kReduceThreads / lanes_));
    return out;
  }

 private:
  std::string bounds() const {
    return std::to_string(kReduceThreads) + (spec_.min_blocks > 0 ? ", " + std::to_string(spec_.min_blocks) : "");
  }
  std::string before_loop() const {
    const std::string text = program_.prologue();
    if (text.empty()) return "";
    return std::string("const u32 ") + (spec_.side.rows_at_dst ? "dst0" : "src0") + " = vertex;\n" + text;
  }

  bool max() const { return spec_.reduce == ReduceOp::max; }
  // Returns the floats between rows of the result.
  int64_t stride() const { return spec_.tiles > 1 ? spec_.row_width : width_; }

  std::string tile() const {
    if (spec_.tiles == 1) return "";
    const std::string from = spec_.tile_pitch > 0 ? "tile * " + std::to_string(spec_.tile_pitch) : "column";
    return fill(R"(  const i64 tile = unit / count;
  if (tile >= ${N}) return;
  unit -= tile * count;
  const i64 column = ${COLUMN};
  p0 += ${FROM};
  out += column;
  partials += tile * num_partials * ${W};
  counters += tile * num_partials;
)",
                {{"N", spec_.tiles}, {"W", width_}, {"COLUMN", TileColumns(spec_).text()}, {"FROM", from}});
  }

  // Returns the declarations of the accumulator (a scalar if the value has width 1) and, for
  // maxima, of the positions that the maxima came from.
  std::string start() const {
    const std::string zero = max() ? literal(-INFINITY) : "0.0f";
    std::string text = width_ == 1 ? "float acc = " + zero + ";\n" : array("acc", held_, zero);
    if (max()) {
      text += width_ == 1 ? "int best = -1;\n"
                          : fill("int best[${S}];\n#pragma unroll\nfor (int s = 0; s < ${S}; ++s) best[s] = -1;\n",
                                 {{"S", held_}});
    }
    return text;
  }

  std::string acc(const char* s) const { return width_ == 1 ? "acc" : std::string("acc[") + s + "]"; }
  std::string best(const char* s) const { return width_ == 1 ? "best" : std::string("best[") + s + "]"; }
  std::string loop() const { return "#pragma unroll\nfor (int s = 0; s < " + std::to_string(held_) + "; ++s) "; }

  std::string accumulate(bool masked) const {
    std::string text;
    for (int u = 0; u < batch_; ++u) {
      const std::string value = program_.own_element(spec_.value, u, "s");
      const std::string n = std::to_string(u);
      if (max()) {
        // The entries are in the order of their positions, so the first of equal values stays.
        text += loop() + "if (" + std::string(masked ? "ok" + n + " && " : "") + "(" + value + " > " + acc("s") +
                " || " + best("s") + " < 0)) { " + acc("s") + " = " + value + "; " + best("s") + " = (int)pos" + n +
                "; }\n";
      } else {
        text += loop() + acc("s") + " += " + (masked ? "ok" + n + " ? " + value + " : 0.0f" : value) + ";\n";
      }
    }
    return text;
  }

  bool needs_position() const {
    return max() || program_.uses(MicroOp::load) || program_.uses(MicroOp::take_max) ||
           program_.uses(MicroOp::dropout) || program_.uses(MicroOp::store);
  }

  // Returns the declarations of the indices of each row u of the batch, which are taken from the
  // entries that the threads of the group hold.
  std::string indices(bool masked) const {
    const EntryNames names(program_, spec_.side.rows_at_dst);
    std::string text;
    for (int u = 0; u < batch_; ++u) {
      const std::string n = std::to_string(u);
      const std::string at = "at" + n;
      text += fill("const int ${AT} = k + ${STEP} + walker;\n", {{"AT", at}, {"STEP", u * walkers_}});
      const auto from = [&](const char* held) {
        return fill("__shfl_sync(group, ${H}, ${AT}, ${G})", {{"H", held}, {"AT", at}, {"G", group_}});
      };
      if (masked) text += "const bool ok" + n + " = " + at + " < n;\n";
      const std::string other = from("my_col");
      if (names.needs_src) text += "const u32 src" + n + " = " + (spec_.side.rows_at_dst ? other : "vertex") + ";\n";
      if (names.needs_dst) text += "const u32 dst" + n + " = " + (spec_.side.rows_at_dst ? "vertex" : other) + ";\n";
      if (needs_position())
        text += "const i64 pos" + n + " = " + (spec_.side.edge_ids ? from("my_id") : "i0 + " + at) + ";\n";
      if (names.needs_type) text += "const u32 typ" + n + " = " + from("my_type") + ";\n";
    }
    return text;
  }

  // Returns the loop over the entries of a segment. The threads of a group hold the next entries,
  // and each walker visits a few of their rows together.
  std::string wide_loop() const {
    const EntryNames names(program_, spec_.side.rows_at_dst);
    const bool needs_id = (needs_position() || names.needs_type) && spec_.side.edge_ids;
    std::string held = "const u32 my_col = member < n ? col[i0 + member] : 0;\n";
    if (needs_id) held += "const u32 my_id = member < n ? edge_id[i0 + member] : 0;\n";
    if (names.needs_type)
      held += std::string("const u32 my_type = edge_type && member < n ? edge_type[") +
              (needs_id ? "my_id" : "i0 + member") + "] : 0;\n";
    return fill(R"(for (i64 i0 = seg.begin; i0 < seg.end; i0 += ${G}) {
  const int n = (int)min((i64)${G}, seg.end - i0);
${HELD}  int k = 0;
  for (; k + ${U} <= n; k += ${U}) {
${FULL}  }
${REST}}
)",
                {{"G", group_},
                 {"HELD", indent(held, 1)},
                 {"U", batch_ * walkers_},
                 {"FULL", indent(indices(false) + program_.body(false) + accumulate(false), 2)},
                 {"REST", batch_ * walkers_ == 1
                              ? ""
                              : "  if (k < n) {\n" + indent(indices(true) + program_.body(true) + accumulate(true), 2) +
                                    "  }\n"}});
  }

  // Returns the loop over the entries of a segment if a thread holds a whole row (is_thin()). Every
  // thread then visits entries of its own.
  std::string thin_loop() const {
    const EntryNames names(program_, spec_.side.rows_at_dst);
    std::string text = "const u32 other = col[i];\n";
    text += "const i64 pos0 = " + std::string(spec_.side.edge_ids ? "edge_id[i]" : "i") + ";\n";
    if (names.needs_src)
      text += std::string("const u32 src0 = ") + (spec_.side.rows_at_dst ? "other" : "vertex") + ";\n";
    if (names.needs_dst)
      text += std::string("const u32 dst0 = ") + (spec_.side.rows_at_dst ? "vertex" : "other") + ";\n";
    if (names.needs_type) text += "const u32 typ0 = edge_type ? edge_type[pos0] : 0;\n";
    return fill("for (i64 i = seg.begin + walker; i < seg.end; i += ${S}) {\n${BODY}}\n",
                {{"S", walkers_}, {"BODY", indent(text + program_.body(false) + accumulate(false), 1)}});
  }

  // Returns the statements that add the sums of the walkers of the group. Every thread then has the
  // sum.
  std::string combine() const {
    if (walkers_ == 1) return "";
    const std::string add = max() ? R"(const float x = __shfl_xor_sync(group, ${A}, d);
const int at = __shfl_xor_sync(group, ${B}, d);
if (at >= 0 && (${B} < 0 || x > ${A} || (x == ${A} && at < ${B}))) { ${A} = x; ${B} = at; }
)"
                                  : "${A} += __shfl_xor_sync(group, ${A}, d);\n";
    return fill(
        "#pragma unroll\nfor (int d = ${L}; d < ${G}; d *= 2) {\n#pragma unroll\n  for (int s = 0; s < ${S}; ++s) "
        "{\n${X}  }\n}\n",
        {{"L", lanes_}, {"G", group_}, {"S", held_}, {"X", indent(fill(add, {{"A", acc("s")}, {"B", best("s")}}), 2)}});
  }

  // Returns the declaration of j, the column of element s of the thread.
  std::string place() const {
    if (width_ == 1) return "const int j = 0;\n";
    return fill("const int j = (s / ${V} * ${L} + ${lane}) * ${V} + s % ${V};\n",
                {{"V", vector_of(width_, most_)}, {"L", lanes_}, {"lane", lanes_ == 1 ? "0" : "lane"}});
  }
  std::string writes() const { return width_ == 1 ? "member == 0" : "walker == 0 && j < " + std::to_string(width_); }
  std::string each(const std::string& statement) const {
    return fill("#pragma unroll\nfor (int s = 0; s < ${S}; ++s) {\n${P}${X}}\n",
                {{"S", held_}, {"P", indent(place(), 1)}, {"X", indent(statement, 1)}});
  }

  std::string join() const {
    const std::string w = std::to_string(width_);
    const std::string at = "[(i64)seg.partial * " + w + " + j]";
    std::string keep = "partials" + at + " = " + acc("s") + ";";
    if (max()) keep += " ((int*)partials + num_partials * " + w + ")" + at + " = " + best("s") + ";";
    const std::string inside = width_ == 1 ? "true" : "j < " + w;
    const std::string add =
        !max() ? "if (" + inside + ") " + acc("s") + " += __ldcg(partials + (i64)piece * " + w + " + j);\n"
               : fill(R"(if (${IN}) {
  const float x = __ldcg(partials + (i64)piece * ${W} + j);
  const int at = __ldcg((const int*)partials + (num_partials + piece) * ${W} + j);
  if (at >= 0 && (${B} < 0 || x > ${A})) { ${A} = x; ${B} = at; }
}
)",
                      {{"IN", inside}, {"W", w}, {"A", acc("s")}, {"B", best("s")}});
    const std::string clear = loop() + acc("s") + " = " + (max() ? literal(-INFINITY) : "0.0f") + ";\n" +
                              (max() ? loop() + best("s") + " = -1;\n" : "");
    return each("if (" + writes() + ") { " + keep + " }\n") +
           fill(R"(__threadfence();
__syncwarp(group);
const SplitRow split = split_rows[seg.split];
int last = 0;
if (member == 0) {
  last = atomicAdd(counters + seg.split, 1) == split.count - 1;
  if (last) counters[seg.split] = 0;
}
if (!__shfl_sync(group, last, 0, ${G})) return;
__threadfence();
length = split.length;
${CLEAR}#pragma unroll 4
for (int piece = split.first; piece < split.first + split.count; ++piece) {
${ADD}}
)",
                {{"G", group_}, {"CLEAR", clear}, {"ADD", indent(each(add), 1)}});
  }

  // Returns the statements that write a row and run its tail. Only the first walker does so,
  // because a tail may update rows in place.
  std::string finish() const {
    std::string text;
    if (spec_.reduce == ReduceOp::mean)
      text += "const float share = length > 0 ? 1.0f / (float)length : 0.0f;\n" + loop() + acc("s") + " *= share;\n";
    if (max()) text += loop() + "if (" + best("s") + " < 0) " + acc("s") + " = 0.0f;\n";
    if (walkers_ > 1) text += "if (walker > 0) return;\n";
    if (spec_.argmax)
      text += each("if (" + writes() + ") argmax[row * " + std::to_string(width_) + " + j] = " + best("s") + ";\n");
    if (spec_.store) text += store_rows();
    if (spec_.tail == nullptr) return text;
    return text + "const i64 pos0 = row;\n" + tail_.body(false);
  }

  std::string store_rows() const {
    if (thin_ || width_ == 1)
      return each("if (" + writes() + ") out[row * " + std::to_string(stride()) + " + j] = " + acc("s") + ";\n");
    const int v = vector_of(width_, most_);
    return fill(R"(#pragma unroll
for (int c = 0; c < ${C}; ++c) {
  const int j = (c * ${L} + ${lane}) * ${V};
  if (j < ${W}) store<${V}>(out + row * ${LD} + j, acc + c * ${V});
}
)",
                {{"C", held_ / v},
                 {"L", lanes_},
                 {"lane", lanes_ == 1 ? "0" : "lane"},
                 {"V", v},
                 {"W", width_},
                 {"LD", stride()}});
  }

  const ReduceSpec& spec_;
  RowProgram empty_;
  int64_t width_;
  bool thin_;
  int most_;     // most elements of a vector
  int lanes_;    // threads that share the elements of a row
  int batch_;    // rows that a walker has in flight
  int walkers_;  // rows that are walked at the same time
  int group_;    // threads that share a segment
  ProgramText program_;
  ProgramText tail_;
  int held_;  // elements of a value that a thread holds
};

}  // namespace

int64_t tile_column(const ReduceSpec& spec, int tile) { return TileColumns(spec).of(tile); }

int reduce_batch(const ReduceSpec& spec) {
  return is_thin(spec) ? 1 : batch_for(*spec.program, lanes_of(spec), vector_of_spec(spec), common(spec));
}

// A group of 32 threads with few rows in flight waits longest for each entry, so shorter pieces are
// worth a group of their own.
int64_t reduce_shortest_piece(const ReduceSpec& spec) {
  const int lanes = lanes_of(spec), batch = reduce_batch(spec);
  if (lanes == 32 && batch < 8 && !has_products(*spec.program)) return int64_t{32} * batch;
  return int64_t{8} * std::max(lanes, 8);
}

RowSource reduce_source(const ReduceSpec& spec) { return ReduceText(spec).make(); }

}  // namespace nacre::cuda
