#include "nacre/train/planner.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/engine/calibrate.h"
#include "nacre/engine/measure.h"
#include "nacre/train/bill.h"
#include "nacre/train/room.h"

namespace nacre {
namespace {

// Times plans on every trial batch, so that a plan suits them all. A time is negative if one of the
// trials does not fit in memory.
class TrialTimers : public PlanTimer {
 public:
  void add(const TrialBlocks& trial, std::shared_ptr<Backend> backend, int64_t memory) {
    timers_.push_back(std::make_unique<KernelTimer>(trial.blocks, std::move(backend), trial.bind, memory));
  }
  size_t size() const { return timers_.size(); }
  double kernel(const Plan& plan, size_t kernel) override {
    return mean([&](KernelTimer& timer) { return timer(plan, kernel); });
  }
  double step(const Plan& plan) override {
    return mean([&](KernelTimer& timer) { return timer.step(plan); });
  }

 private:
  template <class Time>
  double mean(const Time& time) {
    double sum = 0;
    for (const auto& timer : timers_) {
      const double seconds = time(*timer);
      if (seconds < 0) return seconds;
      sum += seconds;
    }
    return sum / static_cast<double>(timers_.size());
  }
  std::vector<std::unique_ptr<KernelTimer>> timers_;
};

// Holds the graph or the batches that plans are made for and timed on.
struct Trials {
  std::vector<TrialBlocks> list;
  size_t typical = 0;     // index of the trial whose sizes decide
  bool changing = false;  // whether the trials are batches
};

// Returns timers of as many trials as fit in `memory` together, the typical one first; `bytes` is
// the size of one trial.
std::unique_ptr<PlanTimer> timers_of(const Trials& trials, const std::shared_ptr<Backend>& backend, int64_t memory,
                                     int64_t bytes) {
  const auto fit = static_cast<size_t>(std::max<int64_t>(1, memory / 2 / std::max<int64_t>(1, bytes)));
  auto timers = std::make_unique<TrialTimers>();
  const auto add = [&](size_t i) {
    timers->add(trials.list[i], trials.changing ? backend->scoped() : backend, memory);
  };
  add(trials.typical);
  for (size_t i = 0; i < trials.list.size() && timers->size() < fit; ++i) {
    if (i != trials.typical) add(i);
  }
  return timers;
}

PlanningInput input_of(const Dfg& dfg, const Blocks& blocks, const std::shared_ptr<Backend>& backend) {
  PlanningInput input{dfg, blocks};
  input.device = backend->traits();
  input.device_type = backend->name();
  input.kernels_version = kProfileVersion;
  input.available_bytes = [backend] { return backend->available_bytes(); };
  if (backend->on_host()) input.profile = [] { return machine_profile(); };
  return input;
}

// Frees the halves of the edges if they were only made to compare plans. If plans were timed, the
// back end has forms of the halves; if it cannot drop these forms, the halves stay.
void drop_unused_cover(const PlanAnswer& answer, const Blocks& blocks, Backend& backend) {
  if (blocks.cover_bytes() == 0 || blocks.uses_cover(answer.plan.dfg)) return;
  const CoverLayers cover = blocks.cover_layers();
  const auto forget = [&](int layer) { return backend.forget(blocks.layer(layer)); };
  if (answer.source == "searched" && !(forget(cover.at_dst) && forget(cover.at_src))) return;
  blocks.drop_cover();
}

PlanAnswer plan_on(const Dfg& dfg, const Trials& trials, const std::shared_ptr<Backend>& backend,
                   const PlanRequest& request) {
  const Blocks& blocks = trials.list[trials.typical].blocks;
  PlanningInput input = input_of(dfg, blocks, backend);
  input.changing = trials.changing;
  if (trials.changing) input.device = input.device.of_batches();
  input.timer = [&](int64_t memory, int64_t bytes) { return timers_of(trials, backend, memory, bytes); };
  const bool divided = blocks.cover_bytes() > 0;  // halves made earlier may be in use
  PlanAnswer answer = answer_request(std::move(input), request);
  if (!divided) drop_unused_cover(answer, blocks, *backend);
  return answer;
}

}  // namespace

void check_plan(const RunConfig& c) {
  if (c.recompute != "auto" && c.recompute != "fit")
    throw UserError("--recompute", "unknown choice '" + c.recompute + "'", "choose auto or fit");
  if (is_plan_name(c.plan) || std::filesystem::is_regular_file(c.plan)) return;
  throw UserError("--plan", "'" + c.plan + "' is neither the name of a plan nor a partition table nor a file",
                  "choose auto, off, vertex, edge, tensor, a table such as dst-id=1,edge-id=32, or a plan file");
}

PlanRequest plan_request(const RunConfig& c, int64_t epochs, const std::string& resumed_plan) {
  PlanRequest request;
  request.plan = c.plan;
  request.deterministic = c.deterministic;
  request.epochs = static_cast<int>(std::min<int64_t>(epochs, 1 << 30));
  request.memory_limit = room_for_plans(c);
  request.use_cache = c.plan_cache;
  request.recompute = c.recompute == "auto";
  request.disabled_passes = c.disabled_passes;
  request.resumed_plan = resumed_plan;
  request.host_has_room = [config = c](int64_t bytes) { return has_room(config, bytes); };
  return request;
}

PlanAnswer plan_training(const Dfg& dfg, const Blocks& blocks, const std::shared_ptr<Backend>& backend,
                         const PlanRequest& request, const std::function<void(Executor&)>& bind) {
  return plan_on(dfg, {.list = {{blocks, bind}}}, backend, request);
}

bool shrink_plan(PlanAnswer& answer, const Dfg& dfg, const Blocks& blocks, const std::shared_ptr<Backend>& backend,
                 int64_t bytes) {
  return shrink_plan(answer, input_of(dfg, blocks, backend), bytes);
}

PlanAnswer plan_batches(const Dfg& dfg, const std::vector<TrialBlocks>& trials, const std::shared_ptr<Backend>& backend,
                        const PlanRequest& request) {
  NACRE_CHECK(!trials.empty(), "a plan needs a batch to be made on");
  std::vector<size_t> by_size(trials.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) {
    const auto edges = [&](size_t i) { return trials[i].blocks.rows(Space::edge(0)); };
    return edges(a) < edges(b);
  });
  return plan_on(dfg, {trials, by_size[by_size.size() / 2], true}, backend, request);
}

}  // namespace nacre
