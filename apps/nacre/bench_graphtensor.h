// Declares nacre bench graphtensor, which measures the figures of the GraphTensor paper, as far as
// one machine can, on twins with light and heavy features. There is one file for each question;
// each writes CSV and SVG into one folder.
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
  // Specs of the graphs that are measured. SPEC#WIDTH means the graph of SPEC with features of that
  // width instead of its own.
  std::vector<std::string> graphs = {"twin:products@0.02", "twin:reddit@0.05", "twin:gowalla#4353",
                                     "twin:wiki-talk@0.03#4353"};
  std::vector<std::string> models = {"gcn", "sage", "ngcf"};
  std::vector<std::string> figures;
  std::vector<std::string> variants;  // names of the loader's variants to measure; empty: all
  int rounds = 3;                     // number of times that the variants take turns
  int batches = 12;                   // batches of an epoch; each style gets a third of them
  // Number of batches for which bench_reuse() uses a plan that was tuned on other batches.
  int blocks = 100;
  std::string out = "bench-graphtensor";
};

class GraphTensorBench {
 public:
  explicit GraphTensorBench(GraphTensorOptions options) : options_(std::move(options)) {}

  const GraphTensorOptions& options() const { return options_; }
  bool wants(const char* figure) const;
  const Dataset& data(const std::string& graph);
  RunConfig config_for(const std::string& model) const;

  void say(const std::string& line) const;  // prints progress
  // Writes a report to its files and, if there is a title, prints it. The figures call keep()
  // without a title after each measurement, so that an interrupted run loses nothing.
  void keep(const std::string& name, const std::string& title, const Report& report);
  void write(const std::string& name, const std::string& content);
  const std::vector<std::string>& files() const { return files_; }

 private:
  GraphTensorOptions options_;
  std::optional<Dataset> data_;
  std::string data_spec_;
  std::vector<std::string> files_;
};

// Describes how a framework computes a step, as a plan of this engine. The last of kStyles is
// Nacre's own way, the others are those of other frameworks.
struct Style {
  const char* name;
  const char* plan;
};
inline constexpr Style kStyles[] = {
    {"edge-wise dense (PyG)", "tensor"}, {"edge by edge (DGL)", "edge"}, {"NAPA", "vertex"}, {"NAPA+DKP", "auto"}};

// Names a setting of the loader. The first of loader_variants() is the serial order; each further
// one adds an optimisation of the paper's scheduler to the one before it.
struct LoaderVariant {
  const char* name;
  LoaderOptions options;
};
std::vector<LoaderVariant> loader_variants(const GraphTensorOptions& options);

// Holds the times of the steps that run_epoch() runs: the last `batches` steps of an epoch, or all
// of them if the epoch has fewer.
struct EpochTimes {
  double seconds = 0;              // time from the first step to the last loss
  double compute = 0, device = 0;  // StepTimes::host and StepTimes::device of these steps
  int64_t batches = 0;
  LoaderTimes loader;  // times of this epoch
};
EpochTimes run_epoch(BatchSession& session, int64_t epoch, int batches);

void bench_styles(GraphTensorBench& bench);      // measures Figs. 15 to 18
void bench_end_to_end(GraphTensorBench& bench);  // measures Fig. 19
void bench_timeline(GraphTensorBench& bench);    // measures Fig. 20
void bench_reuse(GraphTensorBench& bench);

void add_bench_graphtensor(Command bench);

}  // namespace nacre::cli
