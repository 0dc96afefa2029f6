// Plan: what will be computed, by which kernels, in which order. A plan is a value: it prints, serialises and loads
// again, and it touches no memory of the graph. The engine turns it into steps.
//
// A kernel computes one root node. Nodes it reads that live on edges and are cheap are recomputed inside it (inlined)
// instead of being stored, so no edge-wise feature tensor exists. Row-wise nodes that follow the root run as its tail
// while the rows are still in cache.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "nacre/cost/device_traits.h"
#include "nacre/dfg/dfg.h"
#include "nacre/dfg/node_vector.h"
#include "nacre/gtask/table.h"
#include "nacre/kernel/blocks.h"
#include "nacre/kernel/direction.h"
#include "nacre/kernel/program.h"
#include "nacre/kernel/tail_product.h"
#include "nacre/plan/sites.h"

namespace nacre {

enum class KernelKind : uint8_t {
  map,                // a row program over vertices, types or parameters
  map_edges,          // a row program over edges
  reduce,             // edge program, reduced to rows (sum, mean, max)
  spmm,               // Σ weight · x over neighbours
  matmul,             // x·W, or g·Wᵀ
  weight_grad,        // xᵀ·g
  typed_reduce,       // Σ scale · x·W[type] over neighbours
  typed_weight_grad,  // Σ scale · xᵀ·g per type
  typed_rows,         // rows·W[type] on pairs or edges
  typed_rows_grad,    // Σ xᵀ·g per type on pairs or edges
  gtask,              // any program over the edges of gTasks, reduced to rows or stored
  gtask_grad,         // Σ xᵀ·g over edges, both sides from a program over gTasks
  softmax,            // edge softmax
  softmax_grad,
  column_sum,
  lstm,
  lstm_grad,        // both gradients in one pass
  lstm_gates_grad,  // gradients of kept gates, and the states before them
  loss,             // nll, bce and their gradients
  moments,          // column_moments and standardize_grad
  copy,             // whole rows as they are: joined, cut, or with rows of zeros after them
  reference,        // the plain implementation of one node
  // Kinds behind this line run on the host, also in plans for a GPU, until family_of() in
  // engine/gpu/gpu_backend.cpp names them.
};
// The names of the kinds, in their order.
inline constexpr std::string_view kKernelNames[] = {
    "map",        "map_edges",       "reduce",       "spmm",
    "matmul",     "weight_grad",     "typed_reduce", "typed_weight_grad",
    "typed_rows", "typed_rows_grad", "gtask",        "gtask_grad",
    "softmax",    "softmax_grad",    "column_sum",   "lstm",
    "lstm_grad",  "lstm_gates_grad", "loss",         "moments",
    "copy",       "reference",
};
std::string_view kernel_name(KernelKind kind);
// Runs an LSTM over the edges of each destination, forwards or backwards.
bool is_sequence(KernelKind kind);
// How a plan file or a search names the table of a kernel: "lstm@layers.0.lstm.weight_hh".
struct Kernel;
std::string kernel_key(const Dfg& dfg, const Kernel& kernel);
// Returns the layer whose block a kernel walks: the block of the edges or pairs that its root reads, or of its root.
int walked_layer(const Dfg& dfg, const Kernel& kernel);

// A decision about how a kernel runs on the device that its plan was made for (variants.h).
struct VariantChoice {
  std::string decision;  // what is decided, for example "typed rows"
  std::string variant;   // the variant taken; empty: known only after the device has timed the variants
  std::string why;       // why each other variant was not taken
  friend bool operator==(const VariantChoice&, const VariantChoice&) = default;
};

struct Kernel {
  KernelKind kind = KernelKind::reference;
  NodeRef root = -1;
  NodeRef second = -1;          // a second root computed in the same pass (argmax; lstm_grad_w; lstm_gates), or -1
  std::vector<NodeRef> nodes;   // every DFG node computed here: roots, inlined nodes, tail
  std::vector<NodeRef> reads;   // stored values read
  std::vector<NodeRef> writes;  // stored values written
  std::vector<NodeRef> args;    // operands of the hand-written kinds; operands.h names them
  Direction direction = Direction::by_dst;
  ReduceOp reduce_op = ReduceOp::sum;
  int64_t heads = 1;
  bool transpose = false;  // matmul_t, typed_matmul_t
  RowProgram program;      // row programs; `value` is the register that is reduced or stored
  int value = -1;
  int second_value = -1;  // gtask_grad: the register of g (`value` is that of x)
  PartitionTable table;   // gtask, gtask_grad, lstm and its gradients: how the edges are cut
  RowProgram tail;
  bool once = false;       // depends on no parameter: computed once before training
  double floor_bytes = 0;  // fewest bytes the work must move: each stored operand read once, each result written once
  double flops = 0;
  std::string why;                      // why faster implementations declined; empty if the first choice was taken
  std::vector<VariantChoice> variants;  // how it runs on the plan's device; empty: the plan was made without a device
};

// Which products a back end computes together: those of at least so many rows (0: none) and at most so many columns, an
// even number (0: any).
struct JoinedProducts {
  int64_t rows = 0;
  int64_t columns = 0;
  bool typed = false;  // a product and those by type (typed_reduce, of sums in memory) too
  friend bool operator==(const JoinedProducts&, const JoinedProducts&) = default;
};

struct PlanOptions {
  bool fuse = true;      // false: one kernel per node, every value stored (the tensor-centric style)
  bool hoist = true;     // compute parameter-independent values once
  bool rewrite = true;   // swap indexing (swap.h); false: the DFG as the model wrote it
  Choices choices;       // options of the sites (sites.h); sites not named: as written
  PartitionTable table;  // of every kernel over edges that can follow it; empty: each kernel's own
  std::map<std::string, std::string> tables;  // kernel key (kernel_key) → its own table
  bool split_outliers = true;                 // outlier gTasks run apart (WG8)
  // Sums over the edges of (vertex, type) pairs that are the same in every step, or that several kernels read, are
  // stored where they take no more bytes than this; others are summed anew by each kernel.
  int64_t keep_sums = 0;
  // Values of the forward pass that the backward pass computes again instead of keeping them (dfg/recompute.h).
  std::set<std::string> recompute;
  // Coefficients of edges that are products of values of both ends are applied at the vertices (factors.h).
  bool vertex_factors = false;
  // Products that only the tail of another one adds to its own are computed there.
  JoinedProducts join_products;
  // Passes of passes.cpp that are left out, by name.
  std::set<std::string> disabled_passes;
  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

struct PassTime {
  std::string pass;
  double seconds = 0;
};

struct Plan {
  std::string name = "auto";  // how it was asked for
  PlanOptions options;
  Dfg dfg;                      // after the passes
  std::vector<Kernel> kernels;  // in execution order; `once` kernels first run before the loop
  NodeVector<char> stored;      // has memory of its own
  NodeVector<NodeRef> alias;    // the node whose memory it shares (itself unless a reshape)
  NodeVector<char> again;       // computes a dropped value once more; empty: none does
  NodeVector<char> narrow;      // stored as bf16, by the back end's wish; empty: none is
  std::vector<PassTime> passes;
};

// The DFG as the passes before the choices leave it: where sites are found.
Dfg prepare_dfg(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options);

// The same with the choices made: where values are found that can be computed again.
Dfg choose_dfg(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options);

// How the passes are run.
struct PassControl {
  std::string stop_after;  // the last pass that runs; empty: all run. A plan that is not complete cannot be executed.
  // Checks the draft after every pass, not only the finished plan.
#ifdef NDEBUG
  bool validate = false;
#else
  bool validate = true;
#endif
  // The device that the kernels' variants are chosen for; null: the plan names no variants.
  const DeviceTraits* device = nullptr;
};

// Runs the passes (passes.cpp holds the list) on the model's DFG for the graph in `blocks`.
Plan make_plan(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options, const PassControl& control = {});

// Checks that kernels cover every needed node, read only what was written before, and write each stored value once.
void validate(const Plan& plan, const Blocks& blocks);

// What a product's kernel computes: its own product and, where nobody reads that alone, one that the tail adds to it.
SummedProducts summed_products(const Plan& plan, const Kernel& kernel);

// Options as JSON: what a plan file and the plan cache hold. Throws UserError naming `where`.
std::string options_json(const PlanOptions& options);
PlanOptions parse_options(const std::string& text, const std::string& where);

// For people: the DFG, then one line per kernel, as far as the passes have come. For files: JSON that load_plan reads
// back.
std::string plan_text(const Plan& plan, const Blocks& blocks);
std::string plan_json(const Plan& plan);
// Returns a line for each decision about how the kernel runs.
std::string variants_text(const Kernel& kernel);
// Reads a plan file made for the same model; throws UserError when the DFG in it is not what the model builds. With
// `device`, the kernels have the variants that the file names, and where it names none or where the variant declines on
// this device, those that the lists choose.
Plan load_plan(const std::string& text, const std::string& where, const Dfg& dfg, const Blocks& blocks,
               const DeviceTraits* device = nullptr);

}  // namespace nacre
