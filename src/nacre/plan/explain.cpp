#include "nacre/plan/explain.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace nacre {
namespace {

// Returns the number of elements of a value, which an operation reads or writes row by row as
// 32-bit floats.
double elements(const Dfg& dfg, const Blocks& blocks, NodeRef i) {
  return static_cast<double>(blocks.rows(dfg[i].type.space) * dfg[i].type.row_size());
}

// Returns the operations of the recurrent products of an LSTM, without the elementwise work of its
// gates.
double lstm_flops(const Dfg& dfg, const Blocks& blocks, const Node& node) {
  const NodeRef z = node.inputs[node.op == Op::lstm ? 0 : 1];
  const auto gates = static_cast<double>(dfg[z].type.dims[0]);
  const auto edges = static_cast<double>(blocks.rows(Space::edge(dfg[z].type.space.layer)));
  // The two gradients run the forward pass again, once for both, which is counted here for
  // lstm_grad_z.
  return edges * gates * gates / 2 * (node.op == Op::lstm_grad_z ? 2 : 1);
}

}  // namespace

DfgWork count_dfg_work(const Dfg& dfg, const Blocks& blocks) {
  DfgWork work;
  for (NodeRef i = 0; i < dfg.size(); ++i) {
    const Node& node = dfg[i];
    const double out = elements(dfg, blocks, i);
    const double in = node.inputs.empty() ? 0 : elements(dfg, blocks, node.inputs[0]);
    switch (node.op) {
      case Op::matmul:
      case Op::matmul_t:
      case Op::typed_matmul:
      case Op::typed_matmul_t:
        work.product_flops += 2 * in * static_cast<double>(node.type.dims[0]);
        break;
      case Op::weight_grad:
      case Op::typed_weight_grad:
        work.product_flops += 2 * in * static_cast<double>(node.type.dims[1]);
        break;
      case Op::lstm:
      case Op::lstm_grad_z:
      case Op::lstm_grad_w:
      case Op::lstm_gates_grad:
        work.product_flops += lstm_flops(dfg, blocks, node);
        break;
      case Op::reshape:
      case Op::expand:
      case Op::slice:
      case Op::pad:
      case Op::concat:
      case Op::join_rows:
      case Op::slice_rows:
        break;  // these kernels do no arithmetic
      default:
        if (op_info(node.op).op_class == OpClass::neural) work.neural_flops += std::max(in, out);
        // An indexing operation reads its operand's rows and writes its own.
        if (op_info(node.op).op_class == OpClass::indexing) work.index_bytes += 4 * (in + out);
    }
  }
  work.neural_flops += work.product_flops;
  return work;
}

double neural_removed(const DfgWork& before, const DfgWork& after) {
  return before.neural_flops > 0 ? 100 * (1 - after.neural_flops / before.neural_flops) : 0;
}

double kernel_floor(const Kernel& kernel, const Work& work, const DeviceProfile& profile) {
  return std::max(kernel.floor_bytes / profile.stream_bytes, work[Feature::flops] / profile.gemm_flops);
}

PartitionTable main_table(const Plan& plan, const Blocks& blocks) {
  std::map<std::string, double> seconds;
  for (const Kernel& k : plan.kernels) {
    if (k.table.empty() || k.once) continue;
    seconds[k.table.text()] += nominal_cpu().model.predict(kernel_work(k, plan, blocks, nominal_cpu().cache_bytes));
  }
  const auto most = std::max_element(seconds.begin(), seconds.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == seconds.end() ? PartitionTable() : PartitionTable::parse(most->first);
}

}  // namespace nacre
