#include "nacre/engine/gpu/partition.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/gpu/partition_work.h"
#include "nacre/gtask/sort_keys.h"

namespace nacre {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

std::vector<cuda::EdgeField> fields_of(const PartitionColumns& columns, std::span<const SortKey> keys) {
  std::vector<cuda::EdgeField> fields;
  fields.reserve(keys.size());
  for (const SortKey& key : keys) fields.push_back(field_of(columns, key.location, key.attribute, key.block));
  return fields;
}

// Returns as many of the last fields as fit together into a word of 64 bits.
std::span<const cuda::EdgeField> word_of(std::span<const cuda::EdgeField> fields) {
  int bits = 0;
  size_t first = fields.size();
  while (first > 0 && bits + fields[first - 1].bits <= 64) bits += fields[--first].bits;
  return fields.subspan(first);
}

// Returns whether equal values of the key are neighbours wherever a gTask can be. That is so if the
// keys before it cannot change inside a gTask, or are the degree of the same vertex.
bool in_runs(const PartitionTable& table, std::span<const SortKey> keys, size_t which) {
  const SortKey& key = keys[which];
  if (key.block > 1) return false;
  return std::all_of(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(which), [&](const SortKey& before) {
    const Restriction& entry = table.at(before.location, before.attribute);
    return (entry.kind == Restriction::exact && entry.k == 1) ||
           (before.attribute == Attribute::degree && key.attribute == Attribute::id && before.location == key.location);
  });
}

Array<int64_t> runs_of(int64_t edges, int64_t most) {
  const int64_t size = std::min(most, std::max<int64_t>(edges, 1));
  const int64_t tasks = (edges + size - 1) / size;
  Buffer<int64_t> task_ptr(tasks + 1);
  parallel_for(tasks + 1, 1 << 18, [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e; ++t) task_ptr[t] = std::min(t * size, edges);
  });
  return std::move(task_ptr).freeze();
}

// Returns the edges sorted by the fields. As in a radix sort, the last word of fields is sorted by
// first.
PartitionArray<uint32_t> sorted_edges(PartitionWork& work, const PartitionColumns& columns,
                                      std::span<const cuda::EdgeField> fields) {
  PartitionArray<uint32_t> order;
  while (!fields.empty()) {
    const std::span<const cuda::EdgeField> word = word_of(fields);
    order = work.sort_by(columns, word, order.data()).values;
    fields = fields.first(fields.size() - word.size());
  }
  return order;
}

// Returns the first edge of each gTask, followed by the number of edges.
Array<int64_t> borders(PartitionWork& work, const PartitionColumns& columns, const PartitionTable& table,
                       const Graph& graph) {
  const int64_t edges = columns.count;
  const Restriction& most = table.at(Location::edge, Attribute::id);
  const int64_t most_edges = most.kind == Restriction::exact ? most.k : kUnlimited;
  const std::vector<SortKey> keys = sort_keys(table);
  std::vector<size_t> watched;
  for (size_t k = 0; k < keys.size(); ++k) {
    if (keys[k].attribute == Attribute::type && !graph.typed()) continue;
    if (table.at(keys[k].location, keys[k].attribute).kind == Restriction::exact) watched.push_back(k);
  }
  if (watched.empty() || edges == 0) return runs_of(edges, most_edges);
  PartitionArray<uint32_t> next = work.array<uint32_t>(edges);
  work.launch(cuda::first_bounds(), edges,
              cuda::FirstBoundsParams{.next = next.data(), .count = edges, .most = most_edges});
  // Bounds by runs come first, because they keep the windows short.
  for (const bool runs : {true, false}) {
    for (const size_t k : watched) {
      if (in_runs(table, keys, k) != runs) continue;
      const int64_t limit = table.at(keys[k].location, keys[k].attribute).k;
      if (runs) {
        work.bound_by_runs(columns, fields_of(columns, std::span(keys).first(k + 1)), limit, next);
      } else {
        work.bound_by_values(columns, field_of(columns, keys[k].location, keys[k].attribute, 1), limit, next);
      }
    }
  }
  return work.follow(std::move(next), edges);
}

}  // namespace

struct GpuPartitioner::Columns : PartitionColumns {
  const void* of = nullptr;  // address of the array of sources on the host
};

GpuPartitioner::GpuPartitioner(std::shared_ptr<GpuCompiler> compiler)
    : compiler_(std::move(compiler)), work_(std::make_unique<PartitionWork>(*compiler_)) {}
GpuPartitioner::~GpuPartitioner() = default;

const GpuPartitioner::Columns& GpuPartitioner::columns_of(const Graph& graph) {
  if (graph_ && graph_->of == graph.col_idx().data() && graph_->count == graph.num_edges()) return *graph_;
  last_.reset();
  graph_ = std::make_unique<Columns>();
  static_cast<PartitionColumns&>(*graph_) = work_->place(graph);
  graph_->of = graph.col_idx().data();
  return *graph_;
}

GTasks GpuPartitioner::partition(const Graph& graph, const PartitionTable& table) {
  NACRE_CHECK(graph.num_edges() <= INT64_C(0xFFFFFFFF), "the graph has more edges than 32 bits can number");
  const Columns& own = columns_of(graph);
  last_.reset();
  PartitionWork& work = *work_;
  GTasks tasks{graph, table, {}, {}, graph.col_idx(), graph.edge_dst(), graph.edge_type()};
  const std::vector<SortKey> keys = essential_keys(sort_keys(table), graph);
  if (!keys.empty() && own.count > 0) {
    const PartitionArray<uint32_t> order = sorted_edges(work, own, fields_of(own, keys));
    last_ = std::make_unique<Columns>();
    static_cast<PartitionColumns&>(*last_) = work.take(own, order);
    tasks.edge = work.read(order, own.count);
    tasks.src = work.read(last_->src, own.count);
    tasks.dst = work.read(last_->dst, own.count);
    if (graph.typed()) tasks.type = work.read(last_->type, own.count);
  }
  last_of_ = tasks.src.data();
  tasks.task_ptr = borders(work, last_ ? *last_ : own, table, graph);
  return tasks;
}

PatternReport GpuPartitioner::find_patterns(const GTasks& tasks) {
  const Columns& own = columns_of(tasks.graph);
  PartitionWork& work = *work_;
  PartitionColumns placed;
  const PartitionColumns* columns = tasks.edge.empty() ? &own : last_.get();
  if (!tasks.edge.empty() && (!last_ || last_of_ != tasks.src.data())) {
    placed = work.take(own, work.upload(tasks.edge.data(), tasks.num_edges()));
    columns = &placed;
  }
  return patterns_on(work, *columns, tasks);
}

std::function<GTasks(const Graph&, const PartitionTable&)> partition_on(std::shared_ptr<GpuCompiler> compiler) {
  return [compiler = std::move(compiler)](const Graph& graph, const PartitionTable& table) {
    return GpuPartitioner(compiler).partition(graph, table);
  };
}

}  // namespace nacre
