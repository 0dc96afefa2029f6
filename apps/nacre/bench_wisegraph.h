// Declares nacre bench wisegraph, which measures the figures of the WiseGraph paper on twins, and
// checks what the planner promises. There is one file for each figure or question; each writes CSV
// and SVG into one folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report.h"
#include "workbench.h"

namespace nacre::cli {

struct WiseOptions {
  RunConfig config;
  std::vector<std::string> graphs = {"twin:arxiv", "twin:products@0.1", "twin:reddit@0.1", "twin:proteins@0.25"};
  std::vector<std::string> models = {"gcn", "sage", "gat", "rgcn", "sage-lstm"};
  std::vector<std::string> figures;
  // These are the devices that Fig. 20 and Table 2 are measured on.
  std::vector<std::string> devices = {"cpu:1", "cpu:1"};
  int epochs = 6;           // number of timed epochs
  double scale = 1;         // factor on the size of every graph
  double lstm_scale = 0.1;  // further factor for models that read sequences
  double limit = 60;        // largest number of seconds of one training step
  std::string out = "bench-wisegraph";
};

class WiseBench {
 public:
  explicit WiseBench(const WiseOptions& options);

  const WiseOptions& options() const { return options_; }
  const DeviceProfile& profile();
  TimingOptions timing() const;

  // graph_for() returns the spec of the scaled graph that a model is run on. data() returns the
  // data set of a spec, and reads it unless it is the one that was read last.
  std::string graph_for(const std::string& graph, const std::string& model) const;
  const Dataset& data(const std::string& spec);
  // Returns the seconds that loading the last data set took.
  double load_seconds() const { return load_seconds_; }
  RunConfig config_for(const std::string& model) const;
  Workbench open(const std::string& graph, const std::string& model);

  void say(const std::string& line) const;  // prints progress
  // Writes a report to its files and, if there is a title, prints it. The figures call keep()
  // without a title after each measurement, so that an interrupted run loses nothing.
  void keep(const std::string& name, const std::string& title, const Report& report);
  void keep_svg(const std::string& name, const std::string& svg);
  const std::vector<std::string>& files() const { return files_; }

 private:
  void write(const std::string& file, const std::string& content);

  WiseOptions options_;
  std::optional<DeviceProfile> profile_;
  std::optional<Dataset> data_;
  std::string data_spec_;
  double load_seconds_ = 0;
  std::vector<std::string> files_;
};

void bench_epochs(WiseBench& bench);          // measures Fig. 13
void bench_pictures(WiseBench& bench);        // measures Fig. 15
void bench_stages(WiseBench& bench);          // measures Fig. 16
void bench_duplication(WiseBench& bench);     // measures Fig. 17
void bench_batches(WiseBench& bench);         // measures Fig. 18
void bench_outliers(WiseBench& bench);        // measures Fig. 19
void bench_rank_placement(WiseBench& bench);  // measures Fig. 20
void bench_rank_epochs(WiseBench& bench);     // measures Table 2
void bench_overhead(WiseBench& bench);        // measures Table 3
void bench_cost_model(WiseBench& bench);
void bench_placement(WiseBench& bench);  // measures what --dkp asks for
void bench_partition(WiseBench& bench);

}  // namespace nacre::cli
