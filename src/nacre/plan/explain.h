// Why a plan is what it is, for people and for programs: what the model's DFG asks for, what the rewrites removed,
// which kernels run over which gTasks and how far from the floor, and which alternatives lost. Everything here is made
// from values; measuring is the caller's work.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nacre/gtask/attributes.h"
#include "nacre/gtask/pattern.h"
#include "nacre/plan/drop.h"
#include "nacre/plan/order.h"

namespace nacre {

// What a DFG computes, counted node by node: neural work in operations, indexing work in bytes of rows moved.
struct DfgWork {
  double neural_flops = 0;
  double product_flops = 0;  // of them, matrix products
  double index_bytes = 0;
};
DfgWork count_dfg_work(const Dfg& dfg, const Blocks& blocks);
// Share of the neural operations that is gone, in percent.
double neural_removed(const DfgWork& before, const DfgWork& after);

// Returns the partition table of the kernels that are predicted to take the longest among those that run over gTasks;
// an empty table if no kernel of a step does.
PartitionTable main_table(const Plan& plan, const Blocks& blocks);

struct KernelReport {
  double predicted = -1;  // seconds; negative: not known
  double measured = -1;
  double floor = 0;  // seconds: the larger of bytes at the memory's rate and matrix products at the processor's
};

struct TableReport {
  PartitionTable table;
  std::string kernels;  // numbers of those that use it
  Patterns patterns;
};

struct Explanation {
  std::string data, model;
  std::string source;  // how the plan was found (policy.h)
  double search_seconds = 0;
  Dfg written{"written"};  // as the model wrote it, with its gradient
  Plan plan;
  DfgWork work_before, work_after;
  std::vector<Site> sites;            // places with a choice
  std::vector<KernelReport> kernels;  // of each kernel of the plan
  std::vector<TableReport> tables;
  std::vector<Candidate> candidates;                   // all that were compared
  std::vector<std::pair<std::string, double>> memory;  // bytes
  LivePeak peak;
  std::vector<Dropped> dropped;
};

std::string explain_text(const Explanation& e, bool all);  // all: the DFGs and every candidate in full
// A few lines for people: whether anything that was compared is faster than what the plan does, and then why not that.
std::string alternatives_text(const Explanation& e);
std::string explain_json(const Explanation& e);

}  // namespace nacre
