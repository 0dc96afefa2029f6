// Declares nacre bench nugnn, which measures figures and tables of the νGNN paper. Each group of
// them is measured by a file of its own, and written as CSV into one folder.
#pragma once

#include <string>
#include <vector>

#include "nacre/train/step_samples.h"
#include "report.h"

namespace nacre::cli {

struct NugnnCommand {
  RunConfig config;
  std::string figures = "t7";
  std::string models = "gcn,gat";
  std::string graphs;
  PartSampling sampling;
  int folds = 12;
  std::vector<std::string> device_sets;  // each text is a list of devices, as for --devices
  std::string methods = "uniform,frequency,flops,cores,auto";
  int epochs = 200;  // epochs of the run that the shares are chosen for, and of each run of Table 2
  int timed = 15;    // number of steps that are timed
  std::string out = "bench-nugnn";
};

// Returns the settings of the paper where the user gave none: GCN has 4 layers of width 256, the
// others have 3 layers of width 128, and GAT has 4 heads.
RunConfig config_for(const NugnnCommand& c, const std::string& model);

// Holds the tables of one run, each of which has a file of its own.
class Tables {
 public:
  explicit Tables(std::string folder) : folder_(std::move(folder)) {}

  // Writes a table to its file and, if there is a title, prints it. Callers give no title after
  // each single measurement, so that an interrupted run loses nothing.
  void keep(const std::string& name, const std::string& title, const Report& report);
  std::string files() const;

 private:
  std::string folder_;
  std::vector<std::string> files_;
};

void bench_regressors(const NugnnCommand& c, Tables& tables);  // measures Table 7
// Measures Figs. 10 to 13 and Tables 5 and 6.
void bench_shares(const NugnnCommand& c, Tables& tables);
void bench_precisions(const NugnnCommand& c, Tables& tables);  // measures Table 2

}  // namespace nacre::cli
