// Operands of kernels by name: what a kernel's operands are called is what the DFG has in their
// places.
#include "nacre/plan/operands.h"

#include <gtest/gtest.h>

#include <set>

#include "nacre/base/error.h"
#include "plan/plans.h"

namespace nacre::test {
namespace {

TEST(Operands, AreGivenAndReadByName) {
  Kernel k;
  k.kind = KernelKind::typed_reduce;
  set_operands(k, TypedReduceOperands{.x = 3, .weight = 5, .scale = 7});
  const auto in = operands<TypedReduceOperands>(k);
  EXPECT_EQ(in.x, 3);
  EXPECT_EQ(in.weight, 5);
  EXPECT_EQ(in.scale, 7);
  set_operands(k, TypedReduceOperands{.x = 3, .weight = 5});
  EXPECT_EQ(operands<TypedReduceOperands>(k).scale, -1);
}

TEST(Operands, OfAnotherKindAreRefused) {
  Kernel k;
  k.kind = KernelKind::spmm;
  set_operands(k, SpmmOperands{.x = 1});
  EXPECT_THROW(operands<ProductOperands>(k), InternalError);
  EXPECT_THROW(sequence_weight(k), InternalError);
  k.args.push_back(2);
  EXPECT_THROW(operands<SpmmOperands>(k), InternalError) << "a spmm has two operands";
}

// A product's operands fit each other, and a gradient's fit its result, in every plan.
void expect_fitting(const Plan& plan) {
  const auto width = [&](NodeRef i) { return plan.dfg[i].type.row_size(); };
  const auto dims = [&](NodeRef i) { return plan.dfg[i].type.dims; };
  for (const Kernel& k : plan.kernels) {
    SCOPED_TRACE(std::string(kernel_name(k.kind)) + " " + std::to_string(k.root));
    if (k.kind == KernelKind::matmul || k.kind == KernelKind::typed_rows) {
      const auto in = operands<ProductOperands>(k);
      EXPECT_EQ(width(in.x), dims(in.weight)[k.transpose ? 1 : 0]);
    } else if (k.kind == KernelKind::typed_reduce) {
      const auto in = operands<TypedReduceOperands>(k);
      EXPECT_EQ(width(in.x), dims(in.weight)[k.transpose ? 1 : 0]);
    } else if (k.kind == KernelKind::weight_grad || k.kind == KernelKind::typed_rows_grad) {
      const auto in = operands<WeightGradOperands>(k);
      EXPECT_EQ(dims(k.root), (Dims{width(in.x), width(in.gradient)}));
    } else if (k.kind == KernelKind::typed_weight_grad) {
      const auto in = operands<TypedWeightGradOperands>(k);
      EXPECT_EQ(dims(k.root), (Dims{width(in.x), width(in.gradient)}));
    } else if (k.kind == KernelKind::spmm) {
      const auto in = operands<SpmmOperands>(k);
      EXPECT_EQ(width(in.x), width(k.root));
      if (in.weight >= 0) {
        EXPECT_EQ(width(in.weight), k.heads);
      }
    } else if (is_sequence(k.kind)) {
      const Dims w = dims(sequence_weight(k));
      EXPECT_EQ(w[1], 4 * w[0]);
      if (k.kind == KernelKind::lstm) {
        EXPECT_EQ(width(operands<LstmOperands>(k).z), w[1]);
      }
      if (k.kind == KernelKind::lstm_grad) {
        EXPECT_EQ(width(operands<LstmGradOperands>(k).gradient), w[0]);
      }
    } else if (k.kind == KernelKind::loss) {
      const auto in = operands<LossOperands>(k);
      EXPECT_EQ(in.gradient >= 0, plan.dfg[k.root].op == Op::nll_grad || plan.dfg[k.root].op == Op::bce_grad);
    }
  }
}

TEST(Operands, FitEachOtherInThePlansOfAllModels) {
  for (const char* model : {"gcn", "sage", "sage-lstm", "gat", "gatv2", "rgcn", "gin", "mlp"}) {
    for (const char* option : {"", "dst", "edge"}) {
      SCOPED_TRACE(std::string(model) + " " + option);
      const PlannedModel written = plan_model(usual(model, 2));
      expect_fitting(*option == 0 ? written.plan : plan_model(usual(model, 2), choosing(written, option)).plan);
    }
  }
}

// Kernels that reduce edges walk the block of these edges. Sequences walk the block that ends at
// their destinations.
TEST(WalkedLayer, IsThatOfTheEdgesAKernelReads) {
  for (const char* model : {"gcn", "sage-lstm", "gat", "rgcn"}) {
    SCOPED_TRACE(model);
    const Plan plan = plan_model(usual(model, 3)).plan;
    std::set<int> walked;
    for (const Kernel& k : plan.kernels) {
      const Node& root = plan.dfg[k.root];
      const int layer = walked_layer(plan.dfg, k);
      if (k.kind == KernelKind::lstm) {
        EXPECT_EQ(layer, root.type.space.layer - 1);
      } else if (k.kind == KernelKind::spmm && root.type.space.kind == SpaceKind::vertex && !k.once) {
        const int end = root.attr == Attr::dst ? root.type.space.layer - 1 : root.type.space.layer;
        EXPECT_EQ(layer, end) << k.root;
      } else if (root.type.space.kind == SpaceKind::edge) {
        EXPECT_EQ(layer, root.type.space.layer);
      }
      if (root.op == Op::index_add || root.op == Op::lstm) walked.insert(layer);
    }
    EXPECT_EQ(walked, (std::set<int>{0, 1, 2}));
  }
}

}  // namespace
}  // namespace nacre::test
