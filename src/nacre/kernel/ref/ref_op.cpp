#include "nacre/kernel/ref/ref_op.h"

#include "nacre/base/error.h"
#include "nacre/kernel/ref/ref_impl.h"

namespace nacre::ref {
namespace {

bool supported(DType dtype) { return dtype == DType::f32 || dtype == DType::i32 || dtype == DType::u8; }

void check(const Node& node, std::span<const ConstView> inputs, const View& out) {
  const std::string name(op_info(node.op).name);
  const int wanted = op_info(node.op).num_inputs;
  NACRE_CHECK(wanted == kAnyInputs ? !inputs.empty() : inputs.size() == count(wanted),
              name + ": the number of operands is wrong");
  NACRE_CHECK(supported(out.type.dtype), name + ": there is no reference for results of type " + type_text(out.type));
  for (const ConstView& in : inputs) {
    NACRE_CHECK(supported(in.type.dtype), name + ": there is no reference for operands of type " + type_text(in.type));
  }
}

}  // namespace

template <class T>
void run(const Node& node, const Blocks& blocks, const StepContext& step, std::span<const ConstView> inputs, View out) {
  check(node, inputs, out);
  const Call<T> call{node, blocks, step, inputs, out};
  const bool done = run_index(call) || run_lstm(call) || run_matrix(call) || run_elementwise(call) || run_shape(call) ||
                    run_norm(call) || run_loss(call) || run_exchange(call);
  NACRE_CHECK(done, std::string(op_info(node.op).name) + ": no reference implementation computes this operation");
}

template void run<float>(const Node&, const Blocks&, const StepContext&, std::span<const ConstView>, View);
template void run<double>(const Node&, const Blocks&, const StepContext&, std::span<const ConstView>, View);

}  // namespace nacre::ref
