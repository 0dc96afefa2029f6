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

}  // namespace

LstmFacts lstm_facts(const PlannedKernel& k) {
  const bool grad = k.kernel.kind == KernelKind::lstm_grad;
  const NodeRef z = grad ? operands<LstmGradOperands>(k.kernel).z : operands<LstmOperands>(k.kernel).z;
  return {k.width(z) / 4};
}

const VariantList<LstmFacts>& lstm_variants() {
  static const VariantList<LstmFacts> list = {
      "sequences", false, {{"a group of threads each", groups_decline, nullptr}, {"in tiles", nullptr, nullptr}}};
  return list;
}

}  // namespace nacre
