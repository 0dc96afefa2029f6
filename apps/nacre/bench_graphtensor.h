// nacre bench graphtensor: the figures of the GraphTensor paper on twins of light and heavy
// features, as far as one machine can. One file per question; each writes CSV and SVG into one
// folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "nacre/train/batch_session.h"
#include "report.h"

namespace nacre::cli {

struct GraphTensorOptions {
  RunConfig config;
  // SPEC, or SPEC#WIDTH: with features of that width instead of its own.
  std::vector<std::string> graphs = {"twin:products@0.02", "twin:reddit@0.05", "twin:gowalla#4353",
                                     "twin:wiki-talk@0.03#4353"};
  std::vector<std::string> models = {"gcn", "sage", "ngcf"};
  std::vector<std::string> figures;
  std::vector<std::string> variants;  // of the loader, by name; empty: all
  int rounds = 3;                     // variants take turns this many times
  int batches = 12;                   // of an epoch; per style: a third of them
  int blocks = 100;                   // that a plan tuned on others is used for
  std::string out = "bench-graphtensor";
};

class GraphTensorBench {
 public:
  explicit GraphTensorBench(GraphTensorOptions options) : options_(std::move(options)) {}

  const GraphTensorOptions& options() const { return options_; }
  bool wants(const char* figure) const;
  const Dataset& data(const std::string& graph);
  RunConfig config_for(const std::string& model) const;

  void say(const std::string& line) const;  // progress
  // Without a title it is only written: what has been measured so far, lest an interrupted run
  // loses it.
  void keep(const std::string& name, const std::string& title, const Report& report);
  void write(const std::string& name, const std::string& content);
  const std::vector<std::string>& files() const { return files_; }

 private:
  GraphTensorOptions options_;
  std::optional<Dataset> data_;
  std::string data_spec_;
  std::vector<std::string> files_;
};

// How frameworks compute a step, as plans of this engine; the last one is ours.
struct Style {
  const char* name;
  const char* plan;
};
inline constexpr Style kStyles[] = {
    {"edge-wise dense (PyG)", "tensor"}, {"edge by edge (DGL)", "edge"}, {"NAPA", "vertex"}, {"NAPA+DKP", "auto"}};

// The paper's measures, each added to those before it.
struct LoaderVariant {
  const char* name;
  LoaderOptions options;
};
std::vector<LoaderVariant> loader_variants(const GraphTensorOptions& options);

// An epoch of at most `batches` steps: its last ones.
struct EpochTimes {
  double seconds = 0, compute = 0, device = 0;  // see StepTimes
  int64_t batches = 0;
  LoaderTimes loader;  // of this epoch
};
EpochTimes run_epoch(BatchSession& session, int64_t epoch, int batches);

void bench_styles(GraphTensorBench& bench);      // Figs. 15-18
void bench_end_to_end(GraphTensorBench& bench);  // Fig. 19
void bench_timeline(GraphTensorBench& bench);    // Fig. 20
void bench_reuse(GraphTensorBench& bench);

void add_bench_graphtensor(Command bench);

}  // namespace nacre::cli
