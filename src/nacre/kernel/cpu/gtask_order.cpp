// Chooses the order in which the edges of a partition run.
#include <algorithm>
#include <utility>

#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gtask_view.h"

namespace nacre::cpu {
namespace {

// The number of edges in a pool of small gTasks. It is enough for long products of every type, and
// small enough for one unit.
constexpr int64_t kPoolEdges = 2048;
constexpr int64_t kPoolEdgesPerType = 96;
constexpr int64_t kMaxPoolEdges = 16384;
constexpr int64_t kSortTasks = 256;

// The gTasks in the order in which they run; a span is one gTask or a pool of small ones.
struct Schedule {
  std::vector<int64_t> tasks;
  std::vector<int64_t> span_task;  // first task of each span; then the number of tasks
  std::vector<uint8_t> large, pooled;

  void add_span(bool is_large, bool is_pooled) {
    span_task.push_back(static_cast<int64_t>(tasks.size()));
    large.push_back(is_large ? 1 : 0);
    pooled.push_back(is_pooled ? 1 : 0);
  }
};

Schedule in_partition_order(const GTasks& tasks) {
  Schedule schedule;
  for (int64_t t = 0; t < tasks.num_tasks(); ++t) {
    schedule.add_span(false, false);
    schedule.tasks.push_back(t);
  }
  return schedule;
}

// Returns a schedule with overfill gTasks first and underfill gTasks last, in pools.
Schedule outliers_first(const GTasks& tasks) {
  const std::vector<Outlier> outlier = find_patterns(tasks).outlier;
  const auto kind = [&](int64_t t) { return outlier[t]; };
  Schedule schedule;
  for (const bool large : {true, false}) {
    for (int64_t t = 0; t < tasks.num_tasks(); ++t) {
      if (kind(t) == Outlier::underfill || (kind(t) == Outlier::overfill) != large) continue;
      schedule.add_span(large, false);
      schedule.tasks.push_back(t);
    }
  }
  const int64_t wanted = std::clamp(kPoolEdgesPerType * tasks.graph.num_edge_types(), kPoolEdges, kMaxPoolEdges);
  int64_t edges = wanted;
  for (int64_t t = 0; t < tasks.num_tasks(); ++t) {
    if (kind(t) != Outlier::underfill) continue;
    const int64_t size = tasks.task_ptr[t + 1] - tasks.task_ptr[t];
    if (edges + size > wanted) {
      schedule.add_span(false, true);
      edges = 0;
    }
    edges += size;
    schedule.tasks.push_back(t);
  }
  return schedule;
}

// Sorts the entries of a span by (type, row, position). Entries are numbers into the arrays of the
// partition.
class EntrySort {
 public:
  EntrySort(const GTasks& tasks, const GTaskOptions& options)
      : tasks_(tasks),
        row_((options.direction == Direction::by_dst ? tasks.dst : tasks.src).data()),
        by_type_(options.by_type && tasks.graph.typed() && tasks.graph.num_edge_types() > 1) {}

  void operator()(EdgeId* entries, int64_t count) {
    keys_.clear();
    bool sorted = true;
    for (int64_t i = 0; i < count; ++i) {
      const EdgeId entry = entries[i];
      const auto type = static_cast<uint64_t>(by_type_ ? tasks_.type_at(entry) : 0);
      const Key key = {type << 32 | row_[entry], static_cast<EdgeId>(tasks_.edge_at(entry)), entry};
      sorted = sorted && (keys_.empty() || keys_.back() < key);
      keys_.push_back(key);
    }
    if (sorted) return;
    std::sort(keys_.begin(), keys_.end());
    for (const Key& key : keys_) *entries++ = key.entry;
  }

 private:
  struct Key {
    uint64_t type_and_row;
    EdgeId position;
    EdgeId entry;
    bool operator<(const Key& other) const {
      return type_and_row != other.type_and_row ? type_and_row < other.type_and_row : position < other.position;
    }
  };

  const GTasks& tasks_;
  const NodeId* row_;
  bool by_type_;
  std::vector<Key> keys_;
};

template <class T, class F>
Array<T> filled(int64_t size, const F& value) {
  Buffer<T> buffer(size);
  parallel_for(size, 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) buffer[i] = value(i);
  });
  return std::move(buffer).freeze();
}

bool is_identity(const EdgeId* numbers, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    if (numbers[i] != static_cast<EdgeId>(i)) return false;
  }
  return true;
}

}  // namespace

GTaskOrder order_gtasks(const GTasks& tasks, const GTaskOptions& options) {
  Schedule schedule = options.split_outliers ? outliers_first(tasks) : in_partition_order(tasks);
  const auto spans = static_cast<int64_t>(schedule.span_task.size());
  schedule.span_task.push_back(static_cast<int64_t>(schedule.tasks.size()));
  GTaskOrder order;
  order.span_ptr.reserve(schedule.span_task.size());
  std::vector<int64_t> task_begin;  // first entry of each scheduled task
  task_begin.reserve(schedule.tasks.size());
  int64_t entries = 0;
  for (const int64_t t : schedule.tasks) {
    task_begin.push_back(entries);
    entries += tasks.task_ptr[t + 1] - tasks.task_ptr[t];
  }
  for (int64_t s = 0; s < spans; ++s) {
    order.span_ptr.push_back(task_begin[schedule.span_task[s]]);
  }
  order.span_ptr.push_back(entries);

  Buffer<EdgeId> entry(entries);
  parallel_for(spans, std::clamp<int64_t>(spans / kSortTasks, 1, 1 << 12), [&](int64_t begin, int64_t end) {
    EntrySort sort(tasks, options);
    for (int64_t s = begin; s < end; ++s) {
      const auto i = static_cast<size_t>(s);
      for (int64_t k = schedule.span_task[i]; k < schedule.span_task[i + 1]; ++k) {
        int64_t at = task_begin[k];
        const int64_t t = schedule.tasks[k];
        for (int64_t e = tasks.task_ptr[t]; e < tasks.task_ptr[t + 1]; ++e) entry[at++] = static_cast<EdgeId>(e);
      }
      sort(entry.data() + order.span_ptr[i], order.span_ptr[i + 1] - order.span_ptr[i]);
    }
  });
  order.large = std::move(schedule.large);
  order.pooled = std::move(schedule.pooled);
  if (is_identity(entry.data(), entries)) {
    order.edge = tasks.edge;
    order.src = tasks.src;
    order.dst = tasks.dst;
    return order;
  }
  order.edge = filled<EdgeId>(entries, [&](int64_t i) { return static_cast<EdgeId>(tasks.edge_at(entry[i])); });
  order.src = filled<NodeId>(entries, [&](int64_t i) { return tasks.src[entry[i]]; });
  order.dst = filled<NodeId>(entries, [&](int64_t i) { return tasks.dst[entry[i]]; });
  if (is_identity(order.edge.data(), entries)) order.edge = {};
  return order;
}

}  // namespace nacre::cpu
