// Tests feature rows in tiers: whatever memory the rows of a batch lie in, the kernel that loads
// them writes the same floats (NACRE_TEST_DEVICE=cuda). Also tests that the kernel's sources
// compile, which needs the plug-in but no GPU.
#include "nacre/engine/gpu/feature_store.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/staging.h"
#include "nacre/kernel/cuda/keep_rows.h"
#include "nacre/tensor/narrow_floats.h"
#include "support/rng.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

constexpr int64_t kVertices = 61;

// A table of features, and the values that are left of it after it was stored.
struct Table {
  Tensor stored;
  std::vector<float> values;
};

Table random_table(DType type, int64_t width, uint64_t seed) {
  Rng rng(seed);
  Table t{Tensor(type, {kVertices, width}), std::vector<float>(static_cast<size_t>(kVertices * width))};
  for (float& x : t.values) {
    x = static_cast<float>(rng.uniform(-2, 2));
    const auto strange = rng.below(40);
    if (strange == 0) x = 0;
    if (strange == 1) x *= 1e-6F;  // f16 has few bits for a number this small
    if (strange == 2) x = std::numeric_limits<float>::infinity();
    if (strange == 3) x = -0.0F;
  }
  const auto count = static_cast<int64_t>(t.values.size());
  if (type == DType::f32) {
    std::copy(t.values.begin(), t.values.end(), t.stored.data<float>());
  } else {
    auto* bits = static_cast<uint16_t*>(t.stored.raw());
    narrow(type, t.values.data(), bits, count);
    widen(type, bits, t.values.data(), count);
  }
  return t;
}

// A random placement of rows on some devices and the host.
struct Placed {
  std::vector<std::vector<NodeId>> rows;  // rows of each device
  std::vector<NodeId> host;
  // Returns the tables of a reading device. It reads its own copy of a row if it has one.
  std::vector<int8_t> dev_num;
  std::vector<NodeId> buf_pos;
};

Placed place(int devices, int reader, uint64_t seed) {
  Rng rng(seed);
  Placed p{std::vector<std::vector<NodeId>>(static_cast<size_t>(devices)),
           {},
           std::vector<int8_t>(kVertices, -1),
           std::vector<NodeId>(kVertices)};
  for (NodeId v = 0; v < kVertices; ++v) {
    const auto drawn = static_cast<int>(rng.below(static_cast<uint64_t>(devices) + 2));
    for (int d = 0; d < devices; ++d) {
      // If `drawn` is devices + 1, every device has the row; if it is `devices`, only the host has
      // it.
      if (drawn != d && drawn != devices + 1) continue;
      std::vector<NodeId>& rows = p.rows[static_cast<size_t>(d)];
      if (p.dev_num[v] < 0 || d == reader) {
        p.dev_num[v] = static_cast<int8_t>(d);
        p.buf_pos[v] = static_cast<NodeId>(rows.size());
      }
      rows.push_back(v);
    }
    if (p.dev_num[v] >= 0) continue;
    p.buf_pos[v] = static_cast<NodeId>(p.host.size());
    p.host.push_back(v);
  }
  return p;
}

class FeatureStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!testing_gpu()) GTEST_SKIP() << "NACRE_TEST_DEVICE is not cuda";
    compiler_ = open(0);
  }
  static std::shared_ptr<GpuCompiler> open(int multiprocessors) {
    DevicePlugin* plugin = device_plugin();
    return GpuCompiler::open(*plugin, plugin->open(0, multiprocessors));
  }
  std::shared_ptr<void> there(const void* values, int64_t bytes) {
    std::shared_ptr<void> memory = allocate_on(compiler_->device(), bytes);
    if (bytes > 0) compiler_->device()->upload(memory.get(), values, bytes);
    return memory;
  }
  void expect_loaded(const FeatureStore& store, const Table& table, const std::vector<NodeId>& ids);
  std::shared_ptr<void> expect_cached(const FeatureStore& store, const Table& table, const std::vector<NodeId>& ids,
                                      const std::vector<NodeId>& seats);

  std::shared_ptr<GpuCompiler> compiler_;
};

// Loads the rows of `ids` and compares them with the table, bit for bit. Rows of the host that the
// store does not read itself are gathered here, as the batch loader does.
void FeatureStoreTest::expect_loaded(const FeatureStore& store, const Table& table, const std::vector<NodeId>& ids) {
  const int64_t stride = store.format().stride(), bytes = store.format().bytes(), width = store.format().width;
  std::vector<char> sent;
  std::vector<uint32_t> positions;
  for (const NodeId v : ids) {
    const bool host =
        store.tiers() ? (*store.tiers())[v] == static_cast<uint8_t>(RowTier::host) : store.only_tier() == RowTier::host;
    positions.push_back(static_cast<uint32_t>(static_cast<int64_t>(sent.size()) / stride));
    if (!host || !store.gathers()) continue;
    const auto* row = static_cast<const char*>(table.stored.raw()) + static_cast<int64_t>(v) * bytes;
    sent.insert(sent.end(), row, row + bytes);
    sent.resize(sent.size() + static_cast<size_t>(stride - bytes), '\x7f');
  }
  const auto count = static_cast<int64_t>(ids.size());
  const auto ids_there = there(ids.data(), count * 4);
  const auto positions_there = there(positions.data(), count * 4);
  const auto sent_there = there(sent.data(), static_cast<int64_t>(sent.size()));
  std::vector<float> got(static_cast<size_t>(count * width + 4), -7.0F);
  const auto out = there(got.data(), static_cast<int64_t>(got.size()) * 4);
  store.load(*compiler_,
             {static_cast<const NodeId*>(ids_there.get()), count, static_cast<const uint32_t*>(positions_there.get()),
              sent_there.get(), static_cast<float*>(out.get())});
  compiler_->device()->download(got.data(), out.get(), static_cast<int64_t>(got.size()) * 4);
  for (int64_t i = 0; i < count * width; ++i) {
    const float want = table.values[static_cast<size_t>(ids[static_cast<size_t>(i / width)] * width + i % width)];
    ASSERT_EQ(std::bit_cast<uint32_t>(got[static_cast<size_t>(i)]), std::bit_cast<uint32_t>(want))
        << "row " << i / width << ", column " << i % width;
  }
  for (size_t i = static_cast<size_t>(count * width); i < got.size(); ++i) EXPECT_EQ(got[i], -7.0F);
}

// Loads the rows of `ids` from a store that caches the rows `seats`, and compares them with the
// table. Returns where they lie.
std::shared_ptr<void> FeatureStoreTest::expect_cached(const FeatureStore& store, const Table& table,
                                                      const std::vector<NodeId>& ids,
                                                      const std::vector<NodeId>& seats) {
  const int64_t stride = store.format().stride(), bytes = store.format().bytes(), width = store.format().width;
  std::vector<char> sent;
  std::vector<uint32_t> places;
  for (const NodeId v : ids) {
    const auto seat = std::find(seats.begin(), seats.end(), v);
    if (seat != seats.end()) {
      places.push_back(static_cast<uint32_t>(seat - seats.begin()));
      continue;
    }
    places.push_back(cuda::kNotCached);
    if (!store.gathers()) continue;
    places.back() |= static_cast<uint32_t>(static_cast<int64_t>(sent.size()) / stride);
    const auto* row = static_cast<const char*>(table.stored.raw()) + static_cast<int64_t>(v) * bytes;
    sent.insert(sent.end(), row, row + bytes);
    sent.resize(sent.size() + static_cast<size_t>(stride - bytes), '\x7f');
  }
  const auto count = static_cast<int64_t>(ids.size());
  const auto ids_there = there(ids.data(), count * 4);
  const auto places_there = there(places.data(), count * 4);
  const auto sent_there = there(sent.data(), static_cast<int64_t>(sent.size()));
  std::vector<float> got(static_cast<size_t>(count * width + 1));
  const auto out = there(got.data(), static_cast<int64_t>(got.size()) * 4);
  store.load(*compiler_,
             {static_cast<const NodeId*>(ids_there.get()), count, static_cast<const uint32_t*>(places_there.get()),
              sent_there.get(), static_cast<float*>(out.get())});
  compiler_->device()->download(got.data(), out.get(), static_cast<int64_t>(got.size()) * 4);
  for (int64_t i = 0; i < count * width; ++i) {
    const float want = table.values[static_cast<size_t>(ids[static_cast<size_t>(i / width)] * width + i % width)];
    EXPECT_EQ(std::bit_cast<uint32_t>(got[static_cast<size_t>(i)]), std::bit_cast<uint32_t>(want))
        << "row " << i / width << ", column " << i % width;
    if (testing::Test::HasFailure()) break;
  }
  return out;
}

std::vector<NodeId> some_ids(size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<NodeId> ids(count);
  for (NodeId& v : ids) v = static_cast<NodeId>(rng.below(kVertices));
  return ids;
}

TEST_F(FeatureStoreTest, EveryTierGivesTheSameRows) {
  struct Case {
    DType type;
    int64_t width;
  };
  for (const auto& [type, width] : {Case{DType::f32, 1},
                                    {DType::f32, 25},
                                    {DType::f32, 132},
                                    {DType::f32, 602},
                                    {DType::bf16, 7},
                                    {DType::bf16, 100},
                                    {DType::f16, 12},
                                    {DType::f16, 67}}) {
    SCOPED_TRACE(std::string(dtype_name(type)) + " of width " + std::to_string(width));
    const Table table = random_table(type, width, static_cast<uint64_t>(width));
    const cuda::RowFormat format{type, width};
    const std::shared_ptr<Device>& device = compiler_->device();
    const Placed p = place(1, 0, 3);
    FeatureStore tiers(device, format, table.stored, {0, p.dev_num, p.buf_pos, p.rows[0]});
    EXPECT_TRUE(tiers.gathers());
    EXPECT_EQ(tiers.rows_on_device() + tiers.rows_on_host(), kVertices);
    for (const size_t count : {size_t{0}, size_t{1}, size_t{203}}) expect_loaded(tiers, table, some_ids(count, count));
    tiers.read_host(std::make_shared<HostRows>(device, format, table.stored, p.host));
    EXPECT_TRUE(tiers.by_link() && !tiers.gathers());
    for (const size_t count : {size_t{1}, size_t{300}}) expect_loaded(tiers, table, some_ids(count, count));
  }
}

TEST_F(FeatureStoreTest, RowsOfOneTierNeedNoTables) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const Table table = random_table(type, 25, 9);
    const cuda::RowFormat format{type, 25};
    const std::shared_ptr<Device>& device = compiler_->device();
    const FeatureStore all(device, format, table.stored, true);
    EXPECT_EQ(all.table_bytes(), 0);
    EXPECT_EQ(all.device_bytes(), kVertices * format.stride());
    expect_loaded(all, table, some_ids(90, 1));
    FeatureStore none(device, format, table.stored, false);
    EXPECT_EQ(none.device_bytes(), 0);
    expect_loaded(none, table, some_ids(90, 2));
    none.read_host(std::make_shared<HostRows>(device, format, table.stored, std::span<const NodeId>()));
    expect_loaded(none, table, some_ids(90, 3));
  }
}

// Seats change from batch to batch: rows that were loaded stay, and take the seats of rows that the
// same batch may have read.
TEST_F(FeatureStoreTest, CachedRowsKeepTheirBits) {
  struct Case {
    DType type;
    int64_t width;
  };
  for (const auto& [type, width] : {Case{DType::f32, 1},
                                    {DType::f32, 25},
                                    {DType::f32, 132},
                                    {DType::bf16, 7},
                                    {DType::bf16, 100},
                                    {DType::f16, 12},
                                    {DType::f16, 67}}) {
    Table table = random_table(type, width, static_cast<uint64_t>(width));
    if (type != DType::f32) {
      // All bits of 16-bit floats come back: those of numbers below the least exponent, too.
      auto* bits = static_cast<uint16_t*>(table.stored.raw());
      Rng rng(3);
      const auto count = static_cast<int64_t>(table.values.size());
      for (int64_t i = 0; i < count; ++i) bits[i] = static_cast<uint16_t>(rng.below(1 << 16));
      widen(type, bits, table.values.data(), count);
    }
    const cuda::RowFormat format{type, width};
    for (const bool link : {false, true}) {
      SCOPED_TRACE(fmt::format("{} of width {}, {}", dtype_name(type), width, link ? "link" : "copy"));
      std::vector<NodeId> seats = {4, 8, 15, 16, 23, 42};
      FeatureStore store(compiler_->device(), format, table.stored, std::span<const NodeId>(seats));
      EXPECT_TRUE(store.caches() && !store.tiers());
      EXPECT_EQ(store.device_bytes(), 6 * format.stride());
      EXPECT_EQ(store.rows_on_host(), kVertices);
      if (link)
        store.read_host(
            std::make_shared<HostRows>(compiler_->device(), format, table.stored, std::span<const NodeId>()));
      EXPECT_EQ(store.gathers(), !link);
      Rng rng(17);
      for (int batch = 0; batch < 12; ++batch) {
        std::vector<NodeId> ids(kVertices);
        std::iota(ids.begin(), ids.end(), NodeId{0});
        for (size_t i = ids.size(); i > 1; --i)
          std::swap(ids[i - 1], ids[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
        ids.resize(static_cast<size_t>(rng.below(kVertices)));
        const auto out = expect_cached(store, table, ids, seats);
        std::vector<uint32_t> from, to;
        for (uint32_t i = 0; i < ids.size(); ++i) {
          if (std::find(seats.begin(), seats.end(), ids[i]) != seats.end() || rng.below(6) != 0 ||
              to.size() == seats.size())
            continue;
          from.push_back(i);
          to.push_back(static_cast<uint32_t>(to.size()));
        }
        for (size_t k = 0; k < to.size(); ++k) seats[to[k]] = ids[from[k]];
        const auto from_there = there(from.data(), static_cast<int64_t>(from.size()) * 4);
        const auto to_there = there(to.data(), static_cast<int64_t>(to.size()) * 4);
        store.keep(*compiler_, {static_cast<const float*>(out.get()), static_cast<const uint32_t*>(from_there.get()),
                                static_cast<const uint32_t*>(to_there.get()), static_cast<int64_t>(to.size())});
        compiler_->device()->synchronize();
      }
    }
  }
}

// Two parts of a GPU read rows of each other.
TEST_F(FeatureStoreTest, RowsOfPeers) {
  const Table table = random_table(DType::f32, 12, 5);
  const cuda::RowFormat format{DType::f32, 12};
  compiler_ = open(8);
  const std::shared_ptr<GpuCompiler> other = open(8);
  const Placed p = place(2, 0, 11), q = place(2, 1, 11);
  FeatureStore mine(compiler_->device(), format, table.stored, {0, p.dev_num, p.buf_pos, p.rows[0]});
  FeatureStore theirs(other->device(), format, table.stored, {1, q.dev_num, q.buf_pos, q.rows[1]});
  other->device()->synchronize();
  const auto host = std::make_shared<HostRows>(compiler_->device(), format, table.stored, p.host);
  mine.read_host(host);
  theirs.read_host(host);
  mine.read_peers({nullptr, &theirs});
  theirs.read_peers({&mine, nullptr});
  std::vector<NodeId> all(kVertices);
  for (NodeId v = 0; v < kVertices; ++v) all[v] = v;
  expect_loaded(mine, table, all);
  compiler_ = other;
  expect_loaded(theirs, table, all);
}

TEST(RowFormats, RowsBeginAtWholeWordsAndWhereItCostsLittleAtLines) {
  const auto stride = [](DType type, int64_t width) { return cuda::RowFormat{type, width}.stride(); };
  EXPECT_EQ(stride(DType::f32, 1), 16);
  EXPECT_EQ(stride(DType::f32, 100), 400);
  EXPECT_EQ(stride(DType::f32, 128), 512);
  EXPECT_EQ(stride(DType::f32, 602), 2432);
  EXPECT_EQ(stride(DType::bf16, 100), 208);
  EXPECT_EQ(stride(DType::f16, 768), 1536);
}

TEST(RowFormats, SourcesCompile) {
  std::string why;
  DevicePlugin* plugin = device_plugin(&why);
  if (plugin == nullptr) GTEST_SKIP() << why;
  using cuda::RowPlaces;
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const RowPlaces places : {RowPlaces::by_vertex, RowPlaces::in_order, RowPlaces::by_tables, RowPlaces::gathered,
                                   RowPlaces::cached, RowPlaces::cached_gathered}) {
      const cuda::Source source = cuda::load_rows({type, type == DType::f16 ? 100 : 602}, places);
      EXPECT_NO_THROW(EXPECT_FALSE(plugin->compile(source.text, source.name, 90).empty())) << source.text;
    }
    const cuda::Source keep = cuda::keep_rows({type, 601});
    EXPECT_NO_THROW(EXPECT_FALSE(plugin->compile(keep.text, keep.name, 90).empty())) << keep.text;
  }
}

}  // namespace
}  // namespace nacre::test
