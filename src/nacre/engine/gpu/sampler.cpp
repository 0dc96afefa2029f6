#include "nacre/engine/gpu/sampler.h"

#include <algorithm>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/kernel/cuda/sample.h"
#include "nacre/sample/draw.h"
#include "nacre/tensor/pool.h"

namespace nacre {
namespace {

using Memory = std::shared_ptr<void>;

template <class T>
T* values(const Memory& memory) {
  return static_cast<T*>(memory.get());
}

// Copies bytes to page-locked memory of the host, which the device can read at the same address.
Memory pinned_copy(const std::shared_ptr<Device>& device, const void* from, int64_t bytes) {
  Memory memory(device->allocate_pinned(bytes), [device](void* p) { device->release_pinned(p); });
  parallel_for(bytes, int64_t{1} << 22, [&](int64_t b, int64_t e) {
    std::memcpy(values<char>(memory) + b, static_cast<const char*>(from) + b, static_cast<size_t>(e - b));
  });
  return memory;
}

// Holds the result of one hop of all batches.
struct HopResult {
  std::vector<int64_t> dst_ptr, edge_ptr, src_ptr;  // borders of the batches
  Memory row_ptr, col_idx, weight, type, edges, scale;
};

struct Results {
  std::vector<HopResult> hops;  // in the order of sampling
  Memory vertices;
};

}  // namespace

int64_t DeviceSample::num_edges() const {
  int64_t sum = 0;
  for (const DeviceBlock& block : blocks) sum += block.num_edges;
  return sum;
}

struct GpuSampler::State {
  std::shared_ptr<GpuCompiler> compiler;
  std::shared_ptr<Device> device;
  const Sampler& sampler;
  Memory row_ptr, col_idx, weight, type;  // arrays of the graph
  Memory table;
  int64_t table_bytes = 0;

  // Holds memory for the samples on the host, which is used again. The driver copies into pageable
  // memory under a lock, so pages that the system has to clear first would also delay the other
  // threads that copy.
  Pool pool;

  // ---- State of the call in progress.
  int64_t batches = 0;
  Memory keys;
  Memory vertices;  // known vertices of all batches
  std::vector<int64_t> dst_ptr;
  Memory device_dst_ptr;

  State(std::shared_ptr<GpuCompiler> l, const Sampler& s, GraphMemory memory);

  const Graph& graph() const { return sampler.graph(); }
  int64_t num_nodes() const { return graph().num_nodes(); }
  uint32_t* entries() const { return values<uint32_t>(table); }
  Memory allocate(int64_t count, int64_t size) const {
    return {device->allocate(std::max<int64_t>(16, count * size)), [d = device](void* p) { d->release(p); }};
  }
  template <class T>
  Memory upload(const std::vector<T>& host) const {
    const auto bytes = static_cast<int64_t>(host.size() * sizeof(T));
    Memory memory = allocate(bytes, 1);
    if (bytes > 0) device->upload(memory.get(), host.data(), bytes);
    return memory;
  }
  void launch(const cuda::Source& source, int64_t threads, cuda::LaunchParams params) const {
    cuda::check_params(source, params);
    if (threads == 0) return;
    const int64_t blocks = (threads + source.threads - 1) / source.threads;
    device->launch(compiler->function(source), {blocks, source.threads, source.shared_bytes}, params.pointers());
  }
  // Requests all kernels of a sample, so that they are compiled at the same time. They are launched
  // one after the other, with waits between them.
  void ask_for_kernels() const;
  // Returns sums[places[i]] for every i.
  std::vector<int64_t> ends(const Memory& sums, const Memory& places, int64_t count) const;

  void begin(std::span<const Batch> list);
  HopResult hop(int index);
  Memory count_edges(int fanout, const Memory& begins, const Memory& degrees) const;
  void number(HopResult& result, const Memory& sources, const Memory& device_edge_ptr);
};

GpuSampler::State::State(std::shared_ptr<GpuCompiler> l, const Sampler& s, GraphMemory memory)
    : compiler(std::move(l)), device(compiler->device()), sampler(s) {
  const auto put = [&]<class T>(const Array<T>& a) -> Memory {
    const int64_t bytes = a.size() * static_cast<int64_t>(sizeof(T));
    if (memory == GraphMemory::host) return pinned_copy(device, a.data(), bytes);
    Memory copy = allocate(bytes, 1);
    if (bytes > 0) device->upload(copy.get(), a.data(), bytes);
    return copy;
  };
  row_ptr = put(graph().row_ptr());
  col_idx = put(graph().col_idx());
  if (graph().weighted()) weight = put(graph().edge_weight());
  if (graph().typed()) type = put(graph().edge_type());
  ask_for_kernels();
}

void GpuSampler::State::ask_for_kernels() const {
  const SampleOptions& o = sampler.options();
  std::vector<cuda::Source> sources = {cuda::number_seeds(), cuda::take_ends(),  cuda::block_rows(), cuda::mark_first(),
                                       cuda::number_new(),   cuda::keep_known(), cuda::relabel()};
  if (weight) sources.push_back(cuda::take_values(true));
  if (type) sources.push_back(cuda::take_values(false));
  for (const int fanout : o.fanout) {
    sources.push_back(cuda::look_up_rows(fanout, o.replace));
    if (fanout < 0) {
      sources.push_back(cuda::pick_all());
    } else if (o.weighted) {
      sources.push_back(cuda::count_weighted(fanout, o.replace));
      sources.push_back(cuda::pick_weighted(fanout, o.replace));
    } else {
      sources.push_back(cuda::pick_uniform(fanout, o.replace));
    }
  }
  for (const cuda::Source& source : sources) compiler->code(source);
}

std::vector<int64_t> GpuSampler::State::ends(const Memory& sums, const Memory& places, int64_t count) const {
  const Memory out = allocate(count, 8);
  const cuda::TakeEndsParams params = {.sums = sums.get(), .places = places.get(), .out = out.get(), .count = count};
  launch(cuda::take_ends(), count, params);
  std::vector<int64_t> host(count);
  device->download(host.data(), out.get(), count * 8);
  return host;
}

void GpuSampler::State::begin(std::span<const Batch> list) {
  batches = static_cast<int64_t>(list.size());
  NACRE_CHECK(num_nodes() < INT64_C(0xFFFFFFFF), "the graph has more nodes than 32 bits can number");
  const int64_t bytes = batches * num_nodes() * 4;
  if (bytes > table_bytes) {
    table.reset();
    table = allocate(bytes, 1);
    table_bytes = bytes;
  }
  device->fill(table.get(), 0xff, bytes);
  std::vector<uint64_t> list_of_keys;
  std::vector<NodeId> seeds;
  dst_ptr.assign(1, 0);
  for (const Batch& batch : list) {
    list_of_keys.push_back(draw::batch_key(sampler.options().seed, batch.key.epoch, batch.key.batch));
    seeds.insert(seeds.end(), batch.seeds.begin(), batch.seeds.end());
    dst_ptr.push_back(static_cast<int64_t>(seeds.size()));
  }
  keys = upload(list_of_keys);
  vertices = upload(seeds);
  device_dst_ptr = upload(dst_ptr);
  const Memory errors = upload(std::vector<uint32_t>(1));
  const int64_t count = dst_ptr.back();
  const cuda::NumberSeedsParams params = {.vertices = vertices.get(),
                                          .dst_ptr = device_dst_ptr.get(),
                                          .batches = batches,
                                          .table = entries(),
                                          .num_nodes = num_nodes(),
                                          .errors = errors.get(),
                                          .count = count};
  launch(cuda::number_seeds(), count, params);
  uint32_t wrong = 0;
  device->download(&wrong, errors.get(), sizeof wrong);
  NACRE_CHECK(wrong == 0, "a seed is no vertex of the graph or occurs twice");
}

// Returns the number of edges that every destination draws, and computes where its row begins and
// how long it is.
Memory GpuSampler::State::count_edges(int fanout, const Memory& begins, const Memory& degrees) const {
  const SampleOptions& o = sampler.options();
  const int64_t n = dst_ptr.back();
  Memory counts = allocate(n, 4);
  const cuda::LookUpRowsParams rows = {.row_ptr = row_ptr.get(),
                                       .vertices = vertices.get(),
                                       .begins = begins.get(),
                                       .degrees = degrees.get(),
                                       .counts = counts.get(),
                                       .count = n};
  launch(cuda::look_up_rows(fanout, o.replace), n, rows);
  if (!o.weighted || fanout < 0) return counts;
  const cuda::CountWeightedParams weighted = {
      .weight = weight.get(), .begins = begins.get(), .degrees = degrees.get(), .counts = counts.get(), .count = n};
  launch(cuda::count_weighted(fanout, o.replace), n * 32, weighted);
  return counts;
}

HopResult GpuSampler::State::hop(int index) {
  const SampleOptions& o = sampler.options();
  const int fanout = o.fanout[index];
  const int64_t n = dst_ptr.back();
  HopResult result;
  result.dst_ptr = dst_ptr;
  const Memory begins = allocate(n, 8);
  const Memory degrees = allocate(n, 4);
  const Memory offsets = allocate(n + 1, 8);
  device->exclusive_sum(values<uint32_t>(count_edges(fanout, begins, degrees)), values<int64_t>(offsets), n);
  result.edge_ptr = ends(offsets, device_dst_ptr, batches + 1);
  const Memory device_edge_ptr = upload(result.edge_ptr);
  const int64_t edges = result.edge_ptr.back();
  for (int64_t b = 0; b < batches; ++b) {
    const auto at = static_cast<size_t>(b);
    const int64_t met = result.edge_ptr[at + 1] - result.edge_ptr[at] + dst_ptr[at + 1] - dst_ptr[at];
    NACRE_CHECK(met < INT64_C(0xFFFFFFFF), "one hop has more edges than 32 bits can number");
  }
  result.edges = allocate(edges, 8);
  result.col_idx = allocate(edges, 4);
  if (fanout >= 0) result.scale = allocate(edges, 4);
  const cuda::PickParams picks = {.vertices = vertices.get(),
                                  .begins = begins.get(),
                                  .degrees = degrees.get(),
                                  .offsets = offsets.get(),
                                  .dst_ptr = device_dst_ptr.get(),
                                  .edge_ptr = device_edge_ptr.get(),
                                  .keys = keys.get(),
                                  .batches = batches,
                                  .col = col_idx.get(),
                                  .weight = weight.get(),
                                  .table = entries(),
                                  .num_nodes = num_nodes(),
                                  .edges = result.edges.get(),
                                  .scale = result.scale.get(),
                                  .sources = result.col_idx.get(),
                                  .hop = static_cast<uint32_t>(index),
                                  .count = fanout < 0 ? edges : n};
  if (fanout < 0) {
    launch(cuda::pick_all(), edges, picks);
  } else {
    const cuda::Source source =
        o.weighted ? cuda::pick_weighted(fanout, o.replace) : cuda::pick_uniform(fanout, o.replace);
    launch(source, n * cuda::pick_lanes(fanout, o.weighted), picks);
  }
  result.row_ptr = allocate(n + batches, 8);
  device->fill(result.row_ptr.get(), 0, (n + batches) * 8);
  const cuda::BlockRowsParams rows = {.offsets = offsets.get(),
                                      .dst_ptr = device_dst_ptr.get(),
                                      .edge_ptr = device_edge_ptr.get(),
                                      .batches = batches,
                                      .row_ptr = result.row_ptr.get(),
                                      .count = n};
  launch(cuda::block_rows(), n, rows);
  number(result, result.col_idx, device_edge_ptr);
  const auto take = [&](const Memory& from, int64_t size) {
    if (!from) return Memory();
    Memory to = allocate(edges, size);
    const cuda::TakeValuesParams taken = {
        .edges = result.edges.get(), .from = from.get(), .to = to.get(), .count = edges};
    launch(cuda::take_values(size == 4), edges, taken);
    return to;
  };
  result.weight = take(weight, 4);
  result.type = take(type, 2);
  return result;
}

// Gives every vertex that occurs for the first time a number, and every edge the number of its
// source.
void GpuSampler::State::number(HopResult& result, const Memory& sources, const Memory& device_edge_ptr) {
  const int64_t n = dst_ptr.back();
  const int64_t edges = result.edge_ptr.back();
  const Memory ones = allocate(edges, 4);
  const Memory sums = allocate(edges + 1, 8);
  const cuda::HopEdgesParams all = {.sources = sources.get(),
                                    .dst_ptr = device_dst_ptr.get(),
                                    .edge_ptr = device_edge_ptr.get(),
                                    .batches = batches,
                                    .num_nodes = num_nodes(),
                                    .count = edges};
  const cuda::MarkFirstParams marks = {.table = entries(), .ones = ones.get()};
  launch(cuda::mark_first(), edges, cuda::LaunchParams(all).then(marks));
  device->exclusive_sum(values<uint32_t>(ones), values<int64_t>(sums), edges);
  const std::vector<int64_t> fresh = ends(sums, device_edge_ptr, batches + 1);
  std::vector<int64_t> next_ptr(dst_ptr.size());
  for (size_t b = 0; b < next_ptr.size(); ++b) next_ptr[b] = dst_ptr[b] + fresh[b];
  const Memory device_next_ptr = upload(next_ptr);
  const Memory next = allocate(next_ptr.back(), 4);
  const cuda::NumberNewParams numbers = {.table = entries(),
                                         .ones = ones.get(),
                                         .sums = sums.get(),
                                         .next_ptr = device_next_ptr.get(),
                                         .next = next.get()};
  launch(cuda::number_new(), edges, cuda::LaunchParams(all).then(numbers));
  const cuda::KeepKnownParams kept = {.vertices = vertices.get(),
                                      .dst_ptr = device_dst_ptr.get(),
                                      .batches = batches,
                                      .next_ptr = device_next_ptr.get(),
                                      .next = next.get(),
                                      .count = n};
  launch(cuda::keep_known(), n, kept);
  const cuda::RelabelParams labels = {.sources = sources.get(),
                                      .edge_ptr = device_edge_ptr.get(),
                                      .batches = batches,
                                      .table = entries(),
                                      .num_nodes = num_nodes(),
                                      .count = edges};
  launch(cuda::relabel(), edges, labels);
  result.src_ptr = next_ptr;
  dst_ptr = std::move(next_ptr);
  device_dst_ptr = device_next_ptr;
  vertices = next;
}

std::string GpuSampler::why_not(const SampleOptions& options) {
  if (options.sampler != "neighbor") return "the " + options.sampler + " sampler";
  if (!options.type_fanout.empty()) return "fan-outs of edge types";
  const bool many =
      std::any_of(options.fanout.begin(), options.fanout.end(), [](int k) { return k > cuda::kMostDraws; });
  return many ? "fan-outs above " + std::to_string(cuda::kMostDraws) : "";
}

GpuSampler::GpuSampler(std::shared_ptr<GpuCompiler> compiler, const Sampler& sampler, GraphMemory memory) {
  const std::string why = why_not(sampler.options());
  if (!why.empty()) throw UserError("sampling on a GPU", "does not support " + why, "use --sample-on host");
  state_ = std::make_unique<State>(std::move(compiler), sampler, memory);
}

GpuSampler::~GpuSampler() = default;

std::vector<DeviceSample> GpuSampler::sample(std::span<const Batch> batches) {
  if (batches.empty()) return {};
  const TraceSpan span("sample", "device");
  State& s = *state_;
  s.begin(batches);
  const auto results = std::make_shared<Results>();
  for (int h = 0; h < s.sampler.layers(); ++h) results->hops.push_back(s.hop(h));
  results->vertices = std::move(s.vertices);
  std::vector<DeviceSample> samples;
  for (size_t b = 0; b < batches.size(); ++b) {
    DeviceSample sample;
    sample.num_seeds = static_cast<int64_t>(batches[b].seeds.size());
    sample.num_vertices = s.dst_ptr[b + 1] - s.dst_ptr[b];
    sample.vertices = values<NodeId>(results->vertices) + s.dst_ptr[b];
    sample.memory = results;
    for (size_t h = results->hops.size(); h-- > 0;) {
      const HopResult& hop = results->hops[h];
      const int64_t first = hop.edge_ptr[b];
      DeviceBlock block;
      block.num_dst = hop.dst_ptr[b + 1] - hop.dst_ptr[b];
      block.num_src = hop.src_ptr[b + 1] - hop.src_ptr[b];
      block.num_edges = hop.edge_ptr[b + 1] - first;
      block.row_ptr = values<int64_t>(hop.row_ptr) + hop.dst_ptr[b] + static_cast<int64_t>(b);
      block.col_idx = values<NodeId>(hop.col_idx) + first;
      block.edges = values<int64_t>(hop.edges) + first;
      if (hop.weight) block.edge_weight = values<float>(hop.weight) + first;
      if (hop.type) block.edge_type = values<uint16_t>(hop.type) + first;
      if (hop.scale) block.scale = values<float>(hop.scale) + first;
      sample.blocks.push_back(block);
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

Sample GpuSampler::to_host(const DeviceSample& sample, const Parts& parts) const {
  const TraceSpan span("sample", "to the host");
  Device& device = *state_->device;
  const auto read = [&]<class T>(const T* from, int64_t count) {
    if (from == nullptr) return Array<T>();
    Pooled<T> to = state_->pool.take<T>(count);
    device.download(to.data(), from, count * static_cast<int64_t>(sizeof(T)));
    return std::move(to).freeze(count);
  };
  Sample host;
  host.num_seeds = sample.num_seeds;
  host.vertices = read(sample.vertices, sample.num_vertices);
  for (const DeviceBlock& block : sample.blocks) {
    GraphArrays arrays;
    arrays.num_src = block.num_src;
    arrays.num_dst = block.num_dst;
    arrays.row_ptr = read(block.row_ptr, block.num_dst + 1);
    arrays.col_idx = read(block.col_idx, block.num_edges);
    arrays.edge_weight = read(block.edge_weight, block.num_edges);
    arrays.edge_type = read(block.edge_type, block.num_edges);
    arrays.num_edge_types = state_->graph().num_edge_types();
    host.blocks.push_back(Graph::trusted(std::move(arrays)));
    if (parts.edges) host.edges.push_back(read(block.edges, block.num_edges));
    if (parts.scale) host.scale.push_back(read(block.scale, block.num_edges));
  }
  return host;
}

}  // namespace nacre
