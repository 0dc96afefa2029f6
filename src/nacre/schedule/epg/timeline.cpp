#include "nacre/schedule/epg/timeline.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {
namespace {

struct Event {
  double time = 0;
  size_t task = 0;
  friend bool operator>(const Event& a, const Event& b) {
    return std::pair(a.time, a.task) > std::pair(b.time, b.task);
  }
};

class Run {
 public:
  Run(const ExecutionPlanGraph& graph, std::span<const ScheduledBatch> order, const TimelineOptions& options)
      : graph_(graph), units_(units_of(graph)), order_(order), options_(options) {}

  Timeline run() {
    NACRE_CHECK(options_.sampled_together == 0 || (options_.eager && !options_.one_by_one),
                "batches that wait for each other cannot be sampled together");
    list_tasks();
    connect();
    ready_.resize(static_cast<size_t>(units_.count()));
    for (int u = 0; u < units_.count(); ++u) free_.emplace_back(static_cast<size_t>(units_.workers(u)), true);
    std::vector<size_t> first;
    for (size_t t = 0; t < tasks_.size(); ++t) {
      if (tasks_[t].waits == 0) first.push_back(t);
    }
    for (const size_t t : first) make_ready(t);
    start(0);
    while (!events_.empty()) {
      const double now = events_.top().time;
      while (!events_.empty() && events_.top().time <= now) {
        finish(events_.top().task);
        events_.pop();
      }
      start(now);
    }
    NACRE_CHECK(done_ == tasks_.size(), "a schedule waits for itself");
    return report();
  }

 private:
  struct Task {
    const PlacedWork* work = nullptr;
    int turn = 0;
    int index = 0;  // index in Placing::work
    bool samples = false;
    int waits = 0;  // number of tasks that must end first
    std::vector<size_t> next;
    std::vector<size_t> workers;  // workers of the unit that the task took
    double begin = 0, end = 0;
  };

  void list_tasks() {
    for (size_t turn = 0; turn < order_.size(); ++turn) {
      first_.push_back(tasks_.size());
      const ScheduledBatch& b = order_[turn];
      const std::vector<EpgOperation>& operations = graph_.batches[b.batch][b.placing->way].operations;
      for (size_t w = 0; w < b.placing->work.size(); ++w) {
        Task task;
        task.work = &b.placing->work[w];
        task.turn = static_cast<int>(turn);
        task.index = static_cast<int>(w);
        task.samples = !task.work->transfer && operations[task.work->operation].kind == EpgKind::sample;
        tasks_.push_back(std::move(task));
      }
    }
    first_.push_back(tasks_.size());
  }

  void wait(size_t task, size_t before) {
    tasks_[before].next.push_back(task);
    ++tasks_[task].waits;
  }

  // Adds a joint, which is a task that takes no time, and returns its number. If n tasks wait for a
  // joint that waits for m tasks, n + m connections do instead of n · m.
  size_t add_joint() {
    tasks_.emplace_back();
    return tasks_.size() - 1;
  }

  void connect() {
    const int stale = 1 + graph_.staleness;
    size_t over = 0;   // the joint that ends the turn or the group before; 0 if there is none
    size_t group = 0;  // the first turn of the group
    for (size_t turn = 0; turn < order_.size(); ++turn) {
      const bool next_group = turn > 0 && order_[turn].group != order_[turn - 1].group;
      if (turn > 0 && (options_.one_by_one || (next_group && !options_.eager))) {
        over = add_joint();
        for (size_t t = first_[options_.one_by_one ? turn - 1 : group]; t < first_[turn]; ++t) wait(over, t);
      }
      if (next_group) group = turn;
      for (size_t t = first_[turn]; t < first_[turn + 1]; ++t) {
        for (const int before : tasks_[t].work->after) wait(t, first_[turn] + static_cast<size_t>(before));
        if (tasks_[t].work->reads_weights && turn >= static_cast<size_t>(stale)) {
          const size_t old = turn - static_cast<size_t>(stale);
          wait(t, first_[old] + static_cast<size_t>(order_[old].placing->update));
        }
        if (over > 0) wait(t, over);
      }
      // The update of a batch waits for the update of the batch before it.
      if (turn > 0)
        wait(first_[turn] + static_cast<size_t>(order_[turn].placing->update),
             first_[turn - 1] + static_cast<size_t>(order_[turn - 1].placing->update));
    }
    const auto together = static_cast<size_t>(options_.sampled_together);
    for (size_t begin = 0; together > 0 && begin < order_.size(); begin += together)
      sample_together(begin, std::min(begin + together, order_.size()));
  }

  void sample_together(size_t begin, size_t end) {
    const size_t sampled = add_joint();
    for (size_t t = first_[begin]; t < first_[end]; ++t) {
      if (tasks_[t].samples) {
        wait(sampled, t);
      } else {
        wait(t, sampled);
      }
    }
  }

  // Makes a task ready. A joint needs no unit, so it ends at once.
  void make_ready(size_t t) {
    if (tasks_[t].work == nullptr) return finish(t);
    ready_[tasks_[t].work->unit].insert(t);
  }

  void finish(size_t t) {
    ++done_;
    const Task& task = tasks_[t];
    for (const size_t w : task.workers) free_[task.work->unit][w] = true;
    for (const size_t n : task.next) {
      if (--tasks_[n].waits == 0) make_ready(n);
    }
  }

  // Starts all ready tasks for which workers are free. Tasks are numbered in the order of the
  // batches, so the ready task with the least number belongs to the earliest batch.
  void start(double now) {
    for (size_t u = 0; u < ready_.size(); ++u) {
      std::vector<bool>& free = free_[u];
      while (!ready_[u].empty()) {
        const size_t t = *ready_[u].begin();
        Task& task = tasks_[t];
        if (std::count(free.begin(), free.end(), true) < task.work->workers) break;
        for (size_t w = 0; task.workers.size() < static_cast<size_t>(task.work->workers); ++w) {
          if (!free[w]) continue;
          free[w] = false;
          task.workers.push_back(w);
        }
        task.begin = now;
        task.end = now + task.work->seconds;
        events_.push({task.end, t});
        ready_[u].erase(ready_[u].begin());
      }
    }
  }

  Timeline report() const {
    Timeline timeline;
    timeline.busy.assign(static_cast<size_t>(units_.count()), 0);
    for (const Task& task : tasks_) {
      if (task.work == nullptr) continue;
      timeline.spans.push_back({task.turn, task.index, static_cast<int>(task.workers.front()), task.begin, task.end});
      timeline.makespan = std::max(timeline.makespan, task.end);
      timeline.busy[task.work->unit] += task.work->seconds * task.work->workers;
    }
    std::stable_sort(timeline.spans.begin(), timeline.spans.end(),
                     [](const TimelineSpan& a, const TimelineSpan& b) { return a.begin < b.begin; });
    for (int u = 0; u < units_.count() && timeline.makespan > 0; ++u)
      timeline.busy[u] /= timeline.makespan * units_.workers(u);
    return timeline;
  }

  const ExecutionPlanGraph& graph_;
  Units units_;
  std::span<const ScheduledBatch> order_;
  const TimelineOptions& options_;
  std::vector<Task> tasks_;
  std::vector<size_t> first_;  // first task of each turn; the last entry is the number of tasks
  std::vector<std::set<size_t>> ready_;
  std::vector<std::vector<bool>> free_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  size_t done_ = 0;
};

}  // namespace

Timeline run_schedule(const ExecutionPlanGraph& graph, std::span<const ScheduledBatch> order,
                      const TimelineOptions& options) {
  return Run(graph, order, options).run();
}

void check_timeline(const ExecutionPlanGraph& graph, std::span<const ScheduledBatch> order, const Timeline& timeline) {
  constexpr double kRounding = 1e-9;
  std::map<std::pair<int, int>, const TimelineSpan*> span_of;
  for (const TimelineSpan& s : timeline.spans) span_of[{s.turn, s.work}] = &s;
  const auto work_of = [&](const TimelineSpan& s) -> const PlacedWork& { return order[s.turn].placing->work[s.work]; };
  // For each unit, this lists the times at which workers are taken or freed.
  std::map<int, std::vector<std::pair<double, int>>> changes;
  size_t pieces = 0;
  for (const ScheduledBatch& b : order) {
    pieces += b.placing->work.size();
    NACRE_CHECK(
        update_device(graph, b.batch, *b.placing) == update_device(graph, order.front().batch, *order.front().placing),
        "the weights of a schedule lie on two devices");
  }
  NACRE_CHECK(pieces == timeline.spans.size(), "a schedule leaves work out");
  for (const TimelineSpan& s : timeline.spans) {
    const PlacedWork& work = work_of(s);
    changes[work.unit].push_back({s.begin, work.workers});
    changes[work.unit].push_back({s.end, -work.workers});
    for (const int before : work.after)
      NACRE_CHECK(span_of.at({s.turn, before})->end <= s.begin + kRounding, "work starts before its values are there");
    const int old = s.turn - 1 - graph.staleness;
    if (!work.reads_weights || old < 0) continue;
    const int update = order[old].placing->update;
    NACRE_CHECK(span_of.at({old, update})->end <= s.begin + kRounding, "work reads weights that are too old");
  }
  for (auto& [unit, list] : changes) {
    std::sort(list.begin(), list.end());
    int taken = 0;
    for (const auto& [time, workers] : list) {
      taken += workers;
      NACRE_CHECK(taken <= units_of(graph).workers(unit), "work overlaps on a unit");
    }
  }
}

}  // namespace nacre
