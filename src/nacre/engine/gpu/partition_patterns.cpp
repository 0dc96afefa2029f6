// Counts the patterns of a partition on the device. The value of an edge is new to its gTask if it
// last occurred before the gTask begins.
#include <bit>
#include <vector>

#include "nacre/engine/gpu/partition_work.h"

namespace nacre {
namespace {

constexpr int64_t kFrequent = 8;
constexpr int64_t kTallyWords = 65;

class PatternCounter {
 public:
  PatternCounter(PartitionWork& work, const PartitionColumns& columns, const GTasks& tasks)
      : work_(work),
        columns_(columns),
        tasks_(tasks),
        end_(tasks.table.free(Location::src, Attribute::id) ? Location::dst : Location::src),
        task_ptr_(work.upload(tasks.task_ptr.data(), tasks.num_tasks() + 1)),
        starts_(work.array<uint32_t>(columns.count)),
        thin_(work.zeros<uint8_t>(tasks.num_tasks())) {
    const cuda::TaskStartsParams params = {
        .task_ptr = task_ptr_.data(), .tasks = tasks.num_tasks(), .starts = starts_.data(), .count = columns.count};
    work.launch(cuda::task_starts(), columns.count, params);
    if (!tasks.table.owns(end_)) met_ = work.zeros<uint32_t>(vertices());
  }

  AttributePattern edge_ids() { return tally(nullptr, limit(Location::edge, Attribute::id), tasks_.num_edges()); }

  AttributePattern attribute(Location location, Attribute which) {
    const cuda::EdgeField field = field_of(columns_, location, which, 1);
    return count({&field, 1}, limit(location, which), which == Attribute::id && location == end_);
  }

  AttributePattern pairs(Location end) {
    const cuda::EdgeField fields[] = {field_of(columns_, Location::edge, Attribute::type, 1),
                                      field_of(columns_, end, Attribute::id, 1)};
    return count(fields, 0, false);
  }

  // Writes the kind of each gTask to `outlier`, and the numbers of outliers to `patterns`. Must be
  // called after all attributes have been counted.
  void judge(Patterns& patterns, std::vector<Outlier>& outlier) {
    const int64_t tasks = tasks_.num_tasks(), edges = columns_.count;
    PartitionArray<int64_t> often;
    if (met_.data() != nullptr) {
      const PartitionArray<uint32_t> flags = work_.array<uint32_t>(edges);
      const cuda::OftenMetParams params = {
          .counts = met_.data(), .ids = end_ids(), .least = kFrequent, .flags = flags.data(), .count = edges};
      work_.launch(cuda::often_met(), edges, params);
      often = work_.sums(flags, edges);
    }
    const int bounded = tasks_.table.at(Location::edge, Attribute::id).kind == Restriction::exact ? 1 : 0;
    const PartitionArray<uint8_t> kinds = work_.array<uint8_t>(tasks);
    const PartitionArray<uint64_t> result = work_.zeros<uint64_t>(8);
    const cuda::JudgeTasksParams params = {.often = often.data(),
                                           .task_ptr = task_ptr_.data(),
                                           .tasks = tasks,
                                           .edges = edges,
                                           .bounded = bounded,
                                           .thin = thin_.data(),
                                           .outlier = kinds.data(),
                                           .result = result.data()};
    work_.launch(cuda::judge_tasks(), tasks, params);
    const Array<uint64_t> sums = work_.read(result, 8);
    const auto sum = [&](Outlier kind, int64_t& of_tasks, int64_t& of_edges) {
      of_tasks = static_cast<int64_t>(sums[2 * static_cast<int64_t>(kind)]);
      of_edges = static_cast<int64_t>(sums[2 * static_cast<int64_t>(kind) + 1]);
    };
    sum(Outlier::underfill, patterns.underfill, patterns.underfill_edges);
    sum(Outlier::overfill, patterns.overfill, patterns.overfill_edges);
    sum(Outlier::frequent, patterns.frequent, patterns.frequent_edges);
    const Array<uint8_t> read = work_.read(kinds, tasks);
    outlier.resize(tasks);
    for (int64_t t = 0; t < tasks; ++t) outlier[t] = static_cast<Outlier>(read[t]);
  }

 private:
  int64_t vertices() const { return end_ == Location::src ? columns_.num_src : columns_.num_dst; }
  const uint32_t* end_ids() const { return (end_ == Location::src ? columns_.src : columns_.dst).data(); }
  int64_t limit(Location location, Attribute attribute) const {
    const Restriction& entry = tasks_.table.at(location, attribute);
    return entry.kind == Restriction::exact ? entry.k : 0;
  }

  AttributePattern count(std::span<const cuda::EdgeField> fields, int64_t most, bool meet) {
    const int64_t edges = columns_.count;
    const PartitionWork::Links links = work_.link(columns_, fields, false);
    const PartitionArray<uint32_t> fresh = work_.array<uint32_t>(edges);
    const uint32_t* ids = meet && met_.data() != nullptr ? end_ids() : nullptr;
    const cuda::FreshValuesParams params = {.before = links.before.data(),
                                            .starts = starts_.data(),
                                            .ids = ids,
                                            .counts = met_.data(),
                                            .fresh = fresh.data(),
                                            .count = edges};
    work_.launch(cuda::fresh_values(), edges, params);
    const PartitionArray<int64_t> sums = work_.sums(fresh, edges);
    return tally(sums.data(), most, work_.value_at(sums, edges));
  }

  AttributePattern tally(const int64_t* sums, int64_t most, int64_t total) {
    const int64_t tasks = tasks_.num_tasks();
    const PartitionArray<uint64_t> result = work_.zeros<uint64_t>(kTallyWords);
    const cuda::TallyParams params = {.sums = sums,
                                      .task_ptr = task_ptr_.data(),
                                      .tasks = tasks,
                                      .limit = most,
                                      .thin = thin_.data(),
                                      .result = result.data()};
    work_.launch(cuda::tally(), tasks, params);
    const Array<uint64_t> words = work_.read(result, kTallyWords);
    AttributePattern pattern;
    pattern.unique_total = total;
    pattern.unique_max = static_cast<int64_t>(words[0]);
    if (tasks == 0) return pattern;
    pattern.unique_mean = static_cast<double>(total) / static_cast<double>(tasks);
    pattern.duplication = static_cast<double>(columns_.count) / static_cast<double>(total);
    const auto size = static_cast<int64_t>(std::bit_width(words[0]));
    for (int64_t b = 0; b < size; ++b) pattern.histogram.push_back(static_cast<int64_t>(words[1 + b]));
    return pattern;
  }

  PartitionWork& work_;
  const PartitionColumns& columns_;
  const GTasks& tasks_;
  Location end_;  // end whose vertices may be frequent
  PartitionArray<int64_t> task_ptr_;
  PartitionArray<uint32_t> starts_;  // for each edge, the first edge of its gTask
  PartitionArray<uint8_t> thin_;
  PartitionArray<uint32_t> met_;  // number of gTasks of each vertex; empty if each is in one
};

}  // namespace

PatternReport patterns_on(PartitionWork& work, const PartitionColumns& columns, const GTasks& tasks) {
  PatternReport report;
  Patterns& p = report.patterns;
  p.tasks = tasks.num_tasks();
  p.edges = tasks.num_edges();
  PatternCounter counter(work, columns, tasks);
  p.edge_id = counter.edge_ids();
  p.src_id = counter.attribute(Location::src, Attribute::id);
  p.dst_id = counter.attribute(Location::dst, Attribute::id);
  p.edge_type = counter.attribute(Location::edge, Attribute::type);
  p.src_degree = counter.attribute(Location::src, Attribute::degree);
  p.dst_degree = counter.attribute(Location::dst, Attribute::degree);
  p.src_type_pair = tasks.graph.typed() ? counter.pairs(Location::src) : p.src_id;
  p.dst_type_pair = tasks.graph.typed() ? counter.pairs(Location::dst) : p.dst_id;
  if (p.tasks > 0) {
    p.volume_change = static_cast<double>(p.dst_id.unique_total) / static_cast<double>(p.src_id.unique_total);
  }
  counter.judge(p, report.outlier);
  return report;
}

}  // namespace nacre
