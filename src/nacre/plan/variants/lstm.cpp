#include "nacre/plan/variants/lstm.h"

#include <fmt/format.h>

#include "nacre/kernel/cuda/lstm.h"
#include "nacre/plan/operands.h"

namespace nacre {
namespace {

std::string groups_decline(const LstmFacts& f, const DeviceTraits&) {
  if (f.hidden <= cuda::kLstmGroupHidden) return "";
  return fmt::format("the LSTM has {} units, and the registers of a group of threads hold the recurrent matrix of {}",
                     f.hidden, cuda::kLstmGroupHidden);
}

// Steps of a long sum that a group of threads adds.
constexpr int64_t kPiece = 128;
// The gradient takes at least this many steps at a time.
constexpr int64_t kFewestSteps = 1024;

std::string pieces_decline(const LstmFacts& f, const DeviceTraits&) {
  return f.by_source ? "" : "no rows of several steps are added";
}

int64_t longest_source(const LstmFacts&, const DeviceTraits&) { return kPiece * 3 / 2; }

}  // namespace

LstmFacts lstm_facts(const PlannedKernel& k) {
  const bool grad = k.kernel.kind == KernelKind::lstm_grad;
  const NodeRef z = grad ? operands<LstmGradOperands>(k.kernel).z : operands<LstmOperands>(k.kernel).z;
  LstmFacts f{k.width(z) / 4, k.graph().num_edges()};
  const auto computes_z = [&](NodeRef i) { return i >= 0 && k.node(i).op == Op::lstm_grad_z; };
  f.by_source = grad && k.node(z).type.space.kind != SpaceKind::edge &&
                (computes_z(k.kernel.root) || computes_z(k.kernel.second));
  return f;
}

const VariantList<LstmFacts>& lstm_variants() {
  static const VariantList<LstmFacts> list = {
      "sequences", false, {{"a group of threads each", groups_decline, nullptr}, {"in tiles", nullptr, nullptr}}};
  return list;
}

ChunkFacts lstm_chunks(const LstmFacts& f, const DeviceTraits& device) {
  // The gates are four rows, and the state and the output before the step are one each.
  return {f.steps, 6 * f.hidden * 4, device.rows_budget(), kFewestSteps};
}

const VariantList<LstmFacts>& long_source_variants() {
  static const VariantList<LstmFacts> list = {
      "long rows of sources",
      false,
      {{"in pieces", pieces_decline, nullptr, longest_source}, {"whole", nullptr, nullptr}},
      {"above {} edges", 2}};
  return list;
}

int64_t piece_of_source(int64_t limit) { return (2 * limit + 2) / 3; }

}  // namespace nacre
