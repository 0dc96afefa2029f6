// Tests of compiled kernels on a device: launches, graphs of launches, time, virtual devices.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "device/gpu.h"
#include "nacre/base/error.h"

namespace nacre::test {
namespace {

constexpr const char* kAdd = R"(
extern "C" __global__ void add(float* x, float value, long long n) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)
    x[i] += value;
}
)";

// Sums n integers through n · 4 bytes of dynamic shared memory.
constexpr const char* kShared = R"(
extern "C" __global__ void shared_sum(const int* in, int* out, int n) {
  extern __shared__ int tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = in[i];
  __syncthreads();
  if (threadIdx.x != 0) return;
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += tile[n - 1 - i];
  *out = sum;
}
)";

// Writes which multiprocessors ran a block.
constexpr const char* kWhere = R"(
extern "C" __global__ void where(unsigned* out) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  const long long start = clock64();
  while (clock64() - start < 20000) {}
  if (threadIdx.x == 0) out[blockIdx.x] = sm;
}
)";

class KernelTest : public GpuTest {
 protected:
  void add(Device& device, DeviceFunction kernel, const DeviceArray<float>& x, float value, long long n) {
    float* data = x.data();
    device.launch(kernel, {.blocks = (n + 255) / 256, .threads = 256}, {&data, &value, &n});
  }
};

TEST_F(KernelTest, Runs) {
  const DeviceFunction kernel = function(*device_, kAdd, "add");
  std::vector<float> values(100'003);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  const DeviceArray<float> x(*device_, values);
  add(*device_, kernel, x, 0.5F, static_cast<long long>(values.size()));
  for (float& v : values) v += 0.5F;
  EXPECT_EQ(x.values(), values);
  add(*device_, kernel, x, 1, 0);  // a launch without blocks
  EXPECT_EQ(x.values(), values);
}

TEST_F(KernelTest, AnImageIsLoadedOnce) {
  const std::string image = plugin_->compile(kAdd, "add", device_->info().arch);
  EXPECT_EQ(device_->load(image, "add"), device_->load(std::string(image), "add"));
  EXPECT_THROW(device_->load(image, "no_such_function"), InternalError);
  EXPECT_THROW(device_->load("this is no image", "add"), RuntimeError);
  EXPECT_GT(device_->occupancy(device_->load(image, "add"), 128, 0), 0);
}

TEST_F(KernelTest, LargeSharedMemoryIsAllowed) {
  const DeviceFunction kernel = function(*device_, kShared, "shared_sum");
  const DeviceArray<int> out(*device_, 1);
  for (const int64_t bytes : {int64_t{4000}, int64_t{96} << 10, device_->info().shared_bytes, int64_t{1000}}) {
    int n = static_cast<int>(bytes / 4);
    const DeviceArray<int> in(*device_, std::vector<int>(static_cast<size_t>(n), 3));
    const int* from = in.data();
    int* to = out.data();
    device_->launch(kernel, {.blocks = 1, .threads = 64, .shared_bytes = n * 4}, {&from, &to, &n});
    EXPECT_EQ(out.values()[0], 3 * n);
  }
  EXPECT_EQ(device_->occupancy(kernel, 64, device_->info().shared_bytes), 1);
  EXPECT_THROW(device_->occupancy(kernel, 64, device_->info().shared_bytes + 1024), InternalError);
}

TEST_F(KernelTest, AGraphRunsWhatWasRecorded) {
  const DeviceFunction kernel = function(*device_, kAdd, "add");
  constexpr int64_t kCount = 5000;
  const DeviceArray<float> x(*device_, std::vector<float>(kCount, 1));
  const DeviceArray<float> y(*device_, std::vector<float>(kCount, -1));
  GemmShape shape;
  shape.m = 20;
  shape.n = 30;
  shape.k = 10;
  const int product = device_->prepare_gemm(shape, 1);
  const DeviceArray<float> a(*device_, std::vector<float>(200, 1));
  const DeviceArray<float> b(*device_, std::vector<float>(300, 2));
  const DeviceArray<float> c(*device_, std::vector<float>(600, 0));
  const DeviceArray<char> workspace(*device_, device_->gemm_workspace(product));

  device_->begin_capture();
  add(*device_, kernel, x, 2, kCount);
  device_->copy(y.data(), x.data(), kCount * 4);
  device_->run_gemm(product, {a.data(), b.data(), c.data(), nullptr}, workspace.data());
  EXPECT_THROW(device_->allocate(1), InternalError);
  EXPECT_THROW(device_->synchronize(), InternalError);
  EXPECT_THROW(device_->begin_capture(), InternalError);
  device_->fill(b.data(), 0, 300 * 4);
  const LaunchGraph graph = device_->end_capture();

  EXPECT_EQ(x.values(), std::vector<float>(kCount, 1)) << "recording runs nothing";
  device_->replay(graph);
  EXPECT_EQ(y.values(), std::vector<float>(kCount, 3));
  EXPECT_EQ(c.values(), std::vector<float>(600, 20));
  device_->replay(graph);
  device_->replay(graph);
  EXPECT_EQ(y.values(), std::vector<float>(kCount, 7));
  EXPECT_EQ(c.values(), std::vector<float>(600, 0)) << "b was filled with zeros";
  EXPECT_THROW(device_->end_capture(), InternalError);
}

// A loader sends batches and records points in time while the session records its evaluation.
TEST_F(KernelTest, OtherThreadsGoOnWhileOneRecords) {
  const DeviceFunction kernel = function(*device_, kAdd, "add");
  constexpr int64_t kCount = 5000;
  const DeviceArray<float> recorded(*device_, std::vector<float>(kCount, 1));
  const DeviceArray<float> queued(*device_, std::vector<float>(kCount, 1));
  device_->begin_capture();
  add(*device_, kernel, recorded, 2, kCount);
  std::vector<float> seen;
  std::string error;
  std::thread other([&] {
    try {
      const DeviceEvent before = device_->record();
      add(*device_, kernel, queued, 5, kCount);
      void* pinned = device_->allocate_pinned(64);
      const DeviceArray<char> there(*device_, 64);
      device_->upload_beside(there.data(), pinned, 64);
      device_->wait_for(device_->copied());
      device_->await(device_->record());
      EXPECT_GE(device_->elapsed(before, device_->record()), 0);
      device_->release_pinned(pinned);
      GemmShape shape;
      shape.m = shape.n = shape.k = 96;
      // prepare_gemm() records and times its candidates.
      device_->release_gemm(device_->prepare_gemm(shape, 8));
      seen = queued.values();
    } catch (const std::exception& e) {
      error = e.what();
    }
  });
  other.join();
  add(*device_, kernel, recorded, 2, kCount);
  const LaunchGraph graph = device_->end_capture();
  EXPECT_EQ(error, "");
  EXPECT_EQ(seen, std::vector<float>(kCount, 6)) << "what another thread queued has run";
  EXPECT_EQ(recorded.values(), std::vector<float>(kCount, 1)) << "recording runs nothing";
  device_->replay(graph);
  EXPECT_EQ(recorded.values(), std::vector<float>(kCount, 5));
  EXPECT_EQ(queued.values(), std::vector<float>(kCount, 6)) << "what another thread queued is not in the graph";
}

TEST_F(KernelTest, AnEmptyGraphRuns) {
  device_->begin_capture();
  const LaunchGraph graph = device_->end_capture();
  EXPECT_NO_THROW(device_->replay(graph));
  device_->synchronize();
}

TEST_F(KernelTest, EventsMeasure) {
  const DeviceArray<char> big(*device_, 256 << 20);
  const DeviceEvent start = device_->record();
  for (int i = 0; i < 10; ++i) device_->fill(big.data(), i, 256 << 20);
  const DeviceEvent end = device_->record();
  const double seconds = device_->elapsed(start, end);
  EXPECT_GT(seconds, 1e-5);
  EXPECT_LT(seconds, 10);
}

TEST_F(KernelTest, EventsThatAreUsedAgainMeasureAnew) {
  const DeviceArray<char> big(*device_, 256 << 20);
  for (int i = 0; i < 8; ++i) device_->record();
  const auto seconds_of = [&](int fills) {
    const DeviceEvent start = device_->record();
    for (int i = 0; i < fills; ++i) device_->fill(big.data(), i, 256 << 20);
    return device_->elapsed(start, device_->record());
  };
  seconds_of(1);
  const double little = seconds_of(1), much = seconds_of(40);
  EXPECT_GT(much, 4 * little);
}

TEST_F(KernelTest, AVirtualDeviceHasItsShare) {
  if (device_->info().multiprocessors < 48) GTEST_SKIP() << "a small GPU";
  const auto first = plugin_->open(0, 16);
  const auto second = plugin_->open(0, 16);
  std::vector<std::set<unsigned>> used;
  for (Device* device : {first.get(), second.get()}) {
    const int share = device->info().multiprocessors;
    EXPECT_GE(share, 16);
    EXPECT_LT(share, device_->info().multiprocessors);
    const DeviceFunction kernel = function(*device, kWhere, "where");
    const DeviceArray<unsigned> out(*device, 2000);
    unsigned* data = out.data();
    device->launch(kernel, {.blocks = 2000, .threads = 128}, {&data});
    const auto values = out.values();
    used.emplace_back(values.begin(), values.end());
    // The driver may lend two more multiprocessors to a green context.
    EXPECT_LE(used.back().size(), static_cast<size_t>(share) + 2);
    EXPECT_GE(used.back().size(), 8U);
  }
  size_t common = 0;
  for (const unsigned sm : used[0]) common += used[1].count(sm);
  EXPECT_LE(common, 2U);
}

TEST_F(KernelTest, VirtualDevicesOfAnySizesFitTogether) {
  if (device_->info().multiprocessors < 128) GTEST_SKIP() << "a small GPU";
  for (const std::vector<int>& sizes : {std::vector{16, 32, 64}, {64, 32, 16}, {8, 24, 80}, {32, 32, 32, 32}, {128}}) {
    std::vector<std::unique_ptr<Device>> open;
    int sum = 0;
    for (const int size : sizes) {
      open.push_back(plugin_->open(0, size));
      EXPECT_GE(open.back()->info().multiprocessors, size);
      EXPECT_LT(open.back()->info().multiprocessors, size + 8);
      sum += open.back()->info().multiprocessors;
    }
    EXPECT_LE(sum, device_->info().multiprocessors);
    // All of them can read the memory of each other, in the order of their streams.
    const DeviceArray<float> x(*open[0], std::vector<float>(1000, 1));
    for (auto& device : open) {
      EXPECT_TRUE(device->reaches(*open[0]));
      add(*device, function(*device, kAdd, "add"), x, 1, 1000);
      for (auto& other : open) other->wait_for(device->record());
    }
    EXPECT_EQ(x.values(), std::vector<float>(1000, 1 + static_cast<float>(open.size())));
  }
}

TEST_F(KernelTest, AVirtualDeviceDoesEverything) {
  const auto device = plugin_->open(0, 16);
  const DeviceFunction kernel = function(*device, kAdd, "add");
  const DeviceArray<float> x(*device, std::vector<float>(1000, 1));
  device->begin_capture();
  add(*device, kernel, x, 1, 1000);
  const LaunchGraph graph = device->end_capture();
  const DeviceEvent start = device->record();
  device->replay(graph);
  device->replay(graph);
  EXPECT_GT(device->elapsed(start, device->record()), 0);
  EXPECT_EQ(x.values(), std::vector<float>(1000, 3));
  GemmShape shape;
  shape.m = shape.n = shape.k = 64;
  const int product = device->prepare_gemm(shape, 8);
  const DeviceArray<float> a(*device, std::vector<float>(4096, 1));
  const DeviceArray<float> c(*device, 4096);
  const DeviceArray<char> workspace(*device, device->gemm_workspace(product));
  device->run_gemm(product, {a.data(), a.data(), c.data(), nullptr}, workspace.data());
  EXPECT_EQ(c.values(), std::vector<float>(4096, 64));
  const DeviceArray<uint32_t> keys(*device, {3, 1, 2});
  const DeviceArray<uint32_t> values(*device, {30, 10, 20});
  device->sort_pairs(keys.data(), values.data(), 3, 32);
  EXPECT_EQ(values.values(), (std::vector<uint32_t>{10, 20, 30}));
  const uint32_t few[2] = {40, 50};
  device->upload_few(values.data() + 1, few, sizeof few);
  EXPECT_EQ(values.values(), (std::vector<uint32_t>{10, 40, 50}));
}

TEST_F(KernelTest, TooManyMultiprocessorsAreTheUsersError) {
  EXPECT_THROW(plugin_->open(0, device_->info().multiprocessors + 1), UserError);
}

}  // namespace
}  // namespace nacre::test
