// Defines nacre bench cpu, which measures epoch times of the reference models and compares each
// kernel with the physical floor.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "bench_graphtensor.h"
#include "commands.h"
#include "machine_rates.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/parallel.h"
#include "nacre/base/pending_file.h"
#include "nacre/kernel/cpu/gemm.h"
#include "options.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

using nlohmann::ordered_json;

struct BenchCommand {
  RunConfig config;
  std::string models = "gcn,sage,gat,rgcn,gin";
  int epochs = 7;
  int warmup = 2;
  std::string json;
  bool kernels = true;
};

// Returns the reference setting: three layers of width 256; GAT has 4 heads of width 64, RGCN has 7
// edge types.
RunConfig reference_config(const BenchCommand& c, const std::string& model) {
  RunConfig config = c.config;
  config.model.model = model;
  if (model == "gat" || model == "gatv2") config.model.heads = config.model.heads > 0 ? config.model.heads : 4;
  return config;
}

// Returns, for each kernel, the measured time over the floor. The floor is the larger of the bytes
// at the measured bandwidth and the operations at the measured rate.
ordered_json kernel_table(Session& session, const MachineRates& rates, bool print) {
  ordered_json rows = ordered_json::array();
  const Plan& plan = session.plan();
  const auto& times = session.trainer().times();
  std::vector<size_t> order(plan.kernels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a].seconds > times[b].seconds; });
  if (print) fmt::print("    {:>9} {:>7} {:>9} {:>9}  {}\n", "ms", "floor", "GB/s", "GFLOP/s", "kernel");
  for (const size_t k : order) {
    const Kernel& kernel = plan.kernels[k];
    if (times[k].runs == 0) continue;
    const double seconds = times[k].seconds / static_cast<double>(times[k].runs);
    const double floor = std::max(kernel.floor_bytes / rates.bytes_per_second, kernel.flops / rates.flops_per_second);
    std::string ops;
    for (const NodeRef v : kernel.nodes) ops += (ops.empty() ? "" : "+") + std::string(op_info(plan.dfg[v].op).name);
    const std::string name =
        fmt::format("{} {} ({})", kernel_name(kernel.kind), type_text(plan.dfg[kernel.root].type), ops);
    rows.push_back({{"kernel", name},
                    {"ms", seconds * 1e3},
                    {"over_floor", floor > 0 ? seconds / floor : 0},
                    {"floor_bytes", kernel.floor_bytes},
                    {"flops", kernel.flops}});
    if (print && seconds > 0.5e-3) {
      fmt::print("    {:>9.2f} {:>6.1f}x {:>9.1f} {:>9.1f}  {}\n", seconds * 1e3, seconds / floor,
                 kernel.floor_bytes / seconds / 1e9, kernel.flops / seconds / 1e9, name);
    }
  }
  return rows;
}

ordered_json run_model(const BenchCommand& c, const Dataset& dataset, const std::string& model,
                       const MachineRates& rates) {
  reset_peak_memory();
  const RunConfig config = reference_config(c, model);
  Session session(dataset, config, {.evaluation = false});
  session.start();
  std::vector<double> ms;
  for (int e = 0; e < c.warmup + c.epochs; ++e) {
    if (e == c.warmup) session.trainer().reset_times();
    const double start = now_seconds();
    session.train_step(e, config.optimizer.lr);
    if (e >= c.warmup) ms.push_back((now_seconds() - start) * 1e3);
  }
  const double peak = static_cast<double>(peak_memory()) / (1 << 20);
  fmt::print("{:<6} {:>9.1f} ms per epoch (min {:.1f}, max {:.1f}), peak {:.0f} MB, planned {}\n", model, median(ms),
             *std::min_element(ms.begin(), ms.end()), *std::max_element(ms.begin(), ms.end()), peak,
             human_bytes(static_cast<double>(total_bytes(session.memory()))));
  ordered_json j = {{"model", model},
                    {"epoch_ms_median", median(ms)},
                    {"epoch_ms_min", *std::min_element(ms.begin(), ms.end())},
                    {"epoch_ms_max", *std::max_element(ms.begin(), ms.end())},
                    {"peak_mb", peak},
                    {"planned_mb", static_cast<double>(total_bytes(session.memory())) / (1 << 20)},
                    {"kernels", kernel_table(session, rates, c.kernels)}};
  std::fflush(stdout);
  return j;
}

void run_cpu(BenchCommand& c, const Command& command) {
  apply_execution(c.config);
  Situation situation = situation_of(c.config);
  situation.models = split_list(c.models);
  // Refuses unknown models before the data are read.
  for (const std::string& model : situation.models) model_info(model);
  refuse_idle(command, situation);
  const Dataset dataset = open_data(c.config);
  const MachineRates rates = measure_rates();
  fmt::print("machine: {} threads, {:.1f} GB/s memory, {:.0f} GFLOP/s in {}\n", num_threads(),
             rates.bytes_per_second / 1e9, rates.flops_per_second / 1e9, cpu::gemm_library());
  ordered_json results = ordered_json::array();
  std::istringstream names(c.models);
  for (std::string model; std::getline(names, model, ',');) results.push_back(run_model(c, dataset, model, rates));
  if (c.json.empty()) return;
  const ordered_json j = {{"data", dataset.name},
                          {"threads", num_threads()},
                          {"bytes_per_second", rates.bytes_per_second},
                          {"flops_per_second", rates.flops_per_second},
                          {"gemm", cpu::gemm_library()},
                          {"results", results}};
  write_file(c.json, j.dump(1) + "\n");
}

}  // namespace

void add_bench(Command app) {
  Command bench = app.add_subcommand(
      "bench", "run a benchmark: cpu, gpu, sampling, placement, wisegraph, graphtensor, nugnn or daha");
  bench.require_subcommand();
  add_bench_daha(bench);
  add_bench_gpu(bench);
  add_bench_graphtensor(bench);
  add_bench_nugnn(bench);
  add_bench_placement(bench);
  add_bench_sampling(bench);
  add_bench_wisegraph(bench);
  Command command =
      bench.add_subcommand("cpu",
                           "epoch time of the reference models on the CPU, and how many times as long each kernel\n"
                           "takes as this machine's rates of memory and arithmetic allow");
  const auto c = std::make_shared<BenchCommand>();
  c->config.data = "twin:arxiv";
  c->config.device = "cpu";
  c->config.model.layers = 3;
  c->config.model.hidden = 256;
  c->config.model.dropout = 0.5;
  add_data_options(command, c->config, false);
  add_execution_options(command, c->config);
  command.without({"--device", "--precision", "--mode"});
  add_talk_options(command);
  command.add_option("--models", c->models, "models to measure, comma-separated").show_default();
  command.add_option("--layers", c->config.model.layers).show_default();
  command.add_option("--hidden", c->config.model.hidden).show_default();
  command.add_option("--heads", c->config.model.heads, "attention heads; default 4");
  command.add_option("--dropout", c->config.model.dropout).show_default();
  command.add_option("--relations", c->config.relations).show_default();
  command.add_option("--epochs", c->epochs, "timed epochs").show_default().positive();
  command.add_option("--warmup", c->warmup, "number of epochs before the timed ones").show_default().not_negative();
  command.add_option("--json", c->json, "write the results to a file");
  command.add_off_flag("--no-kernels", c->kernels, "leave out the table of kernels");
  command.callback([c, command] { run_cpu(*c, command); });
}

}  // namespace nacre::cli
