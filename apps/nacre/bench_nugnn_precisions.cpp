// Measures Table 2 of the νGNN paper: accuracy and time of training in each precision.
#include <fmt/format.h>

#include "bench_nugnn.h"
#include "commands.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/device/precision.h"
#include "nacre/train/ranked_session.h"
#include "nacre/train/trainer.h"
#include "nacre/train/vertex_model.h"
#include "options.h"

namespace nacre::cli {
namespace {

std::vector<std::string> precision_graphs(const NugnnCommand& c) {
  if (!c.graphs.empty()) return split_list(c.graphs);
  return {"twin:cora", "twin:citeseer", "twin:pubmed", "twin:arxiv@0.2", "twin:flickr@0.2"};
}

// Returns the paper's name of `precision`. The paper's mixed precisions (AMP) multiply with fewer
// bits and store values as f32, and so does tf32.
std::string paper_name(const std::string& precision) {
  if (precision == "f32") return "FP32";
  if (precision == "tf32") return "AMP-style";
  return precision == "bf16" ? "BF16" : "";
}

// Returns the MiB of rows that all ranks together receive in a step; 0 for one device.
double received_mib(VertexModel& session) {
  auto* ranks = dynamic_cast<RankedSession*>(&session);
  if (ranks == nullptr) return 0;
  double bytes = 0;
  for (const RankFigures& rank : ranks->figures()) bytes += static_cast<double>(rank.received);
  return bytes / (1 << 20);
}

// Returns the cells of one run: its score, its distance from f32, its time, and its state.
std::vector<std::string> train_once(const Dataset& data, RunConfig config, double& exact) {
  const std::string precision = config.precision;
  try {
    const std::unique_ptr<VertexModel> session = make_session(data, std::move(config), {});
    session->start();
    const TrainResult result = train(*session, {});
    if (result.interrupted) throw Interrupted{result.signal};
    const double score = 100 * result.test_score;
    if (precision == "f32") exact = score;
    return {session->metric(),
            fmt::format("{:.2f}", score),
            fmt::format("{:+.2f}", score - exact),
            fmt::format("{:.3f}", result.epoch_ms_median),
            fmt::format("{:.3f}", result.seconds),
            fmt::format("{:.3f}", received_mib(*session)),
            "ok"};
  } catch (const UserError& error) {
    return {"", "", "", "", "", "", error.what()};
  }
}

}  // namespace

void bench_precisions(const NugnnCommand& c, Tables& tables) {
  Report report({"graph", "model", "devices", "precision", "paper", "metric", "test_percent", "beside_f32", "epoch_ms",
                 "seconds", "received_mib", "state"});
  std::vector<std::string> sets = c.device_sets;
  sets.insert(sets.begin(), "");  // the empty set stands for one device, as in the paper
  for (const std::string& graph : precision_graphs(c)) {
    RunConfig base = c.config;
    base.data = graph;
    const Dataset data = open_data(base);
    for (const std::string& model : split_list(c.models)) {
      for (const std::string& devices : sets) {
        double exact = 0;
        std::vector<std::string> precisions = precision_names();
        if (!devices.empty()) precisions.emplace_back(kAutomaticPrecision);
        for (const std::string& precision : precisions) {
          RunConfig config = config_for(c, model);
          config.data = graph;
          config.epochs = c.epochs;
          config.precision = precision;
          if (!devices.empty()) config.ranks.devices = split_list(devices);
          std::vector<std::string> row = {graph, model, devices.empty() ? config.device : devices, precision,
                                          paper_name(precision)};
          for (std::string& text : train_once(data, std::move(config), exact)) row.push_back(std::move(text));
          report.add(std::move(row));
          tables.keep("table2", "", report);
        }
      }
    }
  }
  tables.keep("table2", "Table 2: test score and time of training in each precision", report);
}

}  // namespace nacre::cli
