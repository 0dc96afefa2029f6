// Tests that communication operations have the same bits wherever the values of ranks lie: in host
// memory, on GPUs, or some here and some there.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>

#include "nacre/base/bf16.h"
#include "nacre/base/log.h"
#include "nacre/cluster/run_ranks.h"
#include "nacre/dfg/columns.h"
#include "nacre/engine/gpu/staging.h"
#include "nacre/engine/linked_communicator.h"
#include "nacre/engine/rank_block.h"
#include "nacre/engine/rank_memory.h"
#include "nacre/engine/staged_communicator.h"
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
  for (int i = 0; i < 8; ++i) {
    const Op op = std::array{Op::exchange, Op::exchange_add, Op::all_reduce, Op::to_columns, Op::to_rows}[rng.below(5)];
    const bool in_place = rng.below(2) == 0 && op != Op::to_columns && op != Op::to_rows;
    calls.push_back({op, std::array<int64_t, 7>{1, 2, 3, 4, 8, 17, 64}[rng.below(7)], in_place, seed * 100 + i});
  }
  return calls;
}

// A graph on several ranks.
struct Shares {
  Graph graph;
  std::vector<LocalGraph> local;
  std::vector<double> columns;  // shares of the ranks in the columns

  int owner(NodeId v) const {
    for (size_t r = 0; r < local.size(); ++r) {
      if (std::find(local[r].own.begin(), local[r].own.end(), v) != local[r].own.end()) return static_cast<int>(r);
    }
    return -1;
  }

  // Returns what a rank should have after to_columns(): value(vertex, column) for all vertices and
  // for the rank's columns.
  template <class Value>
  std::vector<float> columns_of(int64_t width, int rank, const Value& value) const {
    const std::vector<int64_t> bounds = column_bounds(width, columns);
    std::vector<float> values;
    for (int64_t v = 0; v < graph.num_nodes(); ++v) {
      for (int64_t j = bounds[rank]; j < bounds[rank + 1]; ++j) values.push_back(value(static_cast<NodeId>(v), j));
      if (bounds[rank] == bounds[rank + 1]) values.push_back(0);
    }
    return values;
  }
  template <class Value>
  std::vector<float> rows_of(int64_t width, int rank, const Value& value) const {
    std::vector<float> values;
    for (const NodeId v : local[rank].own) {
      for (int64_t j = 0; j < width; ++j) values.push_back(value(v, j));
    }
    return values;
  }

  // Returns the operand of a call, with nonsense in the rows that the result has more.
  std::vector<float> operand(const Call& call, int rank) const {
    const LocalGraph& own = local[rank];
    std::vector<float> values;
    if (call.op == Op::all_reduce) {
      for (int64_t i = 0; i < 10 * call.width; ++i) values.push_back(call.value(rank, i, 0));
      return values;
    }
    const auto mine = [&](NodeId v, int64_t j) { return call.value(rank, v, j); };
    if (call.op == Op::to_columns) return rows_of(call.width, rank, mine);
    if (call.op == Op::to_rows) return columns_of(call.width, rank, mine);
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
    if (call.op == Op::to_columns)
      return columns_of(call.width, rank, [&](NodeId v, int64_t j) { return call.value(owner(v), v, j); });
    if (call.op == Op::to_rows) {
      const std::vector<int64_t> bounds = column_bounds(call.width, columns);
      return rows_of(call.width, rank, [&](NodeId v, int64_t j) {
        const auto next = std::upper_bound(bounds.begin(), bounds.end(), j);
        return call.value(static_cast<int>(next - bounds.begin()) - 1, v, j);
      });
    }
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
    const size_t size = std::max(operand.size(), shares.expected(call, rank).size());
    results.push_back(std::make_unique<Values>(device, std::vector<float>(size, -77.0F)));
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

// Says how rows get to ranks on GPUs. Ranks are threads that reach each other's memory, or they are
// connected like processes, so that rows travel through host memory or over a link.
enum class Way : uint8_t { direct, staged, linked };

std::unique_ptr<Communicator> connect(Way way, std::unique_ptr<Communicator> host,
                                      const std::shared_ptr<GpuCompiler>& compiler, const std::string& link_id) {
  if (compiler == nullptr) return host;
  if (way == Way::staged) return make_staged_communicator(std::move(host), compiler);
  LinkPlace place{0, host->rank(), host->size(), link_id, 20};
  return make_linked_communicator(std::move(host), compiler, link_plugin()->connect(place));
}

void run_everywhere(const std::vector<std::shared_ptr<GpuCompiler>>& compilers, Way way = Way::direct) {
  const int size = static_cast<int>(compilers.size());
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Rng rng(seed);
    Shares shares;
    shares.graph = random_graphs(seed)[seed].graph;
    std::vector<int32_t> part;
    for (int64_t v = 0; v < shares.graph.num_nodes(); ++v) part.push_back(static_cast<int32_t>(rng.below(size)));
    const Partition parts{size, part};
    for (int r = 0; r < size; ++r) {
      shares.local.push_back(local_graph(shares.graph, parts, r));
      shares.columns.push_back(static_cast<double>((r + seed) % 3));
    }
    if (size < 3) shares.columns.assign(size, 1.0);
    RunRanksOptions options;
    if (way == Way::direct) options.group.memory = make_rank_memory(compilers);
    auto group = make_group(size, {});
    const std::string link_id = way == Way::linked ? link_plugin()->new_id() : "";
    run_ranks(
        size,
        [&](Communicator& given) {
          const int rank = given.rank();
          const std::shared_ptr<Device> device = compilers[rank] ? compilers[rank]->device() : nullptr;
          std::unique_ptr<Communicator> own;
          if (way != Way::direct) own = connect(way, std::move(group[rank]), compilers[rank], link_id);
          Communicator& communicator = way == Way::direct ? given : *own;
          const auto local = std::make_shared<const LocalGraph>(shares.local[rank]);
          const auto links =
              make_rank_links({shares.graph, parts, shares.columns}, local, communicator, compilers[rank]);
          communicator.measure(seed % 2 == 0);
          for (uint64_t round = 0; round < 5; ++round) run_round(shares, rank, *links, device, seed * 10 + round);
          const DeviceSeconds seconds = communicator.take_seconds();
          const bool measured = device != nullptr && seed % 2 == 0;
          EXPECT_EQ(seconds.reduced > 0, measured);
          EXPECT_TRUE(measured || seconds.waited + seconds.moved == 0);
          communicator.barrier();
        },
        options);
  }
}

// ---- Rows of bf16.

float rounded(float x) { return from_bf16(to_bf16(x)); }

// Says which ranks store their rows as bf16, and which of them lie on the host.
struct NarrowRanks {
  std::vector<char> narrow, on_host;

  float stored(int rank, float x) const { return narrow[rank] != 0 ? rounded(x) : x; }
  // Returns what one rank gets of a number that another rank stores.
  float sent(int from, int to, float x) const { return narrow[from] != 0 || narrow[to] != 0 ? rounded(x) : x; }
};

// Returns the rows of a rank after an exchange, or after an exchange_add.
std::vector<float> expected_rows(const Shares& shares, const Call& call, int rank, const NarrowRanks& ranks) {
  const LocalGraph& own = shares.local[rank];
  const bool adds = call.op == Op::exchange_add;
  std::vector<float> values;
  for (int64_t i = 0; i < own.num_own() + (adds ? 0 : own.num_halo()); ++i) {
    const NodeId v = i < own.num_own() ? own.own[i] : own.halo[i - own.num_own()];
    const int from = shares.owner(v);
    for (int64_t j = 0; j < call.width; ++j)
      values.push_back(ranks.sent(from, rank, ranks.stored(from, call.value(from, v, j))));
  }
  if (!adds) return values;
  // A GPU that stores f32 adds the rows that arrive as f32 first.
  const bool sorted = ranks.narrow[rank] == 0 && ranks.on_host[rank] == 0;
  for (int turn = 0; turn < (sorted ? 2 : 1); ++turn) {
    for (int r = 0; r < static_cast<int>(shares.local.size()); ++r) {
      if (sorted && ranks.narrow[r] != turn) continue;
      for (int64_t i = 0; i < own.num_own(); ++i) {
        const auto& halo = shares.local[r].halo;
        if (std::find(halo.begin(), halo.end(), own.own[i]) == halo.end()) continue;
        for (int64_t j = 0; j < call.width; ++j) {
          float& sum = values[i * call.width + j];
          sum = ranks.stored(rank, sum + ranks.sent(r, rank, ranks.stored(r, call.value(r, own.own[i], j))));
        }
      }
    }
  }
  return values;
}

// Packs two numbers of bf16 into each float.
std::vector<float> packed(const std::vector<float>& values) {
  std::vector<float> pairs;
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    pairs.push_back(std::bit_cast<float>(uint32_t{to_bf16(values[i])} | uint32_t{to_bf16(values[i + 1])} << 16));
  }
  return pairs;
}

void run_narrow_round(const Shares& shares, const NarrowRanks& ranks, int rank, RankLinks& links,
                      const std::shared_ptr<Device>& device, uint64_t seed) {
  const bool narrow = ranks.narrow[rank] != 0;
  const auto held = [&](std::vector<float> values) { return narrow ? packed(values) : values; };
  for (const Op op : {Op::exchange, Op::exchange_add}) {
    for (const int64_t width : {16, 24, 64}) {
      const Call call{op, width, seed % 2 == 0, seed * 100 + static_cast<uint64_t>(width)};
      const std::vector<float> operand = shares.operand(call, rank), want = expected_rows(shares, call, rank, ranks);
      Values from(device, held(operand)), to(device, held(std::vector<float>(operand.size(), -77)));
      Values& result = call.in_place ? from : to;
      const int64_t rows = static_cast<int64_t>(operand.size()) / width;
      links.start({op, from.data(), result.data(), rows, width, false, {narrow, &ranks.narrow}})->finish();
      std::vector<float> got = result.read();
      got.resize(held(want).size());
      EXPECT_TRUE(same_bits(got, held(want))) << op_info(op).name << " of width " << width << ", rank " << rank;
    }
  }
}

// Every message between two ranks is bf16 if one of them stores bf16. The counted bytes show it.
void run_narrow(const std::vector<std::shared_ptr<GpuCompiler>>& compilers, Way way = Way::direct) {
  const int size = static_cast<int>(compilers.size());
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Rng rng(seed + 7);
    Shares shares;
    shares.graph = random_graphs(seed)[seed].graph;
    std::vector<int32_t> part;
    for (int64_t v = 0; v < shares.graph.num_nodes(); ++v) part.push_back(static_cast<int32_t>(rng.below(size)));
    const Partition parts{size, part};
    NarrowRanks ranks;
    for (int r = 0; r < size; ++r) {
      shares.local.push_back(local_graph(shares.graph, parts, r));
      ranks.narrow.push_back(static_cast<char>((seed == 0 || rng.below(2) == 0) ? 1 : 0));
      ranks.on_host.push_back(static_cast<char>(compilers[r] == nullptr ? 1 : 0));
    }
    RunRanksOptions options;
    if (way == Way::direct) options.group.memory = make_rank_memory(compilers);
    auto group = make_group(size, {});
    const std::string link_id = way == Way::linked ? link_plugin()->new_id() : "";
    run_ranks(
        size,
        [&](Communicator& given) {
          const int rank = given.rank();
          std::unique_ptr<Communicator> own;
          if (way != Way::direct) own = connect(way, std::move(group[rank]), compilers[rank], link_id);
          Communicator& communicator = way == Way::direct ? given : *own;
          const auto local = std::make_shared<const LocalGraph>(shares.local[rank]);
          const auto links = make_rank_links({shares.graph, parts}, local, communicator, compilers[rank]);
          const std::shared_ptr<Device> device = compilers[rank] ? compilers[rank]->device() : nullptr;
          for (uint64_t round = 0; round < 3; ++round)
            run_narrow_round(shares, ranks, rank, *links, device, seed * 10 + round);
          int64_t bytes = 0;
          for (const PeerRows& peer : local->peers) {
            const bool narrow = ranks.narrow[rank] != 0 || ranks.narrow[peer.part] != 0;
            bytes += (peer.halo_end - peer.halo_begin + peer.send.size()) * (16 + 24 + 64) * (narrow ? 2 : 4);
          }
          EXPECT_EQ(communicator.counters().exchange.bytes_received, 3 * bytes);
          communicator.barrier();
        },
        options);
  }
}

TEST(RankMessages, OfBf16HaveTheirBitsInHostMemory) {
  for (int size = 1; size <= 4; ++size) run_narrow(std::vector<std::shared_ptr<GpuCompiler>>(size));
}

TEST(RankMessages, OfBf16HaveTheirBitsOnGpus) {
  if (!testing_gpu()) GTEST_SKIP() << "there is no GPU to test";
  run_narrow({test_rank_compiler(0), test_rank_compiler(1), test_rank_compiler(2)});
  run_narrow({test_rank_compiler(0), nullptr, test_rank_compiler(2), nullptr});
  run_narrow({nullptr, test_rank_compiler(1), test_rank_compiler(2)}, Way::staged);
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

TEST(RankMessages, HaveTheSameBitsThroughHostMemory) {
  if (!testing_gpu()) GTEST_SKIP() << "there is no GPU to test";
  run_everywhere({test_rank_compiler(0)}, Way::staged);
  run_everywhere({test_rank_compiler(0), test_rank_compiler(1)}, Way::staged);
  run_everywhere({nullptr, test_rank_compiler(1), test_rank_compiler(2), nullptr}, Way::staged);
}

// NCCL connects whole GPUs, each with one rank. Emulated GPUs can be connected in any number.
std::vector<std::shared_ptr<GpuCompiler>> linked_compilers() {
  if (link_plugin()->version() == "emulated")
    return {test_rank_compiler(0), test_rank_compiler(1), test_rank_compiler(2)};
  return {GpuCompiler::open(*device_plugin(), device_plugin()->open(0, 0), 0)};
}

std::string why_no_links() {
  std::string why = "there is no GPU to test";
  if (testing_gpu()) link_plugin(&why);
  return why;
}

TEST(RankMessages, HaveTheSameBitsByLinks) {
  if (const std::string why = why_no_links(); !why.empty()) GTEST_SKIP() << why;
  auto compilers = linked_compilers();
  if (compilers.size() > 1) run_narrow(compilers, Way::linked);
  for (; !compilers.empty(); compilers.pop_back()) run_everywhere(compilers, Way::linked);
}

TEST(RankMessages, OfARankToItselfUseItsLink) {
  if (const std::string why = why_no_links(); !why.empty()) GTEST_SKIP() << why;
  const std::shared_ptr<GpuCompiler> compiler = linked_compilers()[0];
  const std::shared_ptr<Device> device = compiler->device();
  const auto own = connect(Way::linked, std::move(make_group(1, {})[0]), compiler, link_plugin()->new_id());
  Values from(device, {1, 2, 3, 4, 5, 6}), copied(device, {0, 0, 0, 0}), added(device, {10, 20, 30, 40});
  const std::vector<uint32_t> order = {2, 0};
  const std::shared_ptr<void> list = allocate_on(device, 8);
  device->upload(list.get(), order.data(), 8);
  const ConstRows rows = {reinterpret_cast<const std::byte*>(from.data()), 2, 8, 0,
                          static_cast<const uint32_t*>(list.get())};
  own->exchange({{{0, rows}}, {{0, {reinterpret_cast<std::byte*>(copied.data()), 2, 8}}}});
  own->exchange({{{0, rows}}, {{0, {reinterpret_cast<std::byte*>(added.data()), 2, 8}, SumType::f32}}});
  EXPECT_EQ(copied.read(), (std::vector<float>{5, 6, 1, 2}));
  EXPECT_EQ(added.read(), (std::vector<float>{15, 26, 31, 42}));
  own->all_reduce(from.data(), 6);
  own->exchange({});
  EXPECT_EQ(from.read(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE(own->failed());
}

// If a rank fails, a GPU of another rank that waits for its rows must not wait for ever.
TEST(RankMessages, OfAFailedRankAreGivenUp) {
  if (const std::string why = why_no_links(); !why.empty()) GTEST_SKIP() << why;
  const auto compilers = linked_compilers();
  if (compilers.size() < 2) GTEST_SKIP() << "there is one GPU only";
  auto group = make_group(2, {});
  const std::string id = link_plugin()->new_id();
  run_ranks(2, [&](Communicator& given) {
    const int rank = given.rank();
    const std::shared_ptr<Device> device = compilers[rank]->device();
    Values values(device, std::vector<float>(1000, 1));
    const auto own = connect(Way::linked, std::move(group[rank]), compilers[rank], id);
    own->all_reduce(values.data(), 1000);
    given.barrier();
    const double start = now_seconds();
    if (rank == 0) {
      EXPECT_EQ(own->abort("no memory is left").rank(), 0);
    } else {
      EXPECT_THROW(own->all_reduce(values.data(), 1000), RankFailure);
    }
    device->synchronize();
    EXPECT_LT(now_seconds() - start, 5);
  });
}

}  // namespace
}  // namespace nacre::test
