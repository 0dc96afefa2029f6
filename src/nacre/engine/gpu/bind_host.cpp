// Runs the reference implementation of a node on the host. Its operands are copied to the host and
// its result back to the device. A node without operands depends on the blocks only, so it is
// computed when it is bound and copied when it runs.
#include <algorithm>

#include "nacre/engine/gpu/context.h"
#include "nacre/kernel/ref/ref_op.h"
#include "nacre/plan/variants/place.h"
#include "nacre/tensor/tensor.h"

namespace nacre {
namespace {

// Holds the bytes of a value on the host, and their place on the device.
struct Mirror {
  Tensor host;
  void* device;
};

KernelNeeds host_needs(const GpuKernel&) { return {}; }

// Returns the step that runs one node with the operands that the DFG names.
Step run_on_host(const GpuKernel& k, NodeRef root) {
  const auto mirror = [&](NodeRef i) {
    const ValueType& type = k.node(i).type;
    return Mirror{Tensor(type.dtype, {k.rows(i) * type.row_size()}), k.pointer(i)};
  };
  struct Call {
    Node node;
    const Blocks* blocks;
    std::vector<Mirror> operands;
    std::vector<ref::ConstView> inputs;
    Mirror result;
    ref::View out;
  };
  auto call = std::make_shared<Call>();
  call->node = k.node(root);
  call->blocks = &k.executor.blocks();
  for (const NodeRef a : call->node.inputs) {
    call->operands.push_back(mirror(a));
    call->inputs.push_back({call->operands.back().host.raw(), k.node(a).type, k.rows(a)});
  }
  call->result = mirror(root);
  call->out = {call->result.host.raw(), call->node.type, k.rows(root)};
  return [call, &device = k.context.device(), step = k.context.step()] {
    StepContext now;
    device.download(&now, step, sizeof(now));
    for (Mirror& m : call->operands) device.download(m.host.raw(), m.device, m.host.bytes());
    ref::run<float>(call->node, *call->blocks, now, call->inputs, call->out);
    device.upload(call->result.device, call->result.host.raw(), call->result.host.bytes());
  };
}

// Writes to `out` the number of edges at one end of each vertex. Every batch needs these numbers,
// and the reference implementation would first make a list of the ends of all edges.
void count_edges(const Graph& graph, bool at_dst, Tensor& out) {
  auto* degrees = out.data<float>();
  if (at_dst) {
    for (int64_t v = 0; v < graph.num_dst(); ++v) degrees[v] = static_cast<float>(graph.in_degree(v));
    return;
  }
  std::fill_n(degrees, out.size(), 0.0F);
  for (const NodeId v : graph.col_idx()) degrees[v] += 1;
}

Step copy_known(const GpuKernel& k, NodeRef root) {
  const Node& node = k.node(root);
  const Blocks& blocks = k.executor.blocks();
  Tensor host(node.type.dtype, {k.rows(root) * node.type.row_size()});
  if (node.op == Op::degree && node.type.dtype == DType::f32 && node.type.space.kind == SpaceKind::vertex) {
    const bool at_dst = node.attr == Attr::dst;
    count_edges(blocks.layer(node.type.space.layer - (at_dst ? 1 : 0)), at_dst, host);
  } else {
    ref::run<float>(node, blocks, {}, {}, {host.raw(), node.type, k.rows(root)});
  }
  const int64_t bytes = host.bytes();
  const std::shared_ptr<void> there = k.context.place(host.raw(), bytes);
  return [there, &device = k.context.device(), to = k.pointer(root), bytes] {
    if (bytes > 0) device.copy(to, there.get(), bytes);
  };
}

Step bind_node(const GpuKernel& k, NodeRef root) {
  return k.node(root).inputs.empty() ? copy_known(k, root) : run_on_host(k, root);
}

Step bind_host(const GpuKernel& k, void*) {
  k.variant<KernelPlace>(place_variants(), place_facts(k.planned()));
  const Step first = bind_node(k, k.kernel.root);
  return k.kernel.second < 0 ? first : then(first, bind_node(k, k.kernel.second));
}

}  // namespace

const GpuFamily kGpuHost = {host_needs, bind_host};

}  // namespace nacre
