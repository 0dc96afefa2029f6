// Defines nacre bench gpu. It measures epoch times of the reference models on a GPU, compares each
// kernel with the physical floor, and times sums over neighbours by themselves. It writes one JSON
// line for each result, which bench/peers reads.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "commands.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/engine/gpu/partition.h"
#include "nacre/train/gpu_device.h"
#include "nacre/train/safetensors.h"
#include "options.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

using nlohmann::ordered_json;

struct GpuBench {
  RunConfig config;
  std::string models = "gcn,sage,gat,rgcn";
  std::string widths;   // widths of the sums over neighbours
  std::string name;     // name of the data in results
  std::string out;      // file for JSON lines
  std::string tensors;  // folder for weights and gradients
  double seconds = 1;
  bool kernels = false;
  bool partition = false;
};

void say(const GpuBench& c, const ordered_json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
  if (c.out.empty()) return;
  std::FILE* file = std::fopen(c.out.c_str(), "a");
  if (file == nullptr) throw UserError(c.out, "cannot be written");
  fmt::print(file, "{}\n", line.dump());
  std::fclose(file);
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[std::lround(q * static_cast<double>(values.size() - 1))];
}

// Makes every vertex that has a label count in the loss.
void train_on_all(Dataset& data) {
  std::vector<NodeId> all;
  for (int64_t v = 0; v < data.num_nodes(); ++v) {
    if (data.multilabel() || data.labels[v] >= 0) all.push_back(static_cast<NodeId>(v));
  }
  Buffer<NodeId> list(static_cast<int64_t>(all.size()));
  std::copy(all.begin(), all.end(), list.begin());
  data.splits.train = std::move(list).freeze();
}

// Writes the weights and gradients of the first step, for comparison with other frameworks.
void write_tensors(const GpuBench& c, Session& session, const std::string& model) {
  if (c.tensors.empty()) return;
  std::filesystem::create_directories(c.tensors);
  NamedTensors list;
  const Dfg& dfg = session.plan().dfg;
  for (const Parameter& p : session.parameters().list()) {
    Tensor weight(DType::f32, p.shape);
    std::copy_n(session.parameters().data(p), p.size, weight.data<float>());
    list.emplace_back(p.name, weight);
    const NodeRef grad = dfg.find_output("grad:" + p.name);
    if (grad < 0) continue;
    Tensor gradient(DType::f32, p.shape);
    std::copy_n(session.trainer().value(grad), p.size, gradient.data<float>());
    list.emplace_back("grad:" + p.name, gradient);
  }
  write_safetensors(c.tensors + "/" + model + ".safetensors", list, {});
}

void kernel_lines(const GpuBench& c, Session& session, const std::string& model) {
  session.trainer().reset_times();
  for (int i = 0; i < 5; ++i) session.trainer().run_timed({session.config().seed, static_cast<uint64_t>(i)});
  const Plan& plan = session.plan();
  const auto& times = session.trainer().times();
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel& kernel = plan.kernels[k];
    if (times[k].runs == 0) continue;
    const double seconds = times[k].seconds / static_cast<double>(times[k].runs);
    std::string ops;
    for (const NodeRef v : kernel.nodes) ops += (ops.empty() ? "" : "+") + std::string(op_info(plan.dfg[v].op).name);
    say(c, {{"kind", "kernel"},
            {"model", model},
            {"data", c.name},
            {"kernel", fmt::format("{} {} ({})", kernel_name(kernel.kind), type_text(plan.dfg[kernel.root].type), ops)},
            {"ms", seconds * 1e3},
            {"floor_gb_s", kernel.floor_bytes / seconds / 1e9},
            {"tflop_s", kernel.flops / seconds / 1e12}});
  }
}

void run_model(const GpuBench& c, const Dataset& data, const std::string& model) {
  RunConfig config = c.config;
  config.model.model = model;
  if (model_info(model).heads > 0 && config.model.heads == 0) config.model.heads = 1;
  const double begin = now_seconds();
  Session session(data, config, {.evaluation = false});
  Device& device = gpu_of(session.device()).device();
  session.start();
  device.reset_peak();  // the memory that was taken to choose algorithms is not part of training
  std::vector<double> losses;
  losses.reserve(3);
  session.trainer().run({config.seed, 0});
  const double ready = now_seconds() - begin;
  write_tensors(c, session, model);
  for (int e = 0; e < 3; ++e) losses.push_back(session.train_step(e, config.optimizer.lr));
  // The host queues `together` steps without waiting for their losses, and times them as one.
  std::vector<double> ms;
  int step = 3;
  int together = 1;
  const double start = now_seconds();
  while (ms.size() < 10 || (now_seconds() - start < c.seconds && ms.size() < 200)) {
    const DeviceEvent from = device.record();
    for (int i = 0; i < together; ++i) session.queue_step(step++, config.optimizer.lr);
    const double seconds = device.elapsed(from, device.record());
    if (ms.empty() && together == 1 && seconds < 2e-3) {
      together = std::max(2, static_cast<int>(4e-3 / std::max(seconds, 1e-5)));
      continue;
    }
    ms.push_back(seconds / together * 1e3);
  }
  say(c, {{"kind", "epoch"},
          {"model", model},
          {"data", c.name},
          {"epoch_ms", median(ms)},
          {"p10", quantile(ms, 0.1)},
          {"p90", quantile(ms, 0.9)},
          {"peak_mb", static_cast<double>(device.peak_bytes()) / (1 << 20)},
          {"planned_mb", static_cast<double>(total_bytes(session.memory())) / (1 << 20)},
          {"first_losses", losses},
          {"ready_s", ready},
          {"precision", config.precision},
          {"device", session.device().name()}});
  if (c.kernels) kernel_lines(c, session, model);
}

// Returns `count` random numbers from 0 to 1. The sums read them as rows of every width and as
// weights of edges.
std::vector<float> random_values(int64_t count) {
  std::vector<float> values(count);
  parallel_for((count + 3) / 4, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t four = begin; four < end; ++four) {
      const auto words = philox(7, 0, static_cast<uint64_t>(four));
      for (int64_t i = four * 4; i < std::min(count, four * 4 + 4); ++i) values[i] = uniform01(words[i % 4]);
    }
  });
  return values;
}

// Times the sum over neighbours of rows of one width by itself, without weights or with a weight
// for each edge.
void run_sum(const GpuBench& c, const Dataset& data, const RunDevice& device, const std::vector<float>& values,
             int64_t width, bool weighted) {
  const Blocks blocks = Blocks::full(data.graph, 1);
  Dfg dfg;
  const auto leaf = [&](const char* name, ValueType type) {
    Node node;
    node.op = Op::input;
    node.name = name;
    node.type = std::move(type);
    return dfg.add(node);
  };
  const auto op = [&](Op which, std::vector<NodeRef> inputs, Attr attr) {
    Node node;
    node.op = which;
    node.inputs = std::move(inputs);
    node.attr = attr;
    node.type.space = Space::edge(0);
    return dfg.add(node);
  };
  NodeRef message = op(Op::index, {leaf("x", {Space::vertex(0), {width}})}, Attr::src);
  if (weighted) message = op(Op::mul, {message, leaf("w", {Space::edge(0), {}})}, Attr::none);
  dfg.set_output("y", op(Op::index_add, {message}, Attr::dst));
  PlanOptions options;
  options.hoist = false;
  const DeviceTraits traits = device.backend()->traits();
  const Plan plan = make_plan(dfg, blocks, options, {.device = &traits, .variants = false});
  Executor executor(plan, blocks, device.backend());
  std::map<std::string, std::shared_ptr<void>> leaves;
  for (const char* name : {"x", "w"}) {
    if (dfg.find_leaf(name) < 0) continue;
    const int64_t bytes = (*name == 'x' ? data.num_nodes() * width : data.graph.num_edges()) * 4;
    leaves[name] = device.backend()->allocate(bytes);
    device.backend()->write(leaves[name].get(), values.data(), bytes);
    executor.bind(name, leaves[name].get());
  }
  ConstantPool pool;
  executor.allocate(device.backend()->allocate(executor.arena_bytes()), pool);
  executor.prepare();
  std::vector<double> ms;
  for (int i = 0; i < 13; ++i) {
    executor.reset_times();
    executor.run_timed({0, 0});
    double seconds = 0;
    for (const KernelTime& t : executor.times()) seconds += t.seconds;
    if (i > 2) ms.push_back(seconds * 1e3);
  }
  say(c, {{"kind", "spmm"}, {"data", c.name}, {"width", width}, {"weighted", weighted}, {"ms", median(ms)}});
}

void run_sums(const GpuBench& c, const Dataset& data, const std::vector<int64_t>& widths) {
  if (widths.empty()) return;
  const std::shared_ptr<const RunDevice> device = open_device(c.config, std::make_shared<GraphViews>());
  const int64_t widest = *std::max_element(widths.begin(), widths.end());
  const std::vector<float> values = random_values(std::max(data.num_nodes() * widest, data.graph.num_edges()));
  for (const int64_t width : widths) {
    for (const bool weighted : {false, true}) run_sum(c, data, *device, values, width, weighted);
  }
}

// Times gTasks and their patterns, made by the host and by the device. The first call for each
// table on the device compiles kernels.
void run_partition(const GpuBench& c, const Dataset& data) {
  constexpr const char* kTables[] = {"dst-id=1",
                                     "dst-id=64",
                                     "src-id=64",
                                     "dst-id=1,edge-id=32",
                                     "src-id=64,dst-id=64",
                                     "dst-id=16,dst-degree=min",
                                     "src-id=64,edge-type=1"};
  const Graph graph = data.graph.typed() ? data.graph : assign_relations(data.graph, c.config.relations);
  DevicePlugin& plugin = *device_plugin();
  const DeviceChoice choice = choose_device(c.config.device, "f32");
  GpuPartitioner partitioner(GpuCompiler::open(plugin, plugin.open(choice.index, choice.multiprocessors)));
  const auto timed = [](const auto& run) {
    const double start = now_seconds();
    auto result = run();
    return std::pair(now_seconds() - start, std::move(result));
  };
  graph.edge_dst();
  for (const char* text : kTables) {
    const PartitionTable table = PartitionTable::parse(text);
    const auto [host_seconds, host] = timed([&] { return partition(graph, table); });
    const auto [host_pattern_seconds, host_report] = timed([&, &g = host] { return find_patterns(g); });
    partitioner.find_patterns(partitioner.partition(graph, table));
    const auto [seconds, tasks] = timed([&] { return partitioner.partition(graph, table); });
    const auto [pattern_seconds, report] = timed([&, &g = tasks] { return partitioner.find_patterns(g); });
    const bool same = std::ranges::equal(tasks.task_ptr, host.task_ptr) && std::ranges::equal(tasks.edge, host.edge) &&
                      std::ranges::equal(tasks.src, host.src) && report.outlier == host_report.outlier &&
                      pattern_text(report.patterns) == pattern_text(host_report.patterns);
    say(c, {{"kind", "partition"},
            {"data", c.name},
            {"table", text},
            {"gtasks", tasks.num_tasks()},
            {"host_ms", host_seconds * 1e3},
            {"ms", seconds * 1e3},
            {"host_patterns_ms", host_pattern_seconds * 1e3},
            {"patterns_ms", pattern_seconds * 1e3},
            {"same", same}});
  }
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> found;
  std::istringstream text(list);
  for (std::string word; std::getline(text, word, ',');) found.push_back(word);
  return found;
}

std::vector<int64_t> parse_widths(const std::string& list) {
  std::vector<int64_t> widths;
  for (const std::string& word : words(list)) {
    int64_t width = 0;
    const char* end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data(), end, width);
    if (parsed.ec != std::errc() || parsed.ptr != end || width < 1) {
      throw UserError("--spmm", "'" + word + "' is not a width", "write for example 16,64,256");
    }
    widths.push_back(width);
  }
  return widths;
}

void run_gpu(GpuBench& c, const Command& command) {
  if (!choose_device(c.config.device, "f32").gpu) {
    throw UserError("--device", "'" + c.config.device + "' is not a GPU of this machine",
                    "nacre devices lists them; nacre bench cpu measures the CPU");
  }
  apply_execution(c.config);
  const std::vector<int64_t> widths = parse_widths(c.widths);
  // Refuses unknown models before the data are read.
  for (const std::string& model : words(c.models)) model_info(model);
  Situation situation = situation_of(c.config);
  situation.models = words(c.models);
  refuse_idle(command, situation);
  Dataset data = open_data(c.config);
  if (c.name.empty()) c.name = data.name;
  train_on_all(data);
  for (const std::string& model : words(c.models)) {
    try {
      run_model(c, data, model);
    } catch (const UserError& error) {
      say(c, {{"kind", "epoch"}, {"model", model}, {"data", c.name}, {"error", error.what()}});
    }
  }
  run_sums(c, data, widths);
  if (c.partition) run_partition(c, data);
}

}  // namespace

void add_bench_gpu(Command bench) {
  Command command = bench.add_subcommand("gpu", "epoch time of the reference models on a GPU, kernel by kernel");
  const auto c = std::make_shared<GpuBench>();
  c->config.data = "twin:arxiv";
  c->config.device = "cuda";
  c->config.precision = "tf32";
  c->config.normalize_features = "none";
  c->config.model.layers = 3;
  c->config.model.hidden = 256;
  c->config.model.dropout = 0;
  c->config.optimizer.lr = 0.01;
  add_data_options(command, c->config, false);
  add_execution_options(command, c->config);
  command.without({"--mode"});
  add_talk_options(command);
  command.add_option("--models", c->models, "models to measure, comma-separated; may be empty").show_default();
  command.add_option("--spmm", c->widths, "widths of sums over neighbours to time alone, comma-separated");
  command.add_option("--name", c->name, "name of the data in the results");
  command.add_option("--layers", c->config.model.layers).show_default();
  command.add_option("--hidden", c->config.model.hidden).show_default();
  command.add_option("--heads", c->config.model.heads, "attention heads; default 1");
  command.add_option("--dropout", c->config.model.dropout).show_default();
  command.add_option("--aggregator", c->config.model.aggregator, "aggregator of SAGE");
  command.add_option("--relations", c->config.relations).show_default();
  command.add_option("--seconds", c->seconds, "seconds of timed epochs for each model").show_default();
  command.add_option("--out", c->out, "append the results to a file");
  command.add_option("--tensors", c->tensors, "write the first weights and gradients of each model into this folder");
  command.add_flag("--partition", c->partition,
                   "measure the time to make gTasks and their patterns, on the host and on the device");
  command.add_flag("--kernels", c->kernels, "time each kernel by itself, too");
  command.callback([c, command] { run_gpu(*c, command); });
}

}  // namespace nacre::cli
