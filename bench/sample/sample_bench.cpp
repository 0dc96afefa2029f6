// Prints sampled edges per second by processor time, per core and stage, beside a floor: one random
// cache line of the graph's col_idx per sampled edge, fetched as far ahead as the sampler does it.
// The last line is JSON. On a machine that is not idle, compare processor times.
// Usage: sample_bench DATA [--fanout 15,10,5] [--batch-size N] [--batches N] [--threads N]
//                     [--replace] [--kind NAME] [--budget N] [--weighted] [--mapped] [--hash]
// The graph of a .nacre file is copied to memory of its own unless --mapped is given. With --hash,
// a hash table is used however small the graph is.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "nacre/base/philox.h"
#include "nacre/data/load.h"
#include "nacre/sample/hop_sampler.h"
#include "nacre/sample/sample.h"

namespace nacre::bench {
namespace {

struct Options {
  std::string data;
  SampleOptions sample;
  int64_t batch_size = 1024;
  int64_t batches = 30;
  int threads = 1;
  bool mapped = false;
  bool hash = false;
};

enum Stage { kBegin, kPick, kInsert, kReindex, kFinish, kStages };
constexpr const char* kStageNames[] = {"begin", "pick", "insert", "reindex", "finish"};

struct Times {
  double stage[kStages] = {};
  int64_t edges = 0;
  int64_t vertices = 0;
  double total() const { return stage[0] + stage[1] + stage[2] + stage[3] + stage[4]; }
};

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void sample_batch(BatchSampler& sampler, std::span<const NodeId> seeds, const SampleKey& key, Times& times) {
  double last = thread_seconds();
  const auto lap = [&](Stage stage) {
    const double now = thread_seconds();
    times.stage[stage] += now - last;
    last = now;
  };
  sampler.begin(seeds, key);
  lap(kBegin);
  for (int hop = 0; hop < sampler.hops(); ++hop) {
    sampler.pick(hop);
    lap(kPick);
    sampler.insert(hop);
    lap(kInsert);
    sampler.reindex(hop);
    lap(kReindex);
  }
  {
    const Sample sample = sampler.finish();
    times.edges += sample.num_edges();
    times.vertices += sample.vertices.size();
  }
  lap(kFinish);  // including the time to free the memory
}

// Returns the seconds to read `count` random elements of col_idx.
double floor_seconds(const Graph& graph, int64_t count) {
  std::vector<int64_t> at(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const PhiloxBlock words = philox(1, 0, static_cast<uint64_t>(i));
    at[static_cast<size_t>(i)] =
        static_cast<int64_t>(uniform01(words[0], words[1]) * static_cast<double>(graph.num_edges()));
  }
  const NodeId* col = graph.col_idx().data();
  const double start = thread_seconds();
  uint64_t sum = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    if (i + 48 < at.size()) __builtin_prefetch(col + at[i + 48]);
    sum += col[at[i]];
  }
  const double seconds = thread_seconds() - start;
  if (sum == 0) std::puts("");  // prevents the compiler from removing the loop
  return seconds;
}

template <class T>
Array<T> copied(const Array<T>& from) {
  if (from.empty()) return {};
  Buffer<T> to(from.size());
  std::copy(from.begin(), from.end(), to.begin());
  return std::move(to).freeze();
}

Graph resident(const Graph& graph) {
  GraphArrays arrays = graph.arrays();
  arrays.row_ptr = copied(arrays.row_ptr);
  arrays.col_idx = copied(arrays.col_idx);
  arrays.edge_weight = copied(arrays.edge_weight);
  arrays.edge_type = copied(arrays.edge_type);
  return Graph::trusted(std::move(arrays));
}

void run(const Options& options) {
  LoadOptions load;
  load.verify = false;
  Dataset data = load_dataset(options.data, load);
  if (!options.mapped) data.graph = resident(data.graph);
  Array<NodeId> ids = data.splits.train;
  if (ids.empty()) {
    std::vector<NodeId> all(static_cast<size_t>(data.num_nodes()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<NodeId>(i);
    ids = std::move(all);
  }
  const Sampler sampler(data.graph, options.sample);
  const bool own_seeds = sampler_info(options.sample.sampler).draws_subgraph;
  BatchOrder order(ids, options.batch_size, options.sample.seed, true);
  std::vector<Times> times(static_cast<size_t>(options.threads));
  std::atomic<int64_t> next{0};
  const double start = wall_seconds();
  std::vector<std::thread> workers;
  for (Times& mine : times) {
    workers.emplace_back([&] {
      const auto batch_sampler = options.hash
                                     ? make_neighbor_sampler(sampler.graph(), sampler.options(), sampler.layers(), 0)
                                     : sampler.make_batch_sampler();
      Times warm;
      sample_batch(*batch_sampler, own_seeds ? std::span<const NodeId>() : order.batch(0), {0, 0}, warm);
      for (int64_t b = next++; b < options.batches; b = next++) {
        const auto seeds = own_seeds ? std::span<const NodeId>() : order.batch(b % order.num_batches());
        sample_batch(*batch_sampler, seeds, {1, static_cast<uint64_t>(b)}, mine);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  const double wall = wall_seconds() - start;

  Times sum;
  for (const Times& mine : times) {
    for (int s = 0; s < kStages; ++s) sum.stage[s] += mine.stage[s];
    sum.edges += mine.edges;
    sum.vertices += mine.vertices;
  }
  const auto edges = static_cast<double>(sum.edges);
  const double batches = static_cast<double>(options.batches);
  const int64_t probes = std::clamp<int64_t>(sum.edges, 1, 20'000'000);
  const double floor_ns = 1e9 * floor_seconds(data.graph, probes) / static_cast<double>(probes);
  std::printf("%s: %lld vertices, %lld edges; %s, batch %lld, %d threads\n", options.data.c_str(),
              static_cast<long long>(data.num_nodes()), static_cast<long long>(data.graph.num_edges()),
              options.sample.sampler.c_str(), static_cast<long long>(options.batch_size), options.threads);
  std::printf("per batch: %.0f edges, %.0f vertices, %.2f ms of processor time\n", edges / batches,
              static_cast<double>(sum.vertices) / batches, 1e3 * sum.total() / batches);
  for (int s = 0; s < kStages; ++s) {
    std::printf("  %-8s %8.2f ms per batch  %6.2f ns per edge\n", kStageNames[s], 1e3 * sum.stage[s] / batches,
                1e9 * sum.stage[s] / edges);
  }
  std::printf("floor (one line of col_idx per edge): %.2f ns per edge\n", floor_ns);
  std::printf("%.1f M edges/s and core, %.1f M edges/s by the wall clock\n", 1e-6 * edges / sum.total(),
              1e-6 * edges / wall);
  std::printf(
      "{\"data\": \"%s\", \"kind\": \"%s\", \"batch_size\": %lld, \"batches\": %lld, \"threads\": %d, "
      "\"edges\": %lld, \"edges_per_core_s\": %.6g, \"edges_per_wall_s\": %.6g, \"floor_ns\": %.4g",
      options.data.c_str(), options.sample.sampler.c_str(), static_cast<long long>(options.batch_size),
      static_cast<long long>(options.batches), options.threads, static_cast<long long>(sum.edges), edges / sum.total(),
      edges / wall, floor_ns);
  for (int s = 0; s < kStages; ++s) std::printf(", \"%s_ns\": %.4g", kStageNames[s], 1e9 * sum.stage[s] / edges);
  std::printf("}\n");
}

Options parse(int argc, char** argv) {
  Options options;
  std::string fanout = "15,10,5";
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&] {
      if (i + 1 == argc) throw std::invalid_argument(flag + " wants a value");
      return std::string(argv[++i]);
    };
    if (flag == "--fanout") {
      fanout = value();
    } else if (flag == "--batch-size") {
      options.batch_size = std::stoll(value());
    } else if (flag == "--batches") {
      options.batches = std::stoll(value());
    } else if (flag == "--threads") {
      options.threads = std::stoi(value());
    } else if (flag == "--budget") {
      options.sample.budget = std::stoll(value());
    } else if (flag == "--kind") {
      options.sample.sampler = sampler_info(value()).name;
    } else if (flag == "--replace") {
      options.sample.replace = true;
    } else if (flag == "--mapped") {
      options.mapped = true;
    } else if (flag == "--hash") {
      options.hash = true;
    } else if (flag == "--weighted") {
      options.sample.weighted = true;
    } else if (flag[0] != '-' && options.data.empty()) {
      options.data = flag;
    } else {
      throw std::invalid_argument("unknown argument " + flag);
    }
  }
  if (options.data.empty()) throw std::invalid_argument("usage: sample_bench DATA [options]");
  for (size_t at = 0; at < fanout.size();) {
    size_t used = 0;
    options.sample.fanout.push_back(std::stoi(fanout.substr(at), &used));
    at += used + 1;
  }
  if (sampler_info(options.sample.sampler).draws_subgraph) {
    options.sample.layers = static_cast<int>(options.sample.fanout.size());
    options.sample.fanout.clear();
    if (options.sample.budget == 0) options.sample.budget = options.batch_size;
  }
  return options;
}

}  // namespace
}  // namespace nacre::bench

int main(int argc, char** argv) {
  try {
    nacre::bench::run(nacre::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
