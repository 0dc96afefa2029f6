// docs/dev/cuda_samples shows one kernel of each family as CUDA text. The pages are what the
// writers write today: NACRE_WRITE_SAMPLES=1 writes them anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "nacre/kernel/cuda/exchange.h"
#include "nacre/kernel/cuda/load_rows.h"
#include "nacre/kernel/cuda/loss.h"
#include "nacre/kernel/cuda/lstm.h"
#include "nacre/kernel/cuda/moments.h"
#include "nacre/kernel/cuda/optimizer.h"
#include "nacre/kernel/cuda/partition.h"
#include "nacre/kernel/cuda/row_product.h"
#include "nacre/kernel/cuda/rows.h"
#include "nacre/kernel/cuda/sample.h"
#include "nacre/kernel/cuda/scores.h"
#include "nacre/kernel/cuda/typed.h"
#include "nacre/kernel/cuda/typed_mma.h"

namespace nacre::cuda {
namespace {

constexpr int64_t kWidth = 64;
constexpr int64_t kSharedBytes = 227 << 10;  // shared memory of a block of an H200

struct Sample {
  std::string page, title, about;
  Source source;
};

// Returns a program that stores relu(x + bias), where the micro-op `first` gives x.
RowProgram bias_and_relu(MicroOp first) {
  RowProgram p;
  p.domain = Space::vertex(1);
  p.operands = {0, 1};
  p.widths = {kWidth, kWidth, kWidth, kWidth};
  p.code = {{.op = first, .out = 0},
            {.op = MicroOp::load_row0, .out = 1, .operand = 0},
            {.op = MicroOp::add, .out = 2, .a = 0, .b = 1},
            {.op = MicroOp::relu, .out = 3, .a = 2},
            {.op = MicroOp::store, .a = 3, .operand = 1}};
  return p;
}

Sample map_sample() {
  RowProgram p = bias_and_relu(MicroOp::load);
  p.operands.push_back(2);
  p.code[0].operand = 2;
  return {"rows", "A map over vertices",
          "`map_source()` in `src/nacre/kernel/cuda/rows.h`: y = relu(x + bias) over rows of 64\n"
          "elements. `p0` is the bias, `p1` is y and `p2` is x. Sixteen threads share a row.",
          map_source(p).source};
}

Sample reduce_sample() {
  RowProgram p;
  p.domain = Space{SpaceKind::edge, 0};
  p.operands = {0, 1};
  p.widths = {kWidth, 1, kWidth};
  p.code = {{.op = MicroOp::load_src, .out = 0, .operand = 0},
            {.op = MicroOp::load, .out = 1, .operand = 1},
            {.op = MicroOp::mul, .out = 2, .a = 0, .b = 1, .b_repeat = static_cast<int>(kWidth)}};
  const RowProgram tail = bias_and_relu(MicroOp::root);
  ReduceSpec spec;
  spec.program = &p;
  spec.value = 2;
  spec.tail = &tail;
  spec.store = false;
  spec.batch = 2;  // number of rows in flight; kernels of plans mostly have more
  return {"reduce", "A reduction over the edges of each row, with a tail",
          "`reduce_source()` in `src/nacre/kernel/cuda/rows.h`: each row sums its neighbours' rows\n"
          "(`p0`) times the weights of the edges (`p1`). The tail adds a bias (`q0`), applies relu and\n"
          "stores the row (`q1`) while it is in registers.",
          reduce_source(spec).source};
}

Sample softmax_sample() {
  constexpr int64_t kHeads = 4;
  RowProgram p;
  p.domain = Space{SpaceKind::edge, 0};
  p.operands = {0, 1};
  p.widths = {kHeads, kHeads, kHeads, kHeads};
  p.code = {{.op = MicroOp::load_src, .out = 0, .operand = 0},
            {.op = MicroOp::load_dst, .out = 1, .operand = 1},
            {.op = MicroOp::add, .out = 2, .a = 0, .b = 1},
            {.op = MicroOp::leaky_relu, .out = 3, .a = 2, .alpha = 0.2F}};
  return {"softmax", "Softmax over the edges of each destination",
          "`softmax_source()` in `src/nacre/kernel/cuda/rows.h`: the attention of GAT with four heads,\n"
          "softmax of leaky_relu(source + destination).",
          softmax_source(p, 3, 8, false).source};
}

std::vector<Sample> samples() {
  const RowProgram tail = bias_and_relu(MicroOp::root);
  RowProduct product;
  product.k = {kWidth};
  product.n = kWidth;
  product.tail = &tail;
  product.shared_bytes = kSharedBytes;
  return {
      map_sample(),
      reduce_sample(),
      softmax_sample(),
      {"typed", "Sums over the edges of pairs",
       "`typed_sum()` in `src/nacre/kernel/cuda/typed.h`: rows of 64 elements, scaled by one number of\n"
       "each edge.",
       typed_sum({.width = kWidth, .scaled = true})},
      {"typed_mma", "Typed products on tensor cores",
       "`typed_product()` in `src/nacre/kernel/cuda/typed_mma.h`: 64 times 64, four types, the rows of\n"
       "a vertex found by cell.",
       typed_product({.k = kWidth, .n = kWidth, .cells = 4, .shared_bytes = kSharedBytes})},
      {"row_product", "A dense product with its tail",
       "`row_product()` in `src/nacre/kernel/cuda/row_product.h`: relu(x · w + bias), 64 times 64.",
       row_product(product)},
      {"lstm", "LSTMs over neighbours",
       "`lstm_forward()` in `src/nacre/kernel/cuda/lstm.h`: 16 units. A group of 16 threads runs one\n"
       "sequence.",
       lstm_forward({.hidden = 16}, false)},
      {"loss", "Losses", "`loss_sum()` in `src/nacre/kernel/cuda/loss.h`: negative log likelihood of seven classes.",
       loss_sum({.kind = LossKind::nll, .classes = 7})},
      {"moments", "Statistics of columns",
       "`column_sums()` in `src/nacre/kernel/cuda/moments.h`: the sums that the gradient of a\n"
       "standardisation needs, over 64 columns.",
       column_sums(ColumnSums::grads, kWidth)},
      {"optimizer", "A step of the optimiser",
       "`optimizer_step()` in `src/nacre/kernel/cuda/optimizer.h`: Adam. One block for each piece of the\n"
       "parameters.",
       optimizer_step(false)},
      {"scores", "Scores of predictions",
       "`score_rows()` in `src/nacre/kernel/cuda/scores.h`: rows whose label has the largest logit, of\n"
       "seven classes.",
       score_rows(ScoreLabels::single, 7)},
      {"partition", "Cutting a graph into gTasks",
       "`bound_by_values()` in `src/nacre/kernel/cuda/partition.h`: the first edge that a gTask cannot\n"
       "have if it may hold a limited number of distinct values.",
       bound_by_values()},
      {"sample", "Sampling neighbours",
       "`pick_uniform()` in `src/nacre/kernel/cuda/sample.h`: ten neighbours of each vertex without\n"
       "replacement.",
       pick_uniform(10, false)},
      {"exchange", "Rows and sums of ranks",
       "`move_rows()` in `src/nacre/kernel/cuda/exchange.h`: rows of bf16 from another GPU are added to\n"
       "rows of f32. A word has four elements.",
       move_rows({.floats = 4, .words = kWidth / 4, .action = RowAction::widen_add})},
      {"load_rows", "Feature rows of a batch",
       "`load_rows()` in `src/nacre/kernel/cuda/load_rows.h`: rows of 64 bf16 values, which lie in the\n"
       "memory of several devices and of the host. The tables say where each row lies.",
       load_rows({.type = DType::bf16, .width = kWidth}, RowPlaces::by_tables)},
  };
}

std::string fenced(const std::string& text) { return "```cuda\n" + text + "```\n"; }

std::string page_of(const Sample& sample) {
  std::string text = sample.source.text;
  const std::string head = prelude();
  if (const size_t at = text.find(head); at != std::string::npos) {
    text.replace(at, head.size(), "// Here stand the functions of prelude.md.\n");
  }
  return "# " + sample.title + "\n\n" + sample.about + "\n\n" + fenced(text);
}

std::string prelude_page() {
  return "# Functions that every kernel may use\n\n"
         "`prelude()` in `src/nacre/kernel/cuda/source.h` stands at the head of most sources.\n\n" +
         fenced(prelude());
}

void expect_page(const std::string& name, const std::string& text) {
  const std::string path = std::string(NACRE_SAMPLES) + "/" + name + ".md";
  if (std::getenv("NACRE_WRITE_SAMPLES") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream found;
  found << file.rdbuf();
  EXPECT_EQ(found.str(), text) << path << " is old; NACRE_WRITE_SAMPLES=1 test_kernel_cuda writes it anew";
}

TEST(CudaSamples, AreWhatTheWritersWrite) {
  expect_page("prelude", prelude_page());
  for (const Sample& sample : samples()) expect_page(sample.page, page_of(sample));
}

}  // namespace
}  // namespace nacre::cuda
