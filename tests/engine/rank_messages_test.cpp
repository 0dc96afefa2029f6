// Tests that communication operations have the same bits wherever the values of ranks lie: in host
// memory, on GPUs, or some here and some there.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "nacre/cluster/run_ranks.h"
#include "nacre/engine/gpu/staging.h"
#include "nacre/engine/rank_block.h"
#include "nacre/engine/rank_memory.h"
#include "support/random_graphs.h"
#include "support/rng.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

// Memory of a rank, on its device or on the host.
class Values {
 public:
  Values(const std::shared_ptr<Device>& device, const std::vector<float>& values) : device_(device), host_(values) {
    if (device_ == nullptr || values.empty()) return;
    memory_ = allocate_on(device_, bytes());
    device_->upload(memory_.get(), host_.data(), bytes());
  }
  float* data() { return memory_ ? static_cast<float*>(memory_.get()) : host_.data(); }
  std::vector<float> read() {
    if (memory_) device_->download(host_.data(), memory_.get(), bytes());
    return host_;
  }

 private:
  int64_t bytes() const { return static_cast<int64_t>(host_.size() * sizeof(float)); }

  std::shared_ptr<Device> device_;
  std::vector<float> host_;
  std::shared_ptr<void> memory_;
};

// One operation of a round, the same on all ranks.
struct Call {
  Op op;
  int64_t width;
  bool in_place;
  uint64_t salt;

  // Returns what a rank holds for a vertex. Sums of such numbers depend on their order.
  float value(int rank, int64_t vertex, int64_t column) const {
    Rng rng(salt + static_cast<uint64_t>(rank) * 1000003 + static_cast<uint64_t>(vertex * 97 + column));
    return static_cast<float>(rng.uniform(-1, 1)) * static_cast<float>(1 << rng.below(20));
  }
};

std::vector<Call> calls_of(uint64_t seed) {
  Rng rng(seed);
  std::vector<Call> calls;
  for (int i = 0; i < 6; ++i) {
    const Op op = std::array{Op::exchange, Op::exchange_add, Op::all_reduce}[rng.below(3)];
    calls.push_back({op, std::array<int64_t, 6>{1, 2, 3, 4, 8, 17}[rng.below(6)], rng.below(2) == 0, seed * 100 + i});
  }
  return calls;
}

// A graph on several ranks.
struct Shares {
  Graph graph;
  std::vector<LocalGraph> local;

  // Returns the operand of a call, with nonsense in the rows that the result has more.
  std::vector<float> operand(const Call& call, int rank) const {
    const LocalGraph& own = local[rank];
    std::vector<float> values;
    if (call.op == Op::all_reduce) {
      for (int64_t i = 0; i < 10 * call.width; ++i) values.push_back(call.value(rank, i, 0));
      return values;
    }
    for (int64_t i = 0; i < own.num_own() + own.num_halo(); ++i) {
      const bool halo = i >= own.num_own();
      const NodeId v = halo ? own.halo[i - own.num_own()] : own.own[i];
      const bool nonsense = halo && call.op == Op::exchange;
      for (int64_t j = 0; j < call.width; ++j) values.push_back(nonsense ? -77.0F : call.value(rank, v, j));
    }
    return values;
  }

  std::vector<float> expected(const Call& call, int rank) const {
    const LocalGraph& own = local[rank];
    std::vector<float> values = operand(call, rank);
    if (call.op == Op::all_reduce) {
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = call.value(0, static_cast<int64_t>(i), 0);
        for (size_t r = 1; r < local.size(); ++r) {
          values[i] += call.value(static_cast<int>(r), static_cast<int64_t>(i), 0);
        }
      }
      return values;
    }
    const auto owner = [&](NodeId v) {
      for (size_t r = 0; r < local.size(); ++r) {
        if (std::find(local[r].own.begin(), local[r].own.end(), v) != local[r].own.end()) return static_cast<int>(r);
      }
      return -1;
    };
    if (call.op == Op::exchange) {
      for (int64_t i = 0; i < own.num_halo() * call.width; ++i) {
        const NodeId v = own.halo[i / call.width];
        values[own.num_own() * call.width + i] = call.value(owner(v), v, i % call.width);
      }
      return values;
    }
    values.resize(own.num_own() * call.width);
    for (size_t i = 0; i < values.size(); ++i) {
      const NodeId v = own.own[static_cast<int64_t>(i) / call.width];
      for (size_t r = 0; r < local.size(); ++r) {
        const auto& halo = local[r].halo;
        if (std::find(halo.begin(), halo.end(), v) == halo.end()) continue;
        values[i] += call.value(static_cast<int>(r), v, static_cast<int64_t>(i) % call.width);
      }
    }
    return values;
  }
};

// Starts all calls of a round, then ends them in an order that differs from rank to rank.
void run_round(const Shares& shares, int rank, RankLinks& links, const std::shared_ptr<Device>& device, uint64_t seed) {
  const std::vector<Call> calls = calls_of(seed);
  std::vector<std::unique_ptr<Values>> operands, results;
  std::vector<std::unique_ptr<PendingCommunication>> pending;
  for (const Call& call : calls) {
    const std::vector<float> operand = shares.operand(call, rank);
    operands.push_back(std::make_unique<Values>(device, operand));
    results.push_back(std::make_unique<Values>(device, std::vector<float>(operand.size(), -77.0F)));
    const int64_t rows = static_cast<int64_t>(operand.size()) / call.width;
    float* from = operands.back()->data();
    pending.push_back(links.start({call.op, from, call.in_place ? from : results.back()->data(), rows, call.width}));
  }
  std::vector<size_t> order(calls.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = (i * (rank % 2 == 0 ? 1 : 5) + seed + rank) % order.size();
  for (const size_t i : order) pending[i]->finish();
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::vector<float> want = shares.expected(calls[i], rank);
    std::vector<float> got = (calls[i].in_place ? operands[i] : results[i])->read();
    got.resize(want.size());
    EXPECT_TRUE(same_bits(got, want)) << op_info(calls[i].op).name << " of width " << calls[i].width << ", rank "
                                      << rank << (calls[i].in_place ? ", in place" : "");
  }
}

void run_everywhere(const std::vector<std::shared_ptr<GpuCompiler>>& compilers) {
  const int size = static_cast<int>(compilers.size());
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Rng rng(seed);
    Shares shares;
    shares.graph = random_graphs(seed)[seed].graph;
    std::vector<int32_t> part;
    for (int64_t v = 0; v < shares.graph.num_nodes(); ++v) part.push_back(static_cast<int32_t>(rng.below(size)));
    const Partition parts{size, part};
    for (int r = 0; r < size; ++r) shares.local.push_back(local_graph(shares.graph, parts, r));
    RunRanksOptions options;
    options.group.memory = make_rank_memory(compilers);
    run_ranks(
        size,
        [&](Communicator& communicator) {
          const int rank = communicator.rank();
          const std::shared_ptr<Device> device = compilers[rank] ? compilers[rank]->device() : nullptr;
          const auto local = std::make_shared<const LocalGraph>(shares.local[rank]);
          const auto links = make_rank_links(shares.graph, local, communicator, device);
          RankMemory& memory = *options.group.memory;
          memory.measure(rank, seed % 2 == 0);
          for (uint64_t round = 0; round < 5; ++round) run_round(shares, rank, *links, device, seed * 10 + round);
          const DeviceSeconds seconds = memory.take_seconds(rank);
          const bool measured = device != nullptr && seed % 2 == 0;
          EXPECT_EQ(seconds.reduced > 0, measured);
          EXPECT_TRUE(measured || seconds.waited + seconds.moved == 0);
          communicator.barrier();
        },
        options);
  }
}

TEST(RankMessages, HaveTheirBitsInHostMemory) {
  for (int size = 1; size <= 4; ++size) run_everywhere(std::vector<std::shared_ptr<GpuCompiler>>(size));
}

TEST(RankMessages, HaveTheSameBitsOnGpus) {
  if (!testing_gpu()) GTEST_SKIP() << "there is no GPU to test";
  for (int size = 1; size <= 4; ++size) {
    std::vector<std::shared_ptr<GpuCompiler>> all;
    for (int r = 0; r < size; ++r) all.push_back(test_rank_compiler(r));
    run_everywhere(all);
  }
}

TEST(RankMessages, HaveTheSameBitsOnGpusAndTheHost) {
  if (!testing_gpu()) GTEST_SKIP() << "there is no GPU to test";
  run_everywhere({test_rank_compiler(0), nullptr});
  run_everywhere({nullptr, test_rank_compiler(1), test_rank_compiler(2), nullptr});
}

}  // namespace
}  // namespace nacre::test
