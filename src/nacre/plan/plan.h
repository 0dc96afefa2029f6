// Plan: what will be computed, by which kernels, in which order. A plan is a value: it can be
// printed, written and loaded again, and it touches no memory of the graph. The engine turns it
// into steps.
//
// A kernel computes one root node. Nodes on edges that it reads and that are cheap are computed
// again inside it (inlined) instead of being stored, so no edge-wise feature tensor exists.
// Row-wise nodes that follow the root run as its tail while the rows are still in cache.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nacre/cost/device_traits.h"
#include "nacre/dfg/dfg.h"
#include "nacre/dfg/distribute.h"
#include "nacre/dfg/node_vector.h"
#include "nacre/graph/reorder.h"
#include "nacre/gtask/table.h"
#include "nacre/kernel/blocks.h"
#include "nacre/kernel/direction.h"
#include "nacre/kernel/program.h"
#include "nacre/kernel/row_span.h"
#include "nacre/kernel/tail_product.h"
#include "nacre/plan/batch_places.h"
#include "nacre/plan/placement.h"
#include "nacre/plan/sites.h"

namespace nacre {

enum class KernelKind : uint8_t {
  map,                // a row program over vertices, types or parameters
  map_edges,          // a row program over edges
  reduce,             // an edge program whose results are reduced to rows (sum, mean, max)
  spmm,               // Σ weight · x over neighbours
  matmul,             // x·W, or g·Wᵀ
  weight_grad,        // xᵀ·g
  typed_reduce,       // Σ scale · x·W[type] over neighbours
  typed_weight_grad,  // Σ scale · xᵀ·g for each type
  typed_rows,         // rows·W[type] on pairs or edges
  typed_rows_grad,    // Σ xᵀ·g for each type on pairs or edges
  gtask,              // a program over edges of gTasks, reduced to rows or stored
  gtask_grad,         // Σ xᵀ·g over edges, with both sides from a program over gTasks
  softmax,            // edge softmax
  softmax_grad,
  column_sum,
  lstm,
  lstm_grad,        // both gradients in one pass
  lstm_gates_grad,  // gradients of kept gates, and the states before them
  loss,             // nll, bce and their gradients
  moments,          // column_moments and standardize_grad
  copy,             // whole rows as they are: joined, cut, or with rows of zeros after them
  exchange,         // communication with other ranks
  reference,        // the plain implementation of one node
  // Kinds after this line run on the host even in plans for a GPU. runs_on_host() returns true for
  // them as long as family_of() (plan/variants/place.cpp) names no family of theirs.
};
// The names of the kinds, in their order.
inline constexpr std::string_view kKernelNames[] = {
    "map",        "map_edges",       "reduce",       "spmm",
    "matmul",     "weight_grad",     "typed_reduce", "typed_weight_grad",
    "typed_rows", "typed_rows_grad", "gtask",        "gtask_grad",
    "softmax",    "softmax_grad",    "column_sum",   "lstm",
    "lstm_grad",  "lstm_gates_grad", "loss",         "moments",
    "copy",       "exchange",        "reference",
};
std::string_view kernel_name(KernelKind kind);
// Returns whether the kernel runs an LSTM over the edges of each destination, forwards or
// backwards.
bool is_sequence(KernelKind kind);
// Returns the name under which a plan file or a search knows the table of a kernel:
// "lstm@layers.0.lstm.weight_hh".
struct Kernel;
std::string kernel_key(const Dfg& dfg, const Kernel& kernel);
// Returns the layer whose block a kernel walks: the block of the edges or pairs that its root
// reads, or of its root.
int walked_layer(const Dfg& dfg, const Kernel& kernel);

// A decision about how a kernel runs on the device that its plan was made for (variants.h).
struct VariantChoice {
  std::string decision;  // what is decided, for example "typed rows"
  std::string variant;   // the variant taken; empty if the device must time the variants first
  std::string why;       // why each other variant was not taken
  // The number that belongs to the variant, such as the edges above which a row is long; 0: the
  // variant has none. What it means is the LimitKind of the decision (variants.h).
  int64_t limit = 0;
  friend bool operator==(const VariantChoice&, const VariantChoice&) = default;
};

// The first rows of a kernel that waits for rows of other ranks. The kernel computes them while
// those rows still travel, and the rest of its rows when they have arrived (early_rows.h).
struct EarlyPart {
  int64_t rows = 0;  // number of early rows; 0: all rows are computed together
  double share = 0;  // share of the kernel's work that the early rows are
  std::string why;   // why there are none; empty if there are some or the kernel does not wait
};

struct Kernel {
  KernelKind kind = KernelKind::reference;
  NodeRef root = -1;
  // A second root that the kernel computes in the same pass (argmax; lstm_grad_w; lstm_gates; dot
  // products on edges), or -1.
  NodeRef second = -1;
  // Lists all nodes of the DFG that the kernel computes: roots, inlined nodes, tail.
  std::vector<NodeRef> nodes;
  std::vector<NodeRef> reads;   // stored values that are read
  std::vector<NodeRef> writes;  // stored values that are written
  std::vector<NodeRef> args;    // operands of the hand-written kinds; operands.h names them
  Direction direction = Direction::by_dst;
  ReduceOp reduce_op = ReduceOp::sum;
  int64_t heads = 1;
  bool transpose = false;  // for matmul_t and typed_matmul_t
  RowProgram program;      // for row programs; `value` is the register that is reduced or stored
  int value = -1;
  int second_value = -1;  // for gtask_grad: the register of g (`value` is that of x)
  PartitionTable table;   // for gtask, gtask_grad, lstm and its gradients: how the edges are cut
  RowProgram tail;
  bool once = false;  // depends on no parameter, so it is computed once before training
  EarlyPart early;
  // The rows that a bound kernel computes. In a plan, a kernel has all its rows; the engine binds a
  // kernel with early rows in two parts.
  RowSpan rows;
  // The fewest bytes that the work must move: each stored operand read once, each result written
  // once.
  double floor_bytes = 0;
  double flops = 0;
  std::string why;  // Why faster implementations declined. Empty if the first choice was taken.
  // How the kernel runs on the plan's device. Empty if the plan was made without a device.
  std::vector<VariantChoice> variants;
  // For exchange: whether each rank stores the rows as bf16. Empty if all ranks store them as this
  // rank does.
  std::vector<char> narrow_ranks;
  // For exchange: the mean bytes of an element that comes from another rank; 0 if elements travel
  // as this rank stores them.
  double travel_bytes = 0;
};

// Says which products a back end computes together: those with at least `rows` rows (0 means none)
// and at most `columns` columns, an even number (0 means any).
struct JoinedProducts {
  int64_t rows = 0;
  int64_t columns = 0;
  bool typed = false;  // also join a product to products by type (typed_reduce, of sums in memory)
  friend bool operator==(const JoinedProducts&, const JoinedProducts&) = default;
};

struct PlanOptions {
  // Whether kernels have several nodes. If false, each node has a kernel of its own and every value
  // is stored (the tensor-centric style).
  bool fuse = true;
  bool hoist = true;    // compute values that depend on no parameter once
  bool rewrite = true;  // swap indexing (swap.h); false means the DFG as the model wrote it
  Choices choices;      // options of the sites (sites.h); sites that are not named stay as written
  // The table of every kernel over edges that can follow it. Empty means that each kernel has its
  // own.
  PartitionTable table;
  // From the key of a kernel (kernel_key) to its own table.
  std::map<std::string, std::string> tables;
  bool split_outliers = true;  // outlier gTasks run apart (WG8)
  // Sums over the edges of (vertex, type) pairs that are the same in every step, or that several
  // kernels read, are stored if they take no more bytes than this. Others are summed again by each
  // kernel.
  int64_t keep_sums = 0;
  // Values of the forward pass that the backward pass computes again instead of keeping them
  // (dfg/recompute.h).
  std::set<std::string> recompute;
  // Whether coefficients of edges that are products of values of both ends are applied at the
  // vertices (factors.h).
  bool vertex_factors = false;
  // Whether a sum that gathers the same rows also computes the dot products of the ends of every
  // edge (edge_dots.h).
  bool join_dots = false;
  // Which products are joined: if only the tail of another product reads a product, to add the two,
  // the kernel of the other product computes both.
  JoinedProducts join_products;
  // Which rows travel between ranks (dfg/distribute.h); this has no effect on one device.
  RankPlacement halo_rows;
  // Maps a decision (variants.h) to the variant that all kernels take that do not decline it. Only
  // plan files name variants here.
  std::map<std::string, std::string> variants;
  // The order of the vertices for which the plan was made. The session puts the graph into this
  // order before it plans; no pass reads this field.
  Reorder vertex_order = Reorder::none;
  // Names of passes (passes.cpp) that are left out.
  std::set<std::string> disabled_passes;
  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

struct PassTime {
  std::string pass;
  double seconds = 0;
};

struct Plan {
  std::string name = "auto";  // how the plan was asked for
  PlanOptions options;
  Dfg dfg;  // the DFG after the passes
  // The kernels in the order of execution. Those with `once` run before the first step.
  std::vector<Kernel> kernels;
  NodeVector<char> stored;    // whether the value has memory of its own
  NodeVector<NodeRef> alias;  // the node whose memory a node shares (itself unless it is a reshape)
  NodeVector<char> again;     // whether a node computes a dropped value again; empty if none does
  // Whether a value is stored as bf16 (narrow.h); empty if the plan's device stores no values as
  // bf16.
  NodeVector<char> narrow;
  // Says how the rows that travel between ranks were chosen; empty on one device.
  PlacementChoice placement;
  // Says where the batches of the run are drawn and computed; empty unless a schedule places them.
  BatchPlaces places;
  std::vector<PassTime> passes;

  bool is_narrow(NodeRef i) const { return i >= 0 && !narrow.empty() && narrow[i] != 0; }
};

// Returns the bytes that a value takes where it is stored.
int64_t bytes_in_memory(const Plan& plan, const Blocks& blocks, NodeRef value);

// Returns the DFG as the passes before the choices leave it. Sites are found in it.
Dfg prepare_dfg(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options);

// Returns the DFG after the choices of the plan, before it is distributed. The sites of the ranks
// are found in this DFG.
Dfg undistributed_dfg(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options);

// Returns the DFG with the choices made. Values that can be computed again are found in it.
Dfg choose_dfg(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options);

// How the passes are run.
struct PassControl {
  // The last pass that runs; empty means that all run. A plan that is not complete cannot be
  // executed.
  std::string stop_after;
  // Whether to check the draft after every pass, not only the finished plan.
#ifdef NDEBUG
  bool validate = false;
#else
  bool validate = true;
#endif
  // The device that the plan is made for; null means that the plan names no variants and stores no
  // value as bf16.
  const DeviceTraits* device = nullptr;
  // Whether variants of kernels are chosen. Candidates of a search leave them to the engine.
  bool variants = true;
  // The only values that may be stored as bf16; null means any. Plan files name them.
  const std::vector<NodeRef>* narrow = nullptr;
};

// Runs the passes (passes.cpp has the list) on the DFG of the model for the graph in `blocks`.
Plan make_plan(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options, const PassControl& control = {});

// Returns the options of a plan file; nothing if the text is no plan file. Throws UserError naming
// `where` if they are damaged.
std::optional<PlanOptions> planned_options(const std::string& text, const std::string& where);
// Returns the order of the vertices that a plan file names; none if it names no order or if the
// text is no plan file.
Reorder planned_order(const std::string& text, const std::string& where);

// Checks that kernels cover every needed node, read only what was written before, and write each
// stored value once.
void validate(const Plan& plan, const Blocks& blocks);

// Returns what the kernel of a product computes: its own product and, if nobody reads that alone,
// one that the tail adds to it.
SummedProducts summed_products(const Plan& plan, const Kernel& kernel);

// Convert options to and from the JSON that plan files and the plan cache hold. Reading throws
// UserError naming `where`.
std::string options_json(const PlanOptions& options);
PlanOptions parse_options(const std::string& text, const std::string& where);

// plan_text() is for people: the DFG, then one line per kernel, as far as the passes have come.
// plan_json() is for files, and load_plan() reads it back.
std::string plan_text(const Plan& plan, const Blocks& blocks);
std::string plan_json(const Plan& plan);
// Returns a line for each decision about how the kernel runs.
std::string variants_text(const Kernel& kernel);
// Reads a plan file made for the same model. Throws UserError if the DFG in it is not what the
// model builds. With `device`, the kernels have the variants that the file names. If the file names
// none for a decision, or if the variant declines on this device, the lists of variants choose. If
// the device stores values as bf16, the values that the file names are marked, and UserError is
// thrown if one of them cannot be stored as bf16. If the file names no values, because it was made
// for another precision, the rules mark them. The values of a rank are always marked by the rules.
Plan load_plan(const std::string& text, const std::string& where, const Dfg& dfg, const Blocks& blocks,
               const DeviceTraits* device = nullptr);

}  // namespace nacre
