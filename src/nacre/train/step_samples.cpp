#include "nacre/train/step_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/data/twin.h"
#include "nacre/graph/parts.h"
#include "nacre/train/session.h"
#include "nacre/train/step_features.h"

namespace nacre {
namespace {

constexpr const char* kTwins[] = {"cora",        "pubmed",          "arxiv@0.2",      "flickr@0.3",
                                  "reddit@0.02", "yelp@0.05",       "proteins@0.02",  "products@0.015",
                                  "google@0.05", "roadnet-ca@0.02", "wiki-talk@0.02", "livejournal@0.005"};

// Holds the numbers that one draw depends on.
struct Draw {
  uint64_t seed;
  uint64_t round;
  uint64_t source;

  double uniform(uint64_t which) const {
    const PhiloxBlock random = philox(mix_key(seed, source), round, which);
    return uniform01(random[0], random[1]);
  }
};

// Draws a part whose size is uniform in its logarithm.
GraphPart draw_part(const PartSource& source, const PartSampling& how, const Draw& draw) {
  constexpr int64_t fewest = 300;
  const int64_t vertices = source.graph.num_nodes();
  const double edges = std::max<double>(1, static_cast<double>(source.graph.num_edges()));
  const double room = static_cast<double>(how.most_edges) / edges;
  const auto by_edges = static_cast<int64_t>(std::min(1.0, room) * static_cast<double>(vertices));
  const int64_t most = std::max<int64_t>(1, std::min({vertices, how.most_vertices, by_edges}));
  const int64_t least = std::min(fewest, most);
  const double size = std::exp(std::log(static_cast<double>(least)) +
                               draw.uniform(0) * std::log(static_cast<double>(most) / static_cast<double>(least)));
  const auto shape = static_cast<PartShape>(static_cast<int>(3 * draw.uniform(1)));
  const int64_t count = std::clamp(static_cast<int64_t>(std::lround(size)), least, most);
  const std::vector<NodeId> own = draw_vertices(source.graph, shape, count, mix_key(draw.seed, draw.round));
  return part_of(source.graph, own, draw.uniform(2) < 0.5);
}

Dataset dataset_of(const PartSource& source, const GraphPart& part) {
  Dataset data;
  data.name = source.name;
  data.graph = part.graph;
  const int64_t rows = part.graph.num_nodes();
  data.features = Tensor(DType::f32, {rows, source.features});
  auto* values = data.features.data<float>();
  for (int64_t i = 0; i < rows * source.features; ++i) {
    values[i] = uniform01(static_cast<uint32_t>(i) * 2654435761U) - 0.5F;
  }
  std::vector<int32_t> labels(rows);
  for (int64_t v = 0; v < rows; ++v) labels[v] = static_cast<int32_t>(v % source.classes);
  data.labels = std::move(labels);
  data.num_classes = source.classes;
  std::vector<NodeId> train(part.own);
  for (int64_t v = 0; v < part.own; ++v) train[v] = static_cast<NodeId>(v);
  data.splits.train = std::move(train);
  return data;
}

// Returns the seconds of a step. If one thread computes on the host, its time on the processor
// counts: that is what the step would take if no other program used the machine.
double time_step(Session& session, int64_t step) {
  const bool alone = session.device().on_host() && num_threads() == 1;
  const auto clock = [alone] { return alone ? static_cast<double>(std::clock()) / CLOCKS_PER_SEC : now_seconds(); };
  const double start = clock();
  session.train_step(step, session.config().optimizer.lr);
  return clock() - start;
}

// Returns the seconds of the fastest of several steps, after two steps that are not timed. Other
// work of the machine can only make steps longer.
double time_steps(Session& session) {
  constexpr size_t few = 4;
  constexpr size_t many = 30;
  constexpr double enough = 0.12;
  constexpr int warm = 2;
  for (int step = 0; step < warm; ++step) time_step(session, step);
  std::vector<double> seconds;
  double sum = 0;
  while (seconds.size() < few || (seconds.size() < many && sum < enough)) {
    seconds.push_back(time_step(session, warm + static_cast<int64_t>(seconds.size())));
    sum += seconds.back();
  }
  return *std::min_element(seconds.begin(), seconds.end());
}

TimedPart time_part(const RunConfig& config, const PartSource& source, const GraphPart& part, int group) {
  RunConfig run = config;
  run.plan = "off";
  run.mode = "full";
  run.normalize_features = "none";
  run.data = source.name;
  Session session(dataset_of(source, part), run, {.evaluation = false});
  session.start();
  TimedPart timed;
  timed.graph = source.name;
  timed.vertices = part.own;
  timed.edges = part.graph.num_edges();
  timed.step.group = group;
  timed.step.seconds = time_steps(session);
  timed.step.features = step_features({.model = session.config().model,
                                       .plan = session.plan(),
                                       .blocks = session.blocks(),
                                       .own = part.own,
                                       .gpu = !session.device().on_host()});
  return timed;
}

}  // namespace

std::vector<PartSource> generated_sources(uint64_t seed) {
  std::vector<PartSource> sources;
  for (const char* twin : kTwins) {
    const Dataset data = make_twin(twin, seed);
    sources.push_back({fmt::format("twin:{}", twin), data.graph, data.num_features(), data.num_classes});
  }
  return sources;
}

std::vector<TimedPart> time_parts(const RunConfig& config, const std::vector<PartSource>& sources,
                                  const PartSampling& sampling) {
  for (const PartSource& source : sources) {
    NACRE_CHECK(source.graph.num_src() == source.graph.num_dst(), "parts are cut from whole graphs");
    if (source.graph.num_nodes() == 0 || source.features < 1 || source.classes < 1) {
      throw UserError(source.name, "has no nodes, features or classes to time training steps with");
    }
  }
  std::vector<TimedPart> parts;
  const double start = now_seconds();
  Progress progress("timing training steps", sampling.seconds);
  for (uint64_t round = 0; round == 0 || now_seconds() - start < sampling.seconds; ++round) {
    for (size_t s = 0; s < sources.size(); ++s) {
      if (round > 0 && now_seconds() - start >= sampling.seconds) break;
      const GraphPart part = draw_part(sources[s], sampling, {sampling.seed, round, s});
      parts.push_back(time_part(config, sources[s], part, static_cast<int>(s)));
      progress.update(std::min(now_seconds() - start, sampling.seconds), fmt::format("{} parts", parts.size()));
    }
  }
  return parts;
}

}  // namespace nacre
