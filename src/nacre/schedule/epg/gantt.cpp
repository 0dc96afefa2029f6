#include "nacre/schedule/epg/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/log.h"

namespace nacre {
namespace {

using nlohmann::ordered_json;

// These are the letters of the picture: those of the kinds of operations in the order of EpgKind,
// then those of transfers to a device and from it.
constexpr std::string_view kLetters = "sgacCAu><";

char letter(const ExecutionPlanGraph& graph, const Units& units, const ScheduledBatch& batch, const PlacedWork& work) {
  if (work.transfer) return (work.unit - units.devices) % 2 == 0 ? '>' : '<';
  const std::vector<EpgOperation>& operations = graph.batches[batch.batch][batch.placing->way].operations;
  return kLetters[static_cast<size_t>(operations[work.operation].kind)];
}

// A Line is one line of the picture. For every character, it adds up how long each letter's work
// runs in the time of that character.
class Line {
 public:
  Line(size_t width, double seconds) : cells_(width), step_(seconds / static_cast<double>(width)) {}

  void add(char what, double begin, double end) {
    const size_t letter = kLetters.find(what);
    const auto last = static_cast<double>(cells_.size());
    const double from = std::clamp(begin / step_, 0.0, last), to = std::clamp(end / step_, 0.0, last);
    for (auto c = static_cast<size_t>(from); c < cells_.size() && static_cast<double>(c) < to; ++c)
      cells_[c][letter] += std::min(to, static_cast<double>(c + 1)) - std::max(from, static_cast<double>(c));
  }

  std::string text() const {
    std::string text;
    for (const auto& cell : cells_) {
      const auto most = std::max_element(cell.begin(), cell.end());
      double all = 0;
      for (const double share : cell) all += share;
      text += all < 0.5 ? '.' : kLetters[most - cell.begin()];
    }
    return text;
  }

 private:
  std::vector<std::array<double, kLetters.size()>> cells_;
  double step_;
};

const NamedSchedule& shown_schedule(const ScheduleComparison& comparison, const std::string& shown) {
  const NamedSchedule* schedule = comparison.find(shown);
  NACRE_CHECK(schedule != nullptr, "the schedule '" + shown + "' is not in the list");
  return *schedule;
}

}  // namespace

std::string gantt_text(const ExecutionPlanGraph& graph, const NamedSchedule& schedule, int width, double most) {
  const Units units = units_of(graph);
  const double seconds = most > 0 ? std::min(most, schedule.timeline.makespan) : schedule.timeline.makespan;
  const std::vector<ScheduledBatch> order = scheduled_batches(schedule.grouping, schedule.placings);
  std::string text;
  for (int unit = 0; unit < units.count() && seconds > 0; ++unit) {
    std::vector<Line> lines(static_cast<size_t>(units.workers(unit)), Line(static_cast<size_t>(width), seconds));
    for (const TimelineSpan& span : schedule.timeline.spans) {
      const ScheduledBatch& batch = order[span.turn];
      const PlacedWork& work = batch.placing->work[span.work];
      if (work.unit != unit) continue;
      const char what = letter(graph, units, batch, work);
      const auto first = static_cast<size_t>(span.worker), workers = static_cast<size_t>(work.workers);
      for (size_t w = first; w < std::min(first + workers, lines.size()); ++w) lines[w].add(what, span.begin, span.end);
    }
    for (size_t w = 0; w < lines.size(); ++w) {
      const std::string name = units.name(unit, graph.devices);
      text += fmt::format("  {:<18} {}{}\n", w == 0 ? name.substr(0, 18) : "", lines[w].text(),
                          w == 0 ? fmt::format(" {:3.0f} %", 100 * schedule.timeline.busy[unit]) : "");
    }
  }
  return text + "  s sample, g gather, a aggregate, c combine, C A their gradients, u update, > < transfers\n";
}

std::string schedules_text(const ExecutionPlanGraph& graph, const ScheduleComparison& comparison,
                           const std::string& shown) {
  const LowerBound& bound = comparison.bound;
  std::string text = fmt::format("  {:<12} {:>12} {:>9}\n", "schedule", "predicted", "gap");
  for (const NamedSchedule& s : comparison.schedules) {
    text +=
        fmt::format("  {:<12} {:>12} {:>7.1f} %\n", s.name, human_seconds(s.timeline.makespan), 100 * gap_of(s, bound));
  }
  text += fmt::format("  no schedule takes less than {} (work {}, longest chain {}, updates {})\n\n",
                      human_seconds(bound.seconds), human_seconds(bound.load), human_seconds(bound.path),
                      human_seconds(bound.updates));
  const NamedSchedule& schedule = shown_schedule(comparison, shown);
  // The picture shows only the first batches, because in a picture of many batches every character
  // would be an average.
  constexpr double kBatchesShown = 8;
  const double batches = std::max(1.0, static_cast<double>(graph.num_batches()));
  const double most = schedule.timeline.makespan * std::min(1.0, kBatchesShown / batches);
  text += fmt::format("  {}: {} of {}\n", shown, human_seconds(most), human_seconds(schedule.timeline.makespan));
  return text + gantt_text(graph, schedule, 72, most);
}

std::string schedule_json(const ExecutionPlanGraph& graph, const ScheduleComparison& comparison,
                          const std::string& shown) {
  const LowerBound& bound = comparison.bound;
  ordered_json j = {{"name", shown},
                    {"devices", graph.devices},
                    {"staleness", graph.staleness},
                    {"bound_s", bound.seconds},
                    {"bound_load_s", bound.load},
                    {"bound_path_s", bound.path},
                    {"bound_updates_s", bound.updates}};
  for (const NamedSchedule& s : comparison.schedules)
    j["schedules"][s.name] = {{"predicted_s", s.timeline.makespan}, {"gap", gap_of(s, bound)}};
  const NamedSchedule& schedule = shown_schedule(comparison, shown);
  const Units units = units_of(graph);
  for (int u = 0; u < units.count(); ++u) j["busy"][units.name(u, graph.devices)] = schedule.timeline.busy[u];
  j["sampled_together"] = schedule.grouping.options.sampled_together;
  ordered_json batches = ordered_json::array();
  for (const ScheduledBatch& b : scheduled_batches(schedule.grouping, schedule.placings)) {
    const BatchGraph& way = graph.batches[b.batch][b.placing->way];
    ordered_json operations = ordered_json::array();
    for (size_t i = 0; i < way.operations.size(); ++i) {
      const EpgOperation& op = way.operations[i];
      const int device = b.placing->devices[i];
      operations.push_back({{"operation", epg_kind_name(op.kind)},
                            {"layer", op.layer},
                            {"device", graph.devices[device]},
                            {"predicted_s", op.seconds[device]}});
    }
    batches.push_back({{"batch", b.batch}, {"group", b.group}, {"order", way.name}, {"operations", operations}});
  }
  j["batches"] = batches;
  return j.dump();
}

}  // namespace nacre
