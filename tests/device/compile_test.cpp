// Tests of what the plug-in does without a GPU: it opens, compiles, and says what is missing.
#include <gtest/gtest.h>

#include <filesystem>

#include "device/gpu.h"
#include "nacre/base/error.h"
#include "nacre/base/file_cache.h"
#include "nacre/base/pending_file.h"
#include "nacre/device/image.h"
#include "nacre/kernel/cuda/partition.h"
#include "support/cache_folder.h"

namespace nacre::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScale = R"(
extern "C" __global__ void scale(float* x, float factor, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) x[i] = factor * x[i];
}
)";

bool is_elf(const std::string& image) {
  return image.starts_with(
      "\x7f"
      "ELF");
}

TEST(Plugin, IsTheSameEveryTimeOrSaysWhy) {
  std::string why = "unchanged";
  DevicePlugin* plugin = device_plugin(&why);
  EXPECT_EQ(device_plugin(), plugin);
  EXPECT_EQ(why.empty(), plugin != nullptr) << why;
}

class CompileTest : public PluginTest {};

TEST_F(CompileTest, MakesAnImageForEachArchitecture) {
  const std::string a100 = plugin_->compile(kScale, "scale", 80);
  const std::string h100 = plugin_->compile(kScale, "scale", 90);
  EXPECT_TRUE(is_elf(a100));
  EXPECT_TRUE(is_elf(h100));
  EXPECT_NE(a100, h100);
  EXPECT_NE(h100.find("scale"), std::string::npos) << "the function keeps its name";
  EXPECT_EQ(plugin_->compile(kScale, "scale", 90), h100) << "the same source gives the same image";
}

TEST_F(CompileTest, TakesWhatKernelsUse) {
  EXPECT_TRUE(is_elf(plugin_->compile(R"(
template <int N> struct Row { float v[N]; };
extern "C" __global__ void __launch_bounds__(128) all(const float4* in, float* out, unsigned short* bf16, int n) {
  extern __shared__ float tile[];
  const float4 x = __ldg(in + threadIdx.x);
  Row<2> row{{x.x, x.y}};
  float sum = fmaf(row.v[0], row.v[1], expf(x.z)) + rsqrtf(x.w);
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  tile[threadIdx.x] = sum;
  __syncthreads();
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(x.x), "f"(x.y));
  if constexpr (sizeof(row) == 8) bf16[threadIdx.x] = packed & 0xffff;
  if (threadIdx.x == 0) atomicAdd(out, tile[n]);
}
)",
                                      "all", 80)));
}

// The kernels that cut gTasks on a device. All other kernels are compiled by
// tests/engine/gpu_compile_test.cpp.
TEST_F(CompileTest, PartitionKernels) {
  using Field = cuda::EdgeField;
  const Field fields[] = {{Field::type, 1, 5}, {Field::src_degree, 1, 20}, {Field::dst_id, 64, 12}};
  const cuda::Source sources[] = {cuda::pack_keys(fields, true),
                                  cuda::pack_keys({fields + 2, 1}, false),
                                  cuda::take_columns(true),
                                  cuda::take_columns(false),
                                  cuda::count_values(),
                                  cuda::start_runs(fields),
                                  cuda::first_bounds(),
                                  cuda::bound_by_runs(),
                                  cuda::link_equal(true),
                                  cuda::link_equal(false),
                                  cuda::bound_by_values(),
                                  cuda::mark_next(),
                                  cuda::double_next(),
                                  cuda::task_starts(),
                                  cuda::fresh_values(),
                                  cuda::tally(),
                                  cuda::often_met(),
                                  cuda::judge_tasks()};
  for (const cuda::Source& source : sources) {
    EXPECT_TRUE(is_elf(plugin_->compile(source.text, source.name, 80))) << source.name;
    EXPECT_TRUE(is_elf(plugin_->compile(source.text, source.name, 90))) << source.name;
  }
}

TEST_F(CompileTest, AnErrorHasTheCompilersLog) {
  try {
    plugin_->compile("extern \"C\" __global__ void bad(float* x) { x[0] = undeclared_thing; }\n", "bad_kernel", 90);
    FAIL() << "compiled";
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("undeclared_thing"), std::string::npos) << text;
    EXPECT_NE(text.find("bad_kernel.cu(1)"), std::string::npos) << text;
    EXPECT_NE(text.find("sm_90"), std::string::npos) << text;
  }
}

TEST_F(CompileTest, AnUnknownArchitectureIsAnError) {
  EXPECT_THROW(plugin_->compile(kScale, "scale", 7), InternalError);
}

TEST_F(CompileTest, NoHeadersOfTheMachineAreFound) {
  EXPECT_THROW(plugin_->compile("#include <cuda_bf16.h>\n", "header", 90), InternalError)
      << "where this passes, kernels could come to need a toolkit on every user's machine";
}

TEST_F(CompileTest, OpeningNoSuchDeviceIsTheUsersError) {
  const auto devices = plugin_->devices();
  EXPECT_EQ(plugin_->why_no_devices().empty(), !devices.empty());
  EXPECT_THROW(plugin_->open(static_cast<int>(devices.size()), 0), UserError);
  EXPECT_THROW(plugin_->open(-1, 0), UserError);
}

// Counts the calls of the compiler.
class CountingPlugin final : public DevicePlugin {
 public:
  std::vector<DeviceInfo> devices() override { return {}; }
  std::string why_no_devices() override { return "none"; }
  std::unique_ptr<Device> open(int, int) override { return nullptr; }
  std::string compile(const std::string& source, const std::string&, int arch) override {
    ++compiled;
    return "image " + std::to_string(arch) + " of " + source;
  }
  std::string compiler() override { return version; }

  int compiled = 0;
  std::string version = "one";
};

class KernelCacheTest : public testing::Test {
 protected:
  const CacheFolder cache_;
  const std::string folder_ = cache_.path() / "kernels";
};

TEST_F(KernelCacheTest, CompilesOncePerContent) {
  CountingPlugin plugin;
  const std::string image = compile_cached(plugin, "source", "name", 90);
  EXPECT_EQ(image, "image 90 of source");
  EXPECT_EQ(compile_cached(plugin, "source", "other name", 90), image);
  EXPECT_EQ(plugin.compiled, 1) << "a hit, whatever the kernel is called";
  EXPECT_EQ(compile_cached(plugin, "source", "name", 80), "image 80 of source");
  EXPECT_EQ(compile_cached(plugin, "source 2", "name", 90), "image 90 of source 2");
  EXPECT_EQ(plugin.compiled, 3);
  plugin.version = "two";
  compile_cached(plugin, "source", "name", 90);
  EXPECT_EQ(plugin.compiled, 4) << "another compiler";
  plugin.version = "one";
  EXPECT_EQ(compile_cached(plugin, "source", "name", 90), image);
  EXPECT_EQ(plugin.compiled, 4);
}

TEST_F(KernelCacheTest, ADamagedFileIsCompiledAgain) {
  CountingPlugin plugin;
  compile_cached(plugin, "source", "name", 90);
  for (const auto& file : fs::directory_iterator(folder_)) fs::resize_file(file.path(), 20);
  EXPECT_EQ(compile_cached(plugin, "source", "name", 90), "image 90 of source");
  EXPECT_EQ(plugin.compiled, 2);
}

TEST_F(KernelCacheTest, AnImageIsReplacedWhenItIsCompiledAgain) {
  CountingPlugin plugin;
  compile_cached(plugin, "source", "name", 90);
  // The image has the right checksum, but it is not what the compiler makes.
  write_cached(folder_, "one\nsm_90\nsource", "spoilt");
  EXPECT_EQ(compile_cached(plugin, "source", "name", 90), "spoilt");
  EXPECT_EQ(compile_again(plugin, "source", "name", 90), "image 90 of source");
  EXPECT_EQ(plugin.compiled, 2);
  EXPECT_EQ(compile_cached(plugin, "source", "name", 90), "image 90 of source");
  EXPECT_EQ(plugin.compiled, 2) << "the new image is kept";
}

TEST(KernelImage, OneThatIsCutShortIsNoticed) {
  // Any ELF file with sections and segments will do.
  const std::string whole = read_file("/proc/self/exe");
  EXPECT_EQ(fault_of_image(whole), "");
  for (const size_t left :
       {whole.size() - 1, whole.size() / 2, size_t{200}, size_t{64}, size_t{63}, size_t{3}, size_t{0}}) {
    EXPECT_NE(fault_of_image(std::string_view(whole).substr(0, left)), "") << left;
  }
  std::string bad = whole;
  bad[0] = 'x';
  EXPECT_NE(fault_of_image(bad), "");
  EXPECT_NE(fault_of_image(std::string(5000, '\0')), "");
  EXPECT_NE(fault_of_image(std::string(5000, 'g')), "");
}

}  // namespace
}  // namespace nacre::test
