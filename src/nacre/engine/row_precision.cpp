#include "nacre/engine/row_precision.h"

#include <algorithm>
#include <string>

#include "nacre/base/error.h"
#include "nacre/plan/narrow.h"

namespace nacre {
namespace {

constexpr char kNarrow = 'b';
constexpr char kWide = 'f';

// Returns how many bytes an element of a halo row has on average.
double mean_bytes(const Kernel& kernel, const LocalGraph& local, double stored) {
  double rows = 0, bytes = 0;
  for (const PeerRows& peer : local.peers) {
    const auto count = static_cast<double>(peer.halo_end - peer.halo_begin);
    rows += count;
    bytes += count * (kernel.narrow_ranks[peer.part] != 0 ? 2 : stored);
  }
  return rows > 0 ? bytes / rows : stored;
}

}  // namespace

void agree_on_rows(Plan& plan, const RankPart& part, Communicator& ranks) {
  std::vector<Kernel*> calls;
  std::string own;
  for (Kernel& kernel : plan.kernels) {
    if (kernel.kind != KernelKind::exchange) continue;
    calls.push_back(&kernel);
    own += moves_bf16(plan, kernel) ? kNarrow : kWide;
  }
  const std::vector<std::string> all = ranks.all_gather(own);
  for (const std::string& theirs : all)
    NACRE_CHECK(theirs.size() == own.size(), "the plans of two ranks communicate differently");
  for (size_t c = 0; c < calls.size(); ++c) {
    Kernel& kernel = *calls[c];
    kernel.narrow_ranks.clear();
    kernel.travel_bytes = 0;
    if (std::all_of(all.begin(), all.end(), [&](const std::string& theirs) { return theirs[c] == own[c]; })) continue;
    for (const std::string& theirs : all) kernel.narrow_ranks.push_back(theirs[c] == kNarrow ? 1 : 0);
    const bool reversed = part.reversed != nullptr && part.blocks.is_reversed(plan.dfg[kernel.root].type.space);
    kernel.travel_bytes = mean_bytes(kernel, reversed ? *part.reversed : part.local, stored_bytes(plan, kernel));
  }
}

}  // namespace nacre
