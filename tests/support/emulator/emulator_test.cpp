// Checks that the emulated GPU finds mistakes that a GPU would not forgive: each test makes one
// mistake. The tests that run on the emulated GPU check that its results are right.
#include <gtest/gtest.h>

#include <cstring>

#include "device/gpu.h"
#include "nacre/base/error.h"

namespace nacre::test {
namespace {

class EmulatorTest : public GpuTest {
 protected:
  // Runs a kernel of one block and returns what the device reports when it is waited for. Each call
  // uses a device of its own, because a failure stays.
  std::string error_of(const std::string& source, int threads, int64_t shared_bytes, const std::vector<float>& values) {
    const auto device = plugin_->open(0, 0);
    const DeviceArray<float> x(*device, values);
    float* data = x.data();
    device->launch(function(*device, source, "kernel"), {1, threads, shared_bytes}, {&data});
    try {
      device->synchronize();
    } catch (const InternalError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(EmulatorTest, ThreadsThatWaitForEverAreReported) {
  const std::string said = error_of(R"(extern "C" __global__ void kernel(float* x) {
  if (threadIdx.x < 16) __syncwarp(0xffffffffu);
  else __syncthreads();
  x[threadIdx.x] = 1.0f;
})",
                                    32, 0, std::vector<float>(32));
  EXPECT_NE(said.find("kernel on the emulated device"), std::string::npos) << said;
  EXPECT_NE(said.find("wait"), std::string::npos) << said;
}

TEST_F(EmulatorTest, ThreadsThatHaveEndedAreNotWaitedFor) {
  EXPECT_EQ(error_of(R"(extern "C" __global__ void kernel(float* x) {
  if (threadIdx.x >= 20) return;
  __syncthreads();
  const float other = __shfl_xor_sync(0xfffffu, (float)threadIdx.x, 1);
  x[threadIdx.x] = other;
})",
                     40, 0, std::vector<float>(32)),
            "");
}

TEST_F(EmulatorTest, SharedMemoryHasItsBounds) {
  const char* source = R"(extern "C" __global__ void kernel(float* x) {
  extern __shared__ float tile[];
  tile[threadIdx.x + 1] = x[threadIdx.x];
})";
  EXPECT_EQ(error_of(source, 32, 33 * 4, std::vector<float>(32, 1)), "");
  const std::string said = error_of(source, 32, 32 * 4, std::vector<float>(32, 1));
  EXPECT_NE(said.find("128 bytes of dynamic shared memory"), std::string::npos) << said;
}

TEST_F(EmulatorTest, CopiesArriveWhenTheyAreWaitedFor) {
  const DeviceArray<float> x(*device_, std::vector<float>(8, 3));
  float* data = x.data();
  device_->launch(function(*device_, R"(extern "C" __global__ void kernel(float* x) {
  extern __shared__ float tile[];
  const unsigned to = (unsigned)__cvta_generic_to_shared(tile);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(x), "r"(4));
  asm volatile("cp.async.commit_group;");
  x[1] = tile[0];
  asm volatile("cp.async.wait_group %0;" ::"n"(0));
  x[2] = tile[0];
})",
                           "kernel"),
                  {1, 1, 64}, {&data});
  EXPECT_NE(x.values()[1], 3) << "nobody has waited";
  EXPECT_EQ(x.values()[2], 3);
}

TEST_F(EmulatorTest, ForeignMemoryEndsTheProcessAndNamesTheKernel) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const char* source = R"(extern "C" __global__ void kernel(float* x) { x[1024 * (threadIdx.x + 1)] = 1.0f; })";
  EXPECT_DEATH(error_of(source, 1, 0, std::vector<float>(32)), "kernel kernel reads or writes outside");
  const char* crooked =
      R"(extern "C" __global__ void kernel(float* x) { *(float4*)(x + 1) = make_float4(1, 2, 3, 4); })";
  EXPECT_DEATH(error_of(crooked, 1, 0, std::vector<float>(32)), "kernel kernel reads or writes at an address");
}

TEST_F(EmulatorTest, ABlockThatWasWrittenBehindIsReportedWhenItIsGivenBack) {
  const auto device = plugin_->open(0, 0);
  void* memory = device->allocate(100);
  EXPECT_THROW(device->fill(memory, 0, 101), InternalError);
  int here = 0;
  EXPECT_THROW(device->copy(memory, &here, 4), InternalError);
  auto* data = static_cast<char*>(memory);
  device->launch(function(*device, R"(extern "C" __global__ void kernel(char* x) { x[100] = 1; })", "kernel"),
                 {1, 1, 0}, {&data});
  device->release(memory);
  EXPECT_THROW(device->synchronize(), InternalError);
}

TEST_F(EmulatorTest, ABlockMayBeUsedAgainForFewerBytes) {
  constexpr int64_t kLarge = 7 << 20, kLess = 6 << 20;
  const auto device = plugin_->open(0, 0);
  void* large = device->allocate(kLarge);
  device->fill(large, 0, kLarge);
  device->release(large);
  void* less = device->allocate(kLess);
  EXPECT_EQ(less, large) << "the block is not used again, so this test shows nothing";
  device->fill(less, 0, kLess);
  device->release(less);
  device->synchronize();
}

TEST_F(EmulatorTest, MemoryIsPoisonedWhenItIsGivenOut) {
  void* memory = device_->allocate(64);
  uint32_t word = 0;
  device_->download(&word, memory, 4);
  EXPECT_EQ(word, 0xffffffffU);
  device_->release(memory);
}

TEST_F(EmulatorTest, AnInstructionThatIsNotEmulatedIsNamed) {
  try {
    plugin_->compile(
        R"(extern "C" __global__ void odd(float* x) { asm volatile("tanh.approx.f32 %0, %0;" : "+f"(x[0])); })", "odd",
        90);
    FAIL() << "compiled";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("odd cannot be emulated: it uses the instruction tanh.approx.f32"),
              std::string::npos)
        << error.what();
  }
}

// Returns the source of a kernel for a block of two warps. Every thread writes its word of shared
// memory and then reads that of another thread. `partner` is the expression that names the other
// thread, and `barrier` is the statement between the write and the read.
std::string neighbours(const std::string& partner, const std::string& barrier, const std::string& after = "") {
  return R"(extern "C" __global__ void kernel(float* x) {
  __shared__ float tile[64];
  const int i = (int)threadIdx.x;
  tile[i] = x[i];
  )" + barrier +
         R"(
  const float other = tile[)" +
         partner + "];\n  " + after + R"(
  x[i] = other;
})";
}

TEST_F(EmulatorTest, ReadsOfSharedMemoryNeedABarrierAfterTheWrite) {
  const std::vector<float> values(64, 1);
  for (const char* none : {"", "__shfl_sync(0xffffffffu, i, 0);", "__ballot_sync(0xffffffffu, true);"}) {
    const std::string said = error_of(neighbours("i ^ 1", none), 64, 0, values);
    EXPECT_NE(said.find("no barrier lies between"), std::string::npos) << none << said;
  }
  EXPECT_NE(error_of(neighbours("63 - i", "__syncwarp();"), 64, 0, values), "");
  EXPECT_NE(error_of(neighbours("i ^ 16", "__syncwarp(i % 32 < 16 ? 0xffffu : 0xffff0000u);"), 64, 0, values), "");
  EXPECT_EQ(error_of(neighbours("i", ""), 64, 0, values), "");
  EXPECT_EQ(error_of(neighbours("i ^ 1", "__syncwarp();"), 64, 0, values), "");
  EXPECT_EQ(error_of(neighbours("i ^ 1", "__syncwarp(i % 32 < 16 ? 0xffffu : 0xffff0000u);"), 64, 0, values), "");
  EXPECT_EQ(error_of(neighbours("63 - i", "__syncthreads();"), 64, 0, values), "");
}

TEST_F(EmulatorTest, WritesToSharedMemoryNeedABarrierAfterReads) {
  const std::vector<float> values(64, 1);
  const std::string said = error_of(neighbours("i ^ 1", "__syncthreads();", "tile[i] = 0;"), 64, 0, values);
  EXPECT_NE(said.find("no barrier lies between"), std::string::npos) << said;
  EXPECT_EQ(error_of(neighbours("i ^ 1", "__syncthreads();", "__syncwarp(); tile[i] = 0;"), 64, 0, values), "");
  EXPECT_NE(error_of(neighbours("i ^ 32", "__syncthreads();", "__syncwarp(); tile[i] = 0;"), 64, 0, values), "");
  EXPECT_EQ(error_of(neighbours("i ^ 32", "__syncthreads();", "__syncthreads(); tile[i] = 0;"), 64, 0, values), "");
}

TEST_F(EmulatorTest, NeighbouringBytesAndAtomicsAreNoRace) {
  const char* bytes = R"(extern "C" __global__ void kernel(float* x) {
  __shared__ unsigned short half[64];
  half[threadIdx.x] = (unsigned short)threadIdx.x;
  x[threadIdx.x] = half[threadIdx.x];
})";
  EXPECT_EQ(error_of(bytes, 64, 0, std::vector<float>(64)), "");
  const auto counted = [](const std::string& barrier) {
    return R"(extern "C" __global__ void kernel(float* x) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  )" + barrier +
           R"(
  x[threadIdx.x] = count;
})";
  };
  EXPECT_EQ(error_of(counted("__syncthreads();"), 64, 0, std::vector<float>(64)), "");
  EXPECT_NE(error_of(counted(""), 64, 0, std::vector<float>(64)), "");
}

TEST_F(EmulatorTest, CopiesIntoSharedMemoryMustNotBeginBeforeReadsEnd) {
  const auto copied = [](const std::string& barrier) {
    return R"(extern "C" __global__ void kernel(float* x) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const float other = tile[63 - threadIdx.x];
  )" + barrier +
           R"(
  const unsigned to = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(x + threadIdx.x), "r"(4));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group %0;" ::"n"(0));
  x[threadIdx.x] = other + tile[threadIdx.x];
})";
  };
  EXPECT_EQ(error_of(copied("__syncthreads();"), 64, 0, std::vector<float>(64)), "");
  EXPECT_NE(error_of(copied(""), 64, 0, std::vector<float>(64)), "");
}

TEST_F(EmulatorTest, PageLockedMemoryIsReadWhenItsTurnComes) {
  const auto other = plugin_->open(0, 0);
  const DeviceArray<int> there(*device_, 1);
  auto* pinned = static_cast<int*>(device_->allocate_pinned(4));
  *pinned = 1;
  // The device's stream waits for an event of another stream, which has not come that far yet.
  const auto busy = function(*other, R"(extern "C" __global__ void spin(int n) {
  const long long start = clock64();
  while (clock64() - start < 100000000ll) {}
})",
                             "spin");
  int n = 0;
  other->launch(busy, {1, 1, 0}, {&n});
  device_->wait_for(other->record());
  device_->upload(there.data(), pinned, 4);
  *pinned = 2;
  EXPECT_EQ(there.values()[0], 2);
  device_->release_pinned(pinned);
}

}  // namespace
}  // namespace nacre::test
