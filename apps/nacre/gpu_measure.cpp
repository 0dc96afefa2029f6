// Measures a GPU through the device layer alone. The only CUDA here is the text of three small
// kernels.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "gpu_profile.h"
#include "nacre/base/log.h"
#include "nacre/base/philox.h"
#include "nacre/kernel/cuda/load_rows.h"
#include "nacre/plan/variants/chunks.h"

namespace nacre::cli {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int kThreads = 128;
constexpr int kRepeats = 4;
// Seconds that a timed run must take. The size of the work doubles until one run takes this long or
// memory is full, so that slow devices are measured as well as fast ones.
constexpr double kLongEnough = 2e-3;

using float4 = void;  // the host passes addresses of it only

NACRE_PARAMS(NothingParams, (float*, out));
constexpr const char* kNothing = R"(${ENTRY} {}
)";

// This kernel fills memory with numbers in [-0.5, 0.5), as f32 or as two bf16 in each word. With
// zeros, products would run faster than with real values.
NACRE_PARAMS(FillValuesParams, (unsigned*, out), (long long, words), (long long, bf16));
constexpr const char* kFillValues = R"(
__device__ unsigned value_bits(unsigned i) {
  unsigned h = i * 2654435761u;
  h = (h ^ (h >> 15)) * 2246822519u;
  const float x = (float)((h ^ (h >> 13)) >> 8) * 0x1p-24f - 0.5f;
  union { float f; unsigned u; } bits;
  bits.f = x;
  return bits.u;
}
${ENTRY} {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= words) return;
  const unsigned low = value_bits((unsigned)i);
  out[i] = bf16 ? (value_bits((unsigned)i ^ 0x9e3779b9u) & 0xffff0000u) | (low >> 16) : low;
}
)";

// In this kernel, a group of LANES threads sums RUN rows of LANES · VECTORS float4, as aggregation
// does. 32 random bits choose each row.
constexpr int kRun = 32;
NACRE_PARAMS(SumRowsParams, (const float4*, table), (const unsigned*, random), (long long, rows), (float4*, out),
             (long long, groups));
constexpr const char* kGatherRows = R"(
${ENTRY} {
  const long long group = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
  const int lane = threadIdx.x % LANES;
  if (group >= groups) return;
  float4 sum[VECTORS];
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) sum[v] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
  for (int i = 0; i < RUN; ++i) {
    const long long row = __umulhi(random[group * RUN + i], (unsigned)rows);
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
      const float4 x = __ldg(table + (row * VECTORS + v) * LANES + lane);
      sum[v].x += x.x; sum[v].y += x.y; sum[v].z += x.z; sum[v].w += x.w;
    }
  }
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) out[(group * VECTORS + v) * LANES + lane] = sum[v];
}
)";

int64_t blocks_for(int64_t threads) { return (threads + kThreads - 1) / kThreads; }

class Bench {
 public:
  Bench(DevicePlugin& plugin, Device& device) : plugin_(plugin), device_(device) {}

  GpuProfile run() {
    GpuProfile p;
    p.device = gpu_label(device_.info().name, device_.info().multiprocessors);
    p.l2_bytes = device_.info().l2_bytes;
    p.copy = copy_rate();
    gathers(p);
    p.f32 = product_rate(GemmType::f32);
    p.tf32 = product_rate(GemmType::tf32);
    p.bf16 = product_rate(GemmType::bf16);
    launches(p);
    transfers(p);
    p.link_64 = link_gather(64);
    p.link_256 = link_gather(256);
    device_.trim();
    return p;
  }

 private:
  using Memory = std::shared_ptr<void>;
  Memory memory(int64_t bytes) {
    return {device_.allocate(bytes), [this](void* m) { device_.release(m); }};
  }
  struct Kernel {
    cuda::Source source;
    DeviceFunction function;
  };
  template <class Params>
  Kernel load(const char* name, const std::string& text) {
    const cuda::Source source = cuda::Entry(name, "").takes<Params>().source(text, kThreads);
    return {source, loaded(source)};
  }
  DeviceFunction loaded(const cuda::Source& source) {
    const int arch = device_.info().arch;
    const auto again = [&] { return compile_again(plugin_, source.text, source.name, arch); };
    const std::string image = compile_cached(plugin_, source.text, source.name, arch);
    return load_kernel(device_, image, source.name, again);
  }
  // Returns a function that launches a kernel on the number of blocks of threads that it is given.
  std::function<void(int64_t)> launcher(const Kernel& kernel, const cuda::LaunchParams& params) {
    cuda::check_params(kernel.source, params);
    const auto held = std::make_shared<cuda::LaunchParams>(params);
    return [this, f = kernel.function, held, pointers = held->pointers()](int64_t blocks) {
      device_.launch(f, {blocks, kThreads, 0}, pointers);
    };
  }

  // Returns the time of the fastest of several runs, by the device's clock.
  double seconds(const std::function<void()>& work) {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i <= kRepeats; ++i) {  // the first one warms up
      const DeviceEvent from = device_.record();
      work();
      const double s = device_.elapsed(from, device_.record());
      const bool slow = s > 50 * kLongEnough;
      if (i > 0 || slow) best = std::min(best, s);
      if (slow) break;
    }
    return best;
  }
  // Returns how many units of work are done per second. seconds_of(size) times work of that many
  // units. The size doubles from `first` until the work takes long enough or reaches `most`.
  static double rate(int64_t first, int64_t most, const std::function<double(int64_t)>& seconds_of) {
    for (int64_t size = std::min(first, most);; size *= 2) {
      const double s = seconds_of(size);
      if (s >= kLongEnough || size * 2 > most) return static_cast<double>(size) / std::max(s, 1e-12);
    }
  }

  double copy_rate() {
    const int64_t most = std::min<int64_t>(1024 * kMiB, device_.info().free_bytes / 8);
    const Memory from = memory(most), to = memory(most);
    device_.fill(from.get(), 1, most);
    return 2 *
           rate(kMiB, most, [&](int64_t bytes) { return seconds([&] { device_.copy(to.get(), from.get(), bytes); }); });
  }

  void gathers(GpuProfile& p) {
    constexpr int64_t most_rows = int64_t{1} << 23;
    const DeviceInfo& info = device_.info();
    // The table is so much larger than the cache that few of its rows are found there.
    const int64_t cache = std::max(info.l2_bytes, 4 * kMiB);
    const int64_t far = std::min(20 * cache, info.free_bytes / 5), near = std::min(far, cache / 4);
    std::vector<uint32_t> drawn(most_rows);
    for (size_t i = 0; i < drawn.size(); i += 4) {
      const auto four = philox(3, 0, i);
      std::copy(four.begin(), four.end(), drawn.begin() + static_cast<int64_t>(i));
    }
    const Memory table = memory(far), random = memory(most_rows * 4), out = memory(most_rows / kRun * 1024);
    device_.fill(table.get(), 0, far);
    device_.upload(random.get(), drawn.data(), most_rows * 4);
    const auto gather = [&](int64_t width, int64_t bytes) {
      const int64_t lanes = std::min<int64_t>(32, width / 4), rows = bytes / (width * 4);
      const std::string numbers =
          fmt::format("#define LANES {}\n#define VECTORS {}\n#define RUN {}\n", lanes, width / 4 / lanes, kRun);
      const Kernel kernel = load<SumRowsParams>("gather_rows", numbers + kGatherRows);
      const double rows_per_second = rate(1024, most_rows, [&](int64_t count) {
        const int64_t groups = count / kRun;
        const SumRowsParams params{
            .table = table.get(), .random = random.get(), .rows = rows, .out = out.get(), .groups = groups};
        const auto launch = launcher(kernel, params);
        return seconds([&] { launch(blocks_for(groups * lanes)); });
      });
      return rows_per_second * static_cast<double>(width * 4);
    };
    p.far_16 = gather(16, far);
    p.far_64 = gather(64, far);
    p.far_256 = gather(256, far);
    p.near_16 = gather(16, near);
    p.near_64 = gather(64, near);
    p.near_256 = gather(256, near);
  }

  Memory values(int64_t bytes, bool bf16) {
    Memory m = memory(bytes);
    const int64_t words = bytes / 4;
    const FillValuesParams params{.out = m.get(), .words = words, .bf16 = bf16 ? 1 : 0};
    launcher(load<FillValuesParams>("fill_values", kFillValues), params)(blocks_for(words));
    return m;
  }

  double product_rate(GemmType type) {
    double best = 0;
    for (int64_t n = 256; n <= 8192; n *= 2) {
      const int64_t bytes = n * n * (type == GemmType::bf16 ? 2 : 4);
      if (bytes * 4 > device_.info().free_bytes / 4) break;
      const Memory a = values(bytes, type == GemmType::bf16), b = values(bytes, type == GemmType::bf16);
      const Memory c = memory(n * n * 4);
      GemmShape shape;
      shape.m = shape.n = shape.k = shape.lda = shape.ldb = shape.ldc = n;
      shape.type = type;
      const int handle = device_.prepare_gemm(shape, kTimedAlgorithms);
      const Memory workspace = memory(std::max<int64_t>(16, device_.gemm_workspace(handle)));
      const double s = seconds([&] {
        device_.run_gemm(handle, {a.get(), b.get(), c.get(), nullptr}, workspace.get());
      });
      best = std::max(best, 2.0 * static_cast<double>(n * n) * static_cast<double>(n) / std::max(s, 1e-12));
      if (s >= kLongEnough) break;
    }
    return best;
  }

  void launches(GpuProfile& p) {
    constexpr int count = 500;
    const Memory out = memory(16);
    const auto launch = launcher(load<NothingParams>("nothing", kNothing), NothingParams{.out = out.get()});
    const auto all = [&] {
      for (int i = 0; i < count; ++i) launch(1);
    };
    p.launch = seconds(all) / count;
    device_.begin_capture();
    all();
    const LaunchGraph graph = device_.end_capture();
    p.graph_launch = seconds([&] { device_.replay(graph); }) / count;
  }

  // Returns the seconds of the fastest of several runs, by the host's clock, because copies from
  // ordinary memory keep the host busy.
  double host_seconds(const std::function<void()>& work) {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i <= kRepeats; ++i) {
      device_.synchronize();
      const double start = now_seconds();
      work();
      device_.synchronize();
      if (i > 0) best = std::min(best, now_seconds() - start);
    }
    return best;
  }

  void transfers(GpuProfile& p) {
    const int64_t most = std::min(256 * kMiB, device_.info().free_bytes / 8);
    const Memory there = memory(most);
    const Memory pinned(device_.allocate_pinned(most), [this](void* m) { device_.release_pinned(m); });
    // Fill the memory with ones, so that the system maps every page before it is timed.
    std::vector<char> ordinary(most, 1);
    std::fill_n(static_cast<char*>(pinned.get()), most, 1);
    const auto up = [&](const void* host) {
      return rate(kMiB, most,
                  [&](int64_t bytes) { return host_seconds([&] { device_.upload(there.get(), host, bytes); }); });
    };
    const auto down = [&](void* host) {
      return rate(kMiB, most,
                  [&](int64_t bytes) { return host_seconds([&] { device_.download(host, there.get(), bytes); }); });
    };
    p.up_pinned = up(pinned.get());
    p.up_pageable = up(ordinary.data());
    p.down_pinned = down(pinned.get());
    p.down_pageable = down(ordinary.data());
  }

  // Returns the rate at which the kernel that loads the features of batches gathers rows from
  // page-locked memory. The rows are drawn from far more memory than a cache holds.
  double link_gather(int64_t width) {
    const cuda::RowFormat format{DType::f32, width};
    const int64_t most_rows = 256 * kMiB / format.stride();
    const int64_t most = std::min(most_rows, device_.info().free_bytes / 8 / format.stride());
    const Memory pinned(device_.allocate_pinned(most_rows * format.stride()),
                        [this](void* m) { device_.release_pinned(m); });
    std::fill_n(static_cast<char*>(pinned.get()), most_rows * format.stride(), 1);
    std::vector<uint32_t> drawn(static_cast<size_t>(most));
    for (size_t i = 0; i < drawn.size(); ++i)
      drawn[i] = static_cast<uint32_t>(philox(5, 0, i)[0] % static_cast<uint64_t>(most_rows));
    const Memory ids = memory(most * 4), out = memory(most * width * 4);
    device_.upload(ids.get(), drawn.data(), most * 4);
    const cuda::Source source = cuda::load_rows(format, cuda::RowPlaces::by_vertex);
    const DeviceFunction function = loaded(source);
    const double rows_per_second = rate(256, most, [&](int64_t rows) {
      cuda::LaunchParams params = cuda::LoadRowsParams{.base = reinterpret_cast<uint64_t>(pinned.get()),
                                                       .buffers = nullptr,
                                                       .holder = nullptr,
                                                       .position = nullptr,
                                                       .ids = ids.get(),
                                                       .gathered = nullptr,
                                                       .out = out.get(),
                                                       .rows = rows};
      cuda::check_params(source, params);
      const std::vector<void*> pointers = params.pointers();
      const int64_t blocks = cuda::load_blocks(format, rows, device_.info().multiprocessors);
      return seconds([&] { device_.launch(function, {blocks, source.threads, 0}, pointers); });
    });
    return rows_per_second * static_cast<double>(format.bytes());
  }

  DevicePlugin& plugin_;
  Device& device_;
};

}  // namespace

GpuProfile measure_gpu(DevicePlugin& plugin, Device& device) { return Bench(plugin, device).run(); }

}  // namespace nacre::cli
