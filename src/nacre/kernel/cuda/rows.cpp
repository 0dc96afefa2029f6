#include "nacre/kernel/cuda/rows.h"

#include "nacre/kernel/cuda/rows_text.h"

namespace nacre::cuda {

int64_t widest(const RowProgram& program) {
  int64_t w = 1;
  for (const int64_t x : program.widths) w = std::max(w, x);
  return w;
}

Entry& add_operands(Entry& entry, const RowProgram& program, const char* name) {
  for (size_t i = 0; i < program.operands.size(); ++i) {
    entry.operand(program.is_narrow(static_cast<int>(i)) ? "u16*" : "float*", name + std::to_string(i));
  }
  return entry;
}

int entry_lanes(int64_t mean_degree) {
  int lanes = 4;
  while (lanes < 32 && lanes < mean_degree) lanes *= 2;
  return lanes;
}

int batch_for(const RowProgram& program, int lanes, int vector, MicroOp common) {
  int64_t held = 1;
  for (const Micro& m : program.code) {
    if (m.op >= MicroOp::load && m.op < MicroOp::load_row0 && m.op != common)
      held += held_of(program.widths[m.out], lanes, vector);
  }
  int batch = 8;
  while (batch > 1 && (batch * (held - 1) > 72 || batch > lanes)) batch /= 2;
  return has_products(program) ? 1 : batch;
}

EntryNames::EntryNames(const ProgramText& text, bool at_dst)
    : rows_at_dst(at_dst),
      needs_src(text.uses(MicroOp::load_src)),
      needs_dst(text.uses(MicroOp::load_dst) || text.uses(MicroOp::take_max)),
      needs_type(text.uses_type()) {}

std::string array(const std::string& name, int size, const std::string& value) {
  if (size == 0) return "float " + name + " = " + value + ";\n";
  return fill("float ${N}[${S}];\n#pragma unroll\nfor (int s = 0; s < ${S}; ++s) ${N}[s] = ${V};\n",
              {{"N", name}, {"S", size}, {"V", value}});
}

namespace {

constexpr int kRowThreads = 256;

Entry entry_of(const char* name) { return Entry(name, std::to_string(kRowThreads)); }

// Writes a kernel in which a group of threads has one row, the one at `position` (an expression of
// unit0). `indices` declares what the program reads besides pos0. If `listed`, results are written
// to row unit0 instead of pos0.
RowSource rowwise(const RowProgram& program, Entry entry, const std::string& indices, const char* position = "unit0",
                  bool listed = false) {
  const int most = vector_limit(program);
  const int lanes = widest(program) <= kThin && !has_products(program) ? 1 : lanes_for(widest(program), most);
  ProgramText text(program, {.lanes = lanes, .vector = most, .store_row = listed ? "unit" : "pos"});
  const int groups = kRowThreads / lanes;
  RowSource out;
  out.per_block = groups;
  add_operands(entry, program, "p");
  const std::string body = fill(R"(
${ENTRY} {
  const int lane = threadIdx.x % ${L};
  const u32 mask = group_mask<${L}>();
  extern __shared__ float shared[];
  float* sh = shared + threadIdx.x / ${L} * ${SH};
  const i64 unit0 = (i64)blockIdx.x * ${G} + threadIdx.x / ${L};
  if (unit0 >= count) return;
  const i64 pos0 = ${POS};
${INDICES}${SETUP}${BODY}}
)",
                                {{"ENTRY", kEntryMark},
                                 {"L", lanes},
                                 {"SH", text.shared_floats()},
                                 {"G", groups},
                                 {"POS", position},
                                 {"INDICES", indent(indices, 1)},
                                 {"SETUP", indent(text.setup(), 1)},
                                 {"BODY", indent(text.body(false), 1)}});
  out.source = entry.source(prelude() + body, kRowThreads, int64_t{4} * groups * text.shared_floats());
  return out;
}

std::string edge_indices(const RowProgram& program) {
  const EntryNames names(ProgramText(program, {}), true);
  std::string text;
  if (names.needs_src) text += "const u32 src0 = col[pos0];\n";
  if (names.needs_dst) text += "const u32 dst0 = edge_dst[pos0];\n";
  if (names.needs_type) text += "const u32 typ0 = edge_type ? edge_type[pos0] : 0;\n";
  return text;
}

}  // namespace

RowSource map_source(const RowProgram& program) {
  return rowwise(program, entry_of("map_rows").takes<MapParams>(), "", "first + unit0");
}

RowSource map_edges_source(const RowProgram& program) {
  return rowwise(program, entry_of("map_edges").takes<MapEdgesParams>(), edge_indices(program), "first + unit0");
}

RowSource map_listed_edges_source(const RowProgram& program) {
  return rowwise(program, entry_of("map_listed_edges").takes<MapListedEdgesParams>(), edge_indices(program),
                 "order[first + unit0]", true);
}

RowSource column_sum_source(const RowProgram& program, int value) {
  const int64_t width = program.widths[value];
  const int most = vector_limit(program);
  const int lanes = widest(program) <= kThin && !has_products(program) ? 1 : lanes_for(widest(program), most);
  ProgramText text(program, {.lanes = lanes, .vector = most});
  const int groups = kRowThreads / lanes;
  const int held = held_of(width, lanes, most);
  const int64_t row = std::max<int64_t>(width, text.shared_floats());
  RowSource out;
  out.per_block = groups;
  Entry entry = entry_of("column_sum");
  add_operands(entry.takes<ColumnSumParams>(), program, "p");
  const std::string body = fill(
      R"(
${ENTRY} {
  const int lane = threadIdx.x % ${L};
  const u32 mask = group_mask<${L}>();
  extern __shared__ float shared[];
  float* sh = shared + threadIdx.x / ${L} * ${SH};
${SETUP}${ACC}  for (i64 pos0 = (i64)blockIdx.x * ${G} + threadIdx.x / ${L}; pos0 < count; pos0 += (i64)gridDim.x * ${G}) {
${INDICES}${BODY}#pragma unroll
    for (int s = 0; s < ${S}; ++s) acc[s] += ${V};
  }
  __syncwarp(mask);
  // The sums of the groups of a block are added in order. column_total() then adds those of the blocks in order.
#pragma unroll
  for (int s = 0; s < ${S}; ++s) {
    const int j = ${AT};
    if (j < ${W}) sh[j] = acc[s];
  }
  __syncthreads();
  for (int j = threadIdx.x; j < ${W}; j += ${T}) {
    float sum = 0.0f;
    for (int g = 0; g < ${G}; ++g) sum += shared[g * ${SH} + j];
    partials[(i64)blockIdx.x * ${W} + j] = sum;
  }
}
)",
      {{"T", kRowThreads},
       {"ENTRY", kEntryMark},
       {"L", lanes},
       {"SH", row},
       {"SETUP", indent(text.setup(), 1)},
       {"ACC", indent(array("acc", held, "0.0f"), 1)},
       {"G", groups},
       {"INDICES", program.domain.kind == SpaceKind::edge ? indent(edge_indices(program), 2) : ""},
       {"BODY", indent(text.body(false), 2)},
       {"S", held},
       {"V", text.own_element(value, 0, "s")},
       {"W", width},
       {"AT", width == 1 ? std::string(lanes == 1 ? "0" : "lane")
                         : fill("(s / ${V} * ${L} + ${lane}) * ${V} + s % ${V}",
                                {{"V", vector_of(width, most)}, {"L", lanes}, {"lane", lanes == 1 ? "0" : "lane"}})}});
  out.source = entry.source(prelude() + body, kRowThreads, int64_t{4} * groups * row);
  return out;
}

RowSource column_total_source(int64_t width) {
  const std::string body = fill(R"(
${ENTRY} {
  __shared__ float warps[8];
  float sum = 0.0f;
  for (i64 b = threadIdx.x; b < blocks; b += 256) sum += partials[b * ${W} + blockIdx.x];
  sum = group_sum<32>(sum, 0xffffffffu);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; ++w) sum += warps[w];
    out[blockIdx.x] = sum;
  }
}
)",
                                {{"ENTRY", kEntryMark}, {"W", width}});
  return {entry_of("column_total").takes<ColumnTotalParams>().source(prelude() + body, kRowThreads), 1};
}

}  // namespace nacre::cuda
