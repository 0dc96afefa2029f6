// Defines nacre bench sampling, which counts sampled edges per second, on the CPU or on a GPU that
// has the graph in its own memory or reads it from the host's. The last line is JSON.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "commands.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/gpu/sampler.h"
#include "options.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

using nlohmann::ordered_json;

struct SamplingBench {
  RunConfig config;
  std::string fanout = "15,10,5";
  std::string device = "cpu";
  int64_t batches = 128;
  int64_t together = 32;
};

std::vector<int> parse_fanout(const std::string& text) {
  std::vector<int> list;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    int value = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) {
      throw UserError("--fanout", "'" + word + "' is not a number of neighbours",
                      "write for example 15,10,5; -1 takes all");
    }
    list.push_back(value);
  }
  return list;
}

// Counts the edges and vertices of samples. A SampleRange draws the batches [first, last) and
// returns these counts.
struct Met {
  int64_t edges = 0;
  int64_t vertices = 0;
};
using SampleRange = std::function<Met(int64_t first, int64_t last)>;

// Gives the seeds and the key of batch i. After the last batch of an epoch, the seeds of its first
// batch follow again.
class Seeds {
 public:
  Seeds(const Dataset& data, const RunConfig& config) : order_(ids(data), config.batch_size, config.seed, true) {
    if (order_.num_batches() == 0) throw UserError(data.name, "has no nodes");
  }
  std::span<const NodeId> at(int64_t i) const { return order_.batch(i % order_.num_batches()); }
  static SampleKey key(int64_t i) { return {0, static_cast<uint64_t>(i)}; }

 private:
  static Array<NodeId> ids(const Dataset& data) {
    if (!data.splits.train.empty()) return data.splits.train;
    std::vector<NodeId> all(data.num_nodes());
    std::iota(all.begin(), all.end(), NodeId{0});
    return Array<NodeId>(std::move(all));
  }
  BatchOrder order_;
};

SampleRange on_cpu(const Sampler& sampler, const Seeds& seeds) {
  const auto workers = std::make_shared<std::vector<std::unique_ptr<BatchSampler>>>();
  for (int i = 0; i < num_threads(); ++i) workers->push_back(sampler.make_batch_sampler());
  return [workers, &seeds](int64_t first, int64_t last) {
    const auto count = static_cast<int64_t>(workers->size());
    std::vector<Met> met(workers->size());
    parallel_for(count, 1, [&](int64_t b, int64_t e) {
      for (int64_t w = b; w < e; ++w) {
        BatchSampler& own = *(*workers)[w];
        for (int64_t i = first + w; i < last; i += count) {
          own.begin(seeds.at(i), Seeds::key(i));
          for (int hop = 0; hop < own.hops(); ++hop) {
            own.pick(hop);
            own.insert(hop);
            own.reindex(hop);
          }
          const Sample sample = own.finish();
          met[w].edges += sample.num_edges();
          met[w].vertices += sample.vertices.size();
        }
      }
    });
    Met sum;
    for (const Met& m : met) sum = {sum.edges + m.edges, sum.vertices + m.vertices};
    return sum;
  };
}

// Samples `together` batches at once on the GPU, and returns whether the last of these samples
// equals that of the host.
bool same_as_host(GpuSampler& on_gpu, const Sampler& sampler, const Seeds& seeds, int64_t together) {
  std::vector<GpuSampler::Batch> batches;
  for (int64_t i = 0; i < together; ++i) batches.push_back({seeds.at(i), Seeds::key(i)});
  const Sample got = on_gpu.to_host(on_gpu.sample(batches).back());
  const Sample want = sampler.sample(batches.back().seeds, batches.back().key);
  bool same = std::ranges::equal(got.vertices, want.vertices);
  for (size_t l = 0; l < want.blocks.size(); ++l) {
    same = same && got.blocks[l].fingerprint() == want.blocks[l].fingerprint() &&
           std::ranges::equal(got.edges[l], want.edges[l]) && std::ranges::equal(got.scale[l], want.scale[l]);
  }
  return same;
}

SampleRange on_gpu(const std::shared_ptr<GpuSampler>& sampler, const std::shared_ptr<Device>& device,
                   const Seeds& seeds) {
  return [sampler, device, &seeds](int64_t first, int64_t last) {
    std::vector<GpuSampler::Batch> batches;
    for (int64_t i = first; i < last; ++i) batches.push_back({seeds.at(i), Seeds::key(i)});
    Met sum;
    for (const DeviceSample& sample : sampler->sample(batches)) {
      sum = {sum.edges + sample.num_edges(), sum.vertices + sample.num_vertices};
    }
    device->synchronize();
    return sum;
  };
}

void run_sampling(SamplingBench& c, const Command& command) {
  c.config.device = c.device == "host-memory" ? "cuda" : c.device;
  c.config.mode = "minibatch";
  apply_execution(c.config);
  refuse_idle(command, situation_of(c.config));
  SampleOptions& options = c.config.sampling;
  options.fanout = parse_fanout(c.fanout);
  options.seed = c.config.seed;
  if (c.batches < 1 || c.together < 1) throw UserError("--batches and --together", "must be at least 1");
  const Dataset data = open_data(c.config);
  const Sampler sampler(data.graph, options);
  const Seeds seeds(data, c.config);
  const DeviceChoice choice = choose_device(c.config.device, "f32");
  SampleRange sample;
  bool same = true;
  std::string name = "cpu";
  if (choice.gpu) {
    DevicePlugin& plugin = *device_plugin();
    const std::shared_ptr<Device> device = plugin.open(choice.index, choice.multiprocessors);
    name = device->info().name;
    const auto memory = c.device == "host-memory" ? GpuSampler::GraphMemory::host : GpuSampler::GraphMemory::device;
    const auto gpu = std::make_shared<GpuSampler>(GpuCompiler::open(plugin, device), sampler, memory);
    same = same_as_host(*gpu, sampler, seeds, c.together);
    sample = on_gpu(gpu, device, seeds);
  } else {
    sample = on_cpu(sampler, seeds);
  }
  sample(0, c.together);  // allocates memory and compiles code
  std::vector<double> rates;
  Met all;
  double seconds = 0;
  for (int64_t first = 0; first < c.batches; first += c.together) {
    const double start = now_seconds();
    const Met met = sample(first, std::min(first + c.together, c.batches));
    const double took = now_seconds() - start;
    rates.push_back(static_cast<double>(met.edges) / took);
    all = {all.edges + met.edges, all.vertices + met.vertices};
    seconds += took;
  }
  const ordered_json line = {{"data", data.name},
                             {"device", name},
                             {"graph", c.device == "host-memory" || !choice.gpu ? "host memory" : "device memory"},
                             {"threads", num_threads()},
                             {"fanout", c.fanout},
                             {"batch_size", c.config.batch_size},
                             {"batches", c.batches},
                             {"together", c.together},
                             {"edges", all.edges},
                             {"vertices", all.vertices},
                             {"seconds", seconds},
                             {"edges_per_second", static_cast<double>(all.edges) / seconds},
                             {"edges_per_second_median", median(rates)},
                             {"same_as_host", same}};
  fmt::print("{}\n", line.dump());
  if (!same) throw UserError("bench sampling", "the GPU sampled other edges than the CPU");
}

}  // namespace

void add_bench_sampling(Command bench) {
  Command command = bench.add_subcommand("sampling", "sampled edges per second, on the CPU or a GPU");
  const auto c = std::make_shared<SamplingBench>();
  c->config.data = "twin:arxiv";
  c->config.batch_size = 1024;
  add_data_options(command, c->config, false);
  add_talk_options(command);
  command
      .add_option("--device", c->device,
                  "cpu, cuda (graph in GPU memory) or host-memory (graph in host memory, read by the GPU)")
      .written_as(device_name)
      .show_default();
  command.add_option("--threads", c->config.threads, "threads of the CPU; default: all cores");
  command
      .add_option("--fanout", c->fanout,
                  "neighbours that each node draws, one number per layer, the one next to the seeds first; -1 = all")
      .show_default();
  command.add_option("--batch-size", c->config.batch_size).show_default();
  command.add_flag("--replace", c->config.sampling.replace, "draw with replacement");
  command.add_flag("--sample-weighted", c->config.sampling.weighted, "draw by edge weight");
  command.add_option("--batches", c->batches, "number of batches to sample").show_default();
  command.add_option("--together", c->together, "batches sampled at once").show_default();
  command.callback([c, command] { run_sampling(*c, command); });
}

}  // namespace nacre::cli
