// GpuContext: provides what the binders of GPU kernels need: the device, its copies of the graph's
// arrays, compiled functions, and launches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/cost/nominal.h"
#include "nacre/device/device.h"
#include "nacre/engine/executor.h"
#include "nacre/engine/gpu/compiler.h"
#include "nacre/engine/gpu/keyed_cache.h"
#include "nacre/engine/gpu/staging.h"
#include "nacre/kernel/cuda/params.h"
#include "nacre/plan/variants.h"

namespace nacre {

// Describes the rows of a view of a graph, as kernels walk them.
struct GpuRows {
  std::string name;
  Graph graph;
  Direction direction = Direction::by_dst;
  int64_t rows = 0;
  int64_t entries = 0;
  bool listed = false;            // edge_ids has the edge of each entry; if not, entry i is edge i
  bool long_offsets = false;      // offsets are i64, not u32
  const void* offsets = nullptr;  // set together with `longest`
  int64_t longest = -1;           // most entries of a row; -1 if not known yet
  const uint32_t* columns = nullptr;
  const uint32_t* edge_ids = nullptr;
  const uint32_t* row_vertex = nullptr;      // if null, row i is vertex i
  std::shared_ptr<const cpu::RowView> host;  // null if the view was made on the device only
  struct Long {
    int64_t row, begin, length;
  };
  std::vector<Long> long_ones;  // if `host` is null, the rows of more than kShortRow entries
};
// Rows of at most this many entries are never cut into pieces.
inline constexpr int64_t kShortRow = 32;

struct GpuOptions {
  GemmType precision = GemmType::f32;
  bool tune = true;         // times variants of products and sums and keeps the fastest
  int64_t cache_bytes = 0;  // cache that gathered rows should fit; 0: the second-level cache
  // The number of multiprocessors that this device and the devices that compute beside it on the
  // same GPU have together; 0 if no device computes beside it.
  int busy_multiprocessors = 0;
  // Number of rows from which on a product and its tail are one kernel; 0: never; -1: as many rows
  // as fill the device.
  int64_t whole_products = -1;
  // Rates by which variants are compared: nominal, or as `nacre profile` measured them.
  VariantRates rates = nominal_gpu().rates;
};

class GpuContext {
 public:
  GpuContext(std::shared_ptr<GpuCompiler> compiler, std::shared_ptr<GraphViews> views, const GpuOptions& options);
  // Makes a context for one mini-batch. The context finds what `parent` holds, keeps to itself what
  // it makes, and times no variants. Any thread may fill it while `parent` does not change: bytes
  // are copied while the device works, and arrived() makes the later work of the device wait for
  // them.
  explicit GpuContext(std::shared_ptr<GpuContext> parent);
  ~GpuContext();
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;

  Device& device() { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  const GpuOptions& options() const { return options_; }
  // Returns what planning knows of the device and of these options.
  const DeviceTraits& traits() const { return traits_; }
  GraphViews& host_views() { return *views_; }
  // Returns the device copy of a host array, creating it on first use. The array is known by its
  // address, so it must outlive this object.
  const void* resident(const void* host, int64_t bytes);
  template <class T>
  const T* resident(const Array<T>& a) {
    return static_cast<const T*>(resident(a.data(), a.size() * static_cast<int64_t>(sizeof(T))));
  }
  // Returns the device copy of `values`, creating it on first use and keeping it under `key`.
  template <class T>
  const T* made(const std::string& key, const std::vector<T>& values) {
    return static_cast<const T*>(keep(key, values.data(), static_cast<int64_t>(values.size() * sizeof(T))));
  }
  // Returns the host value that is stored under `key`. If there is none, stores the value that
  // `make` returns.
  template <class T, class Make>
  const T& once(const std::string& key, const Make& make) {
    return cache_.get<T>(key, make);
  }
  // Returns the device copy of values that is stored under `key`. If there is none, stores a copy
  // of the values that `make` returns.
  template <class T, class Make>
  const T* made_once(const std::string& key, const Make& make) {
    const Resident* known = cache_.find<Resident>(key);
    return known != nullptr ? static_cast<const T*>(known->memory.get()) : made<T>(key, make());
  }
  // Returns device memory of `bytes` bytes kept under `key`. The first time, `fill` writes them,
  // where possible straight into the page-locked memory from which they are sent.
  template <class Fill>
  const void* filled(const std::string& key, int64_t bytes, const Fill& fill) {
    return cache_.get<Resident>(key, [&] { return Resident{keep(bytes, FunctionRef<void(void*)>(fill))}; })
        .memory.get();
  }
  // Returns the rows of a graph's view. Set `edges` if the edges of the entries will be needed. The
  // functions that follow copy an array of the view to the device on first use (gpu_rows.cpp):
  // where the entries of each row begin; the vertices at their other ends; and their edges, null if
  // entry i is edge i.
  GpuRows& rows(const Graph& graph, Direction direction, bool edges);
  const void* offsets(GpuRows& rows);
  const uint32_t* columns(GpuRows& rows);
  const uint32_t* edge_ids(GpuRows& rows);
  const int64_t* row_ptr(GpuRows& rows);
  // Returns the destination of every edge, in in-CSR order.
  const uint32_t* edge_dst(const Graph& graph);
  // Returns the view on the host. It has no chunks.
  const cpu::RowView& host_rows(GpuRows& rows);
  // Returns the rows of more than `most` entries.
  std::vector<GpuRows::Long> long_rows(const GpuRows& rows, int64_t most) const;
  // Returns the seconds of each of the steps that `make` returns. Steps are made and timed at the
  // first call with this `key`; later calls return the same numbers. All steps are made before the
  // first is timed, so that their kernels are compiled side by side. While an Asking object lives,
  // steps are made but not timed, and the result is empty.
  std::vector<double> time_steps(const std::string& key, const std::function<std::vector<Step>()>& make);
  class Asking {
   public:
    explicit Asking(GpuContext& context) : context_(context) { context_.asking_ = true; }
    ~Asking() { context_.asking_ = false; }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    GpuContext& context_;
  };
  int64_t resident_bytes() const { return resident_bytes_; }

  // Holds device memory with something that was computed from constants. `made_at` is the count of
  // constants() at which it was computed; -1 before the first time.
  struct Derived {
    std::shared_ptr<void> memory;
    int64_t made_at = -1;
  };
  // Returns the memory of `bytes` bytes kept under `key`, allocating it on first use.
  Derived& derived(const std::string& key, int64_t bytes);
  // Returns how often constants were computed.
  int64_t constants() const { return parent_ ? parent_->constants() : constants_; }
  void constants_changed() { parent_ ? parent_->constants_changed() : void(++constants_); }

  // Returns words in device memory: the seed, the step number, and what set_row_ids() has set
  // (kernel/cuda/source.h).
  const void* step() const { return step_.get(); }
  // Sets by which numbers random draws tell the rows of a rank apart. All plans of a context must
  // be for the same rank.
  void set_row_ids(const RankLinks& links);
  std::shared_ptr<void> allocate(int64_t bytes);
  // Sends bytes of the host to device memory (staging.h). In a context with a parent they are
  // gathered, and flush() or arrived() starts the copy, which runs while the device works.
  void send(void* to, const void* host, int64_t bytes) { staging_.send(to, host, bytes); }
  std::shared_ptr<void> place(const void* host, int64_t bytes);
  void flush() { staging_.flush(); }
  void arrived() { staging_.arrived(); }
  // Prepares a product and returns its handle. If `among` is more than 1, this many algorithms of
  // the library are timed, and the fastest one is taken (device.h). A context with a parent
  // releases the product in its destructor.
  int prepare_gemm(const GemmShape& shape, int among);

  // Queues a kernel that copies row ids[i] of a table of floats to row i of `out`; gather_step()
  // returns the step that queues it.
  struct RowsOf {
    int64_t count, width;
  };
  void gather_rows(const void* table, const NodeId* ids, void* out, const RowsOf& rows) {
    gather_step(table, ids, out, rows)();
  }
  Step gather_step(const void* table, const NodeId* ids, void* out, const RowsOf& rows);
  // Queues a kernel that copies row i of `from` to row ids[i] of a table of floats. No id occurs
  // twice.
  void scatter_rows(const void* from, const NodeId* ids, void* table, const RowsOf& rows) {
    scatter_step(from, ids, table, rows)();
  }
  Step scatter_step(const void* from, const NodeId* ids, void* table, const RowsOf& rows);

  // Returns the step that launches a kernel on `blocks` blocks of threads. If there are none, the
  // step does nothing. Throws if the kernel takes parameters other than `params`.
  Step launch(const cuda::Source& source, int64_t blocks, cuda::LaunchParams params);
  Step launch(const GpuFunction& function, int64_t blocks, cuda::LaunchParams params);
  GpuCompiler& compiler() { return *compiler_; }
  const std::shared_ptr<GpuCompiler>& shared_compiler() const { return compiler_; }

 private:
  const void* keep(const std::string& key, const void* host, int64_t bytes);
  std::shared_ptr<void> keep(int64_t bytes, FunctionRef<void(void*)> fill);
  void transpose(GpuRows& rows, bool edges);

  struct Resident {
    std::shared_ptr<void> memory;
  };
  struct Times {
    std::vector<double> seconds;
  };

  std::shared_ptr<GpuContext> parent_;
  std::shared_ptr<GpuCompiler> compiler_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<GraphViews> views_;
  GpuOptions options_;
  DeviceTraits traits_;
  KeyedCache cache_;
  int64_t resident_bytes_ = 0;
  bool asking_ = false;
  int64_t constants_ = 0;
  std::shared_ptr<void> step_;
  const void* row_ids_ = nullptr;  // the host's array of vertex numbers that was set
  std::shared_ptr<PinnedPool> pinned_;
  Staging staging_;
  std::vector<int> products_;
};

// Names a variant that is bound, and its limit (plan/variants.h).
template <class Way>
struct Taken {
  Way way;
  int64_t limit = 0;
};

// Describes one kernel that is being bound. All binders below receive such an object.
struct GpuKernel {
  GpuContext& context;
  const Executor& executor;
  const Kernel& kernel;
  // Receives the variants that were taken for the kernel. Null while only the kernel's needs are
  // computed.
  std::vector<VariantChoice>* bound = nullptr;

  const Node& node(NodeRef i) const { return executor.plan().dfg[i]; }
  int64_t width(NodeRef i) const { return node(i).type.row_size(); }
  int64_t rows(NodeRef i) const { return executor.blocks().rows(node(i).type.space); }
  void* pointer(NodeRef i) const { return executor.pointer(i); }
  bool stored(NodeRef i) const { return executor.plan().stored[i] != 0; }
  bool narrow(NodeRef i) const { return executor.is_narrow(i); }
  int layer() const { return walked_layer(executor.plan().dfg, kernel); }
  const Graph& graph() const { return executor.blocks().layer(layer()); }

  PlannedKernel planned() const { return {executor.plan(), kernel, executor.blocks()}; }
  // Returns the variant of a list that the kernel runs: the one that the plan names. If the plan
  // names none, or the named one declines here, the list chooses.
  template <class Way, class Facts>
  Taken<Way> take(const VariantList<Facts>& list, const Facts& facts) const {
    const std::vector<Judged> all = judge(list, facts, context.traits());
    const int taken = variant_to_run(all, planned_variant(kernel, list.decision));
    VariantChoice record = record_of(list.decision, all, taken);
    const int64_t limit = record.limit = limit_to_run(kernel, list.decision, all[static_cast<size_t>(taken)]);
    note(std::move(record));
    return {static_cast<Way>(taken), limit};
  }
  template <class Way, class Facts>
  Way variant(const VariantList<Facts>& list, const Facts& facts) const {
    return take<Way>(list, facts).way;
  }
  // Returns the variant that the kernel runs, for a list whose variants are compared by timing
  // them, once for each `key`. `step_of(way)` returns the step that runs a variant.
  template <class Way, class Facts, class StepOf>
  Way timed_variant(const VariantList<Facts>& list, const Facts& facts, const std::string& key,
                    const StepOf& step_of) const {
    const std::vector<Judged> all = judge(list, facts, context.traits());
    const auto make = [&](int way) { return step_of(static_cast<Way>(way)); };
    return static_cast<Way>(time_variants(list.decision, all, key, make));
  }

 private:
  void note(VariantChoice choice) const;
  int time_variants(const char* decision, const std::vector<Judged>& all, const std::string& key,
                    const std::function<Step(int)>& step_of) const;
};

// Holds the binder of a family of kernels; KernelFamily (plan/variants/place.h) says which kernels
// those are. needs() returns what workspace a kernel needs; bind() returns its step.
struct GpuFamily {
  KernelNeeds (*needs)(const GpuKernel&);
  Step (*bind)(const GpuKernel&, void* workspace);
};
extern const GpuFamily kGpuRows;    // bind_rows.cpp
extern const GpuFamily kGpuMatrix;  // bind_matrix.cpp
extern const GpuFamily kGpuTyped;   // bind_typed.cpp, bind_typed_rows.cpp
extern const GpuFamily kGpuTasks;   // bind_tasks.cpp
extern const GpuFamily kGpuLstm;    // bind_lstm.cpp
extern const GpuFamily kGpuLoss;    // bind_loss.cpp
extern const GpuFamily kGpuCopy;    // bind_copy.cpp
extern const GpuFamily kGpuHost;    // bind_host.cpp: on the host, between copies

// Returns the step that runs `first`, then `second`. Either may be null.
Step then(Step first, Step second);

}  // namespace nacre
