// Whole rows moved inside the device: counted rows joined to the rows of the vertices, or cut from them.
#include "nacre/base/error.h"
#include "nacre/engine/gpu/context.h"

namespace nacre {
namespace {

constexpr int64_t kFloat = sizeof(float);

KernelNeeds copy_needs(const GpuKernel&) { return {}; }

Step copy_step(const GpuKernel& k, void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return {};
  return [&device = k.context.device(), to, from, bytes] { device.copy(to, from, bytes); };
}

Step bind_copy(const GpuKernel& k, void*) {
  const Node& root = k.node(k.kernel.root);
  const int64_t row = root.type.row_size() * kFloat;
  auto* out = static_cast<char*>(k.pointer(k.kernel.root));
  if (root.op == Op::slice_rows) {
    const NodeRef from = root.inputs[0];
    NACRE_CHECK(root.ints[0] + root.ints[1] <= k.rows(from), "copies rows that do not exist");
    return then(copy_step(k, out, static_cast<const char*>(k.pointer(from)) + root.ints[0] * row, root.ints[1] * row),
                [] {});
  }
  int64_t at = 0;
  Step all = [] {};
  for (const NodeRef in : root.inputs) {
    all = then(all, copy_step(k, out + at * row, k.pointer(in), k.rows(in) * row));
    at += k.rows(in);
  }
  NACRE_CHECK(at == k.rows(k.kernel.root), "joins another number of rows than are needed");
  return all;
}

}  // namespace

const GpuFamily kGpuCopy = {copy_needs, bind_copy};

}  // namespace nacre
