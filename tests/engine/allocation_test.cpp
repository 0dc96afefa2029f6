// A step allocates nothing. The linker redirects the calls in our own code (--wrap), and operator
// new is replaced. What the shared library of oneTBB allocates for its task pools does not count.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

#include "model/cases.h"
#include "nacre/base/parallel.h"
#include "support/big_graphs.h"
#include "support/run_plan.h"

namespace {

std::atomic<bool> g_watching{false};
std::atomic<int64_t> g_allocations{0};

void count() {
  if (g_watching.load(std::memory_order_relaxed)) ++g_allocations;
}

}  // namespace

// The linker chooses these names: a call of NAME in our objects becomes __wrap_NAME, and
// __real_NAME is the function of the library.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
void* __real_malloc(size_t size);
void* __real_calloc(size_t n, size_t size);
void* __real_realloc(void* old, size_t size);
void* __real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void** p, size_t alignment, size_t size);

void* __wrap_malloc(size_t size) {
  count();
  return __real_malloc(size);
}
void* __wrap_calloc(size_t n, size_t size) {
  count();
  return __real_calloc(n, size);
}
void* __wrap_realloc(void* old, size_t size) {
  count();
  return __real_realloc(old, size);
}
void* __wrap_aligned_alloc(size_t alignment, size_t size) {
  count();
  return __real_aligned_alloc(alignment, size);
}
int __wrap_posix_memalign(void** p, size_t alignment, size_t size) {
  count();
  return __real_posix_memalign(p, alignment, size);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

void* operator new(size_t size) {
  count();
  if (void* p = __real_malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t alignment) {
  count();
  const auto a = static_cast<size_t>(alignment);
  if (void* p = __real_aligned_alloc(a, (size + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  count();
  return __real_malloc(size == 0 ? 1 : size);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t& /*tag*/) noexcept { std::free(p); }
void operator delete(void* p, size_t /*size*/) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t /*alignment*/) noexcept { std::free(p); }
void operator delete(void* p, size_t /*size*/, std::align_val_t /*alignment*/) noexcept { std::free(p); }

namespace nacre::test {
namespace {

TEST(Allocation, IsNoticed) {
  const auto counted = [](const auto& work) {
    g_allocations = 0;
    g_watching = true;
    work();
    g_watching = false;
    return g_allocations.load();
  };
  EXPECT_EQ(counted([] {}), 0);
  EXPECT_GE(counted([] { std::vector<int>(100).front() = 1; }), 1);
  EXPECT_GE(counted([] { allocate_bytes(1000); }), 1) << "aligned_alloc inside our libraries";
  EXPECT_GE(counted([] { parallel_for(100, 10, [](int64_t, int64_t) { std::vector<int>(100).front() = 1; }); }), 10);
}

int64_t allocations_of_a_step(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options) {
  const ref::Bindings bindings = model_bindings(dfg, blocks, 61);
  BoundPlan bound(make_plan(dfg, blocks, options), blocks, bindings);
  // The first steps may start workers and create buffers that stay.
  for (uint64_t step = 0; step < 2; ++step) bound.executor().run({1, step});
  // On a busy machine, a worker may start as late as now and allocate. What counts is what every
  // step allocates.
  int64_t least = std::numeric_limits<int64_t>::max();
  for (uint64_t step = 2; step < 6; ++step) {
    g_allocations = 0;
    g_watching = true;
    bound.executor().run({1, step});
    g_watching = false;
    least = std::min<int64_t>(least, g_allocations.load());
  }
  return least;
}

TEST(Allocation, NoneInAStepOfAnyModel) {
  // The row of the hub is cut into pieces. As the sequence of an LSTM it would take long.
  const Graph hub = typed_weighted_graph({.vertices = 600, .edges = 4000, .hub_edges = 34000, .seed = 6});
  const Graph small = typed_weighted_graph({.vertices = 600, .edges = 4000, .hub_edges = 300, .seed = 6});
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    for (ModelCase model : model_cases()) {
      model.options.dropout = 0.3;
      const bool lstm = model.options.model == "sage-lstm" || model.options.aggregator == "lstm";
      const Blocks blocks = Blocks::full(lstm ? small : hub, model.options.layers);
      Dfg dfg = build_model(options_for(model.options, blocks));
      differentiate(dfg);
      EXPECT_EQ(allocations_of_a_step(dfg, blocks, {}), 0) << model.name << " on " << threads << " threads";
      // Unfused typed products have only the reference implementation, which is not made for
      // training.
      if (model.options.model == "rgcn") continue;
      EXPECT_EQ(allocations_of_a_step(dfg, blocks, {.fuse = false}), 0)
          << model.name << " op by op on " << threads << " threads";
    }
  }
  set_num_threads(2);
}

}  // namespace
}  // namespace nacre::test
