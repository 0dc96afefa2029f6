// The passes that make a plan, in their order. Passes over the DFG are functions from DFG to DFG
// (rewrite.h, swap.h, factors.h, sites.h, dfg/recompute.h). Passes over kernels are the files of
// plan/passes, one each.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "nacre/plan/draft.h"

namespace nacre {

struct Pass {
  const char* name;
  const char* place;   // why the pass has its place in the order
  const char* needed;  // why it cannot be left out; null if it can
  void (*run)(Draft&);
};

// Returns all passes in the order in which they run.
const std::vector<Pass>& pass_table();

// Returns the name of the pass that `given` stands for, whatever its capitals and hyphens. Throws
// UserError naming `option`, with a suggestion, if there is none.
std::string choose_pass(const std::string& given, const std::string& option);
// Throws UserError naming `option` if a pass is unknown or cannot be left out.
void check_disabled_passes(const std::set<std::string>& names, const std::string& option);

// Checks what must hold between two passes: the DFG is sound; and from `group` on, each node is
// computed by at most one kernel, kernels come after the kernels whose values they read, and
// results are computed.
void validate(const Draft& draft);

void inline_edges(Draft& draft);
void group(Draft& draft);
void sink_summed_rows(Draft& draft);
void sink_tails(Draft& draft);
void join_products(Draft& draft);
void build_programs(Draft& draft);
void drop_unread(Draft& draft);
void store_values(Draft& draft);
void estimate_costs(Draft& draft);
void choose_variants(Draft& draft);

}  // namespace nacre
