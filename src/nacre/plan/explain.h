// Says why a plan is what it is, for people and for programs: what the DFG of the model asks for,
// what the rewrites removed, which kernels run over which gTasks and how far from the floor, and
// which alternatives lost. Everything here is made from values; the caller does the measuring.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nacre/cost/profile.h"
#include "nacre/gtask/attributes.h"
#include "nacre/gtask/pattern.h"
#include "nacre/plan/drop.h"
#include "nacre/plan/narrow.h"
#include "nacre/plan/order.h"

namespace nacre {

// What a DFG computes, counted node by node: neural work in operations, indexing work in bytes of
// rows moved.
struct DfgWork {
  double neural_flops = 0;
  double product_flops = 0;  // the part of them in matrix products
  double index_bytes = 0;
};
DfgWork count_dfg_work(const Dfg& dfg, const Blocks& blocks);
// Returns the share of the neural operations that was removed, in percent.
double neural_removed(const DfgWork& before, const DfgWork& after);

// Returns the partition table of the kernels that are predicted to take longest among those that
// run over gTasks, or an empty table if no kernel of a step does.
PartitionTable main_table(const Plan& plan, const Blocks& blocks);

// Returns the least seconds that a kernel can take by the rates of a profile: the time in which the
// memory moves its bytes or the time in which the processor computes its matrix products, whichever
// is longer.
double kernel_floor(const Kernel& kernel, const Work& work, const DeviceProfile& profile);

struct KernelReport {
  double predicted = -1;  // predicted seconds; negative if unknown
  double measured = -1;
  double floor = 0;  // the result of kernel_floor()
};

struct TableReport {
  PartitionTable table;
  std::string kernels;  // numbers of the kernels that use the table
  Patterns patterns;
};

struct Explanation {
  std::string data, model;
  std::string source;  // how the plan was found (policy.h)
  double search_seconds = 0;
  Dfg written{"written"};  // the DFG as the model wrote it, with its gradient
  Plan plan;
  DfgWork work_before, work_after;
  std::vector<Site> sites;            // places with a choice
  std::vector<KernelReport> kernels;  // one report for each kernel of the plan
  std::vector<TableReport> tables;
  std::vector<Candidate> candidates;                   // all candidates that were compared
  std::vector<std::pair<std::string, double>> memory;  // names of memories and their bytes
  LivePeak peak;
  NarrowReport narrow;  // what is stored as bf16
  std::vector<Dropped> dropped;
};

// Returns the explanation as text for people. With `all`, it has the DFGs and every candidate in
// full.
std::string explain_text(const Explanation& e, bool all);
// Returns a few lines for people: whether anything that was compared is faster than the plan, and
// if so, why it was not taken.
std::string alternatives_text(const Explanation& e);
std::string explain_json(const Explanation& e);

}  // namespace nacre
