// What binding kernels to a GPU needs: the device, its copies of the graph's arrays, compiled functions, and launches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/device/device.h"
#include "nacre/engine/executor.h"
#include "nacre/engine/gpu/keyed_cache.h"
#include "nacre/engine/gpu/loader.h"
#include "nacre/engine/gpu/staging.h"
#include "nacre/kernel/cuda/params.h"

namespace nacre {

// A row (or a piece of a long one) of a view: one unit of work of a group of threads.
struct GpuSegment {
  uint32_t row;
  int32_t partial;  // >= 0: a piece; its sum goes to this slot
  int64_t begin, end;
};
struct GpuSplitRow {
  uint32_t row;
  int32_t first, count;  // its partial slots
  int32_t length;        // entries of the whole row
};

// The rows of a view of a graph, as kernels walk them.
struct GpuRows {
  std::string name;
  Graph graph;
  cpu::Direction direction = cpu::Direction::by_dst;
  int64_t rows = 0;
  int64_t entries = 0;
  bool listed = false;  // an entry's edge is not its own number
  // As u32, or i64 where `wide`; the most entries of a row come with them.
  bool wide = false;
  const void* offsets = nullptr;
  int64_t longest = -1;  // not known
  const uint32_t* columns = nullptr;
  const uint32_t* edge_ids = nullptr;
  const uint32_t* row_vertex = nullptr;      // null: a row's own number
  std::shared_ptr<const cpu::RowView> host;  // null: made for the device alone
  struct Long {
    int64_t row, begin, length;
  };
  std::vector<Long> long_ones;  // without `host`: the rows of more than kShortRow entries
};
// No row of so many entries is cut into pieces.
inline constexpr int64_t kShortRow = 32;

struct GpuOptions {
  GemmType precision = GemmType::f32;
  bool tune = true;         // time variants of products and sums and keep the fastest
  int64_t cache_bytes = 0;  // that gathered rows should fit; 0 = the device's second-level cache
  // Rows from which on products and their tails are one kernel; -1: as many as fill the device, 0: never.
  int64_t whole_products = -1;
};

class GpuContext {
 public:
  GpuContext(std::shared_ptr<GpuLoader> loader, std::shared_ptr<GraphViews> views, const GpuOptions& options);
  // Sees what `parent` holds, keeps for itself what it makes, tunes nothing. It may be filled by any thread while
  // `parent` does not change: bytes are sent beside what the device does, and arrived() makes that wait for them.
  explicit GpuContext(std::shared_ptr<GpuContext> parent);
  ~GpuContext();
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;

  Device& device() { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  const GpuOptions& options() const { return options_; }
  GraphViews& host_views() { return *views_; }
  // Returns the device copy of a host array, creating it on first use. The array is known by its address, so it must
  // outlive this object.
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
  // Returns the host value stored under `key`; the first time, the value that `make` returns.
  template <class T, class Make>
  const T& once(const std::string& key, const Make& make) {
    return cache_.get<T>(key, make);
  }
  // Returns the device copy of the values stored under `key`; the first time, of the values that `make` returns.
  template <class T, class Make>
  const T* made_once(const std::string& key, const Make& make) {
    const Resident* known = cache_.find<Resident>(key);
    return known != nullptr ? static_cast<const T*>(known->memory.get()) : made<T>(key, make());
  }
  // Returns device memory of `bytes` bytes kept under `key`. The first time, `fill` writes them, where possible
  // straight into the page-locked memory from which they are sent.
  template <class Fill>
  const void* filled(const std::string& key, int64_t bytes, const Fill& fill) {
    return cache_.get<Resident>(key, [&] { return Resident{keep(bytes, FunctionRef<void(void*)>(fill))}; })
        .memory.get();
  }
  // Its arrays are copied to the device when they are first asked for (gpu_rows.cpp): where each row's entries begin;
  // the vertices at their other ends; their edges, null for an entry's own number.
  // With `edges`, the edges will be asked for.
  GpuRows& rows(const Graph& graph, cpu::Direction direction, bool edges);
  const void* offsets(GpuRows& rows);
  const uint32_t* columns(GpuRows& rows);
  const uint32_t* edge_ids(GpuRows& rows);
  const int64_t* row_ptr(GpuRows& rows);
  // Destination of every edge, in-CSR order.
  const uint32_t* edge_dst(const Graph& graph);
  // On the host; has no chunks.
  const cpu::RowView& host_rows(GpuRows& rows);
  // The rows of more than `most` entries.
  std::vector<GpuRows::Long> long_rows(const GpuRows& rows, int64_t most) const;
  // The answer to a question asked before, or a new one: the fastest of `variants`, which are all made before the first
  // is timed, so that their kernels are compiled side by side. While an Asking lives they are made and not timed, and
  // the answer is the first.
  int choose(const std::string& key, const std::function<std::vector<Step>()>& variants,
             const std::function<int(const std::vector<Step>&)>& fastest);
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

  // Device memory that holds something computed from constants. `made_at` is the count of constants() at which it was
  // computed; -1 before the first time.
  struct Derived {
    std::shared_ptr<void> memory;
    int64_t made_at = -1;
  };
  // Returns the memory of `bytes` bytes kept under `key`, allocating it on first use.
  Derived& derived(const std::string& key, int64_t bytes);
  // How often constants were computed.
  int64_t constants() const { return parent_ ? parent_->constants() : constants_; }
  void constants_changed() { parent_ ? parent_->constants_changed() : void(++constants_); }

  // Two words, seed and step, in device memory.
  const void* step() const { return step_.get(); }
  std::shared_ptr<void> allocate(int64_t bytes);
  // Sends bytes of the host to device memory (staging.h). In a context with a parent they travel beside the device's
  // work, together with flush() or arrived().
  void send(void* to, const void* host, int64_t bytes) { staging_.send(to, host, bytes); }
  std::shared_ptr<void> place(const void* host, int64_t bytes);
  void flush() { staging_.flush(); }
  void arrived() { staging_.arrived(); }
  // A context with a parent gives the product back when it goes.
  int prepare_gemm(const GemmShape& shape, bool tune);

  // out[i] = the row ids[i] of a table of floats; queued.
  struct RowsOf {
    int64_t count, width;
  };
  void gather_rows(const void* table, const NodeId* ids, void* out, const RowsOf& rows);
  // The row ids[i] of a table of floats becomes row i of `from`; no id stands there twice; queued.
  void scatter_rows(const void* from, const NodeId* ids, void* table, const RowsOf& rows);

  // Returns the step that launches a kernel; it does nothing if there are no blocks. Throws if the kernel takes other
  // parameters.
  Step launch(const cuda::Source& source, int64_t blocks, cuda::LaunchParams params);
  Step launch(const GpuFunction& function, int64_t blocks, cuda::LaunchParams params);
  GpuLoader& loader() { return *loader_; }

 private:
  const void* keep(const std::string& key, const void* host, int64_t bytes);
  std::shared_ptr<void> keep(int64_t bytes, FunctionRef<void(void*)> fill);
  void transpose(GpuRows& rows, bool edges);

  struct Resident {
    std::shared_ptr<void> memory;
  };
  struct Choice {
    int variant;
  };

  std::shared_ptr<GpuContext> parent_;
  std::shared_ptr<GpuLoader> loader_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<GraphViews> views_;
  GpuOptions options_;
  KeyedCache cache_;
  int64_t resident_bytes_ = 0;
  bool asking_ = false;
  int64_t constants_ = 0;
  std::shared_ptr<void> step_;
  std::shared_ptr<PinnedPool> pinned_;
  Staging staging_;
  std::vector<int> products_;
};

// One kernel being bound: what the families of binders below are given.
struct GpuKernel {
  GpuContext& context;
  const Executor& executor;
  const Kernel& kernel;

  const Node& node(NodeRef i) const { return executor.plan().dfg[i]; }
  int64_t width(NodeRef i) const { return node(i).type.row_size(); }
  int64_t rows(NodeRef i) const { return executor.blocks().rows(node(i).type.space); }
  void* pointer(NodeRef i) const { return executor.pointer(i); }
  bool stored(NodeRef i) const { return executor.plan().stored[static_cast<size_t>(i)] != 0; }
  bool narrow(NodeRef i) const { return executor.is_narrow(i); }
  int layer() const;
  const Graph& graph() const { return executor.blocks().layer(layer()); }
};

// A family of kernel kinds: what it needs and how it is bound. `workspace` holds what needs() asked for.
struct GpuFamily {
  KernelNeeds (*needs)(const GpuKernel&);
  Step (*bind)(const GpuKernel&, void* workspace);
};
extern const GpuFamily kGpuRows;    // bind_rows.cpp: map, map_edges, reduce, spmm, softmax(_grad), column_sum
extern const GpuFamily kGpuMatrix;  // bind_matrix.cpp: matmul, weight_grad
extern const GpuFamily kGpuTyped;   // bind_typed.cpp: typed_rows(_grad), typed_reduce, typed_weight_grad
extern const GpuFamily kGpuTasks;   // bind_tasks.cpp: gtask, gtask_grad
extern const GpuFamily kGpuLstm;    // bind_lstm.cpp: lstm, lstm_grad
extern const GpuFamily kGpuLoss;    // bind_loss.cpp: loss, moments
extern const GpuFamily kGpuCopy;    // bind_copy.cpp: copy
extern const GpuFamily kGpuHost;    // bind_host.cpp: reference, on the host, through copies

// Runs `first`, then `second`; either may be null.
Step then(Step first, Step second);

}  // namespace nacre
