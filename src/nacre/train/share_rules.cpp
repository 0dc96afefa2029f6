#include "nacre/train/share_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/machine.h"
#include "nacre/cost/gpu_profile.h"
#include "nacre/device/device.h"
#include "nacre/engine/calibrate.h"

namespace nacre {
namespace {

// A multiprocessor of a GPU counts as this many threads of the host. Only first shares use this.
constexpr double kThreadsOfMultiprocessor = 4;
constexpr double kMega = 1e6;

// Returns how many f32 operations a multiprocessor starts in a cycle.
double flops_of_cycle(int arch) {
  // Multiprocessors of these architectures have 64 cores; all others have 128.
  const bool half = arch == 60 || arch == 70 || arch == 72 || arch == 75 || arch == 80;
  return half ? 128 : 256;
}

// Returns how many f32 operations a thread of the host starts in a cycle: two multiply-adds, each
// on a whole vector register.
double host_flops_of_cycle() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 64;
  if (__builtin_cpu_supports("avx2")) return 32;
#endif
  return 16;
}

DeviceSpeed speed_of_host(int threads) {
  DeviceSpeed speed;
  speed.cores = speed.score = std::max(1, threads);
  speed.megahertz = clock_megahertz();
  speed.peak_flops = speed.cores * speed.megahertz * kMega * host_flops_of_cycle();
  const auto profile = load_profile(machine_name(threads), kProfileVersion);
  if (profile) speed.measured_flops = profile->gemm_flops;
  return speed;
}

DeviceSpeed speed_of_gpu(const DeviceInfo& info, int multiprocessors, const std::string& precision) {
  DeviceSpeed speed;
  speed.cores = multiprocessors;
  speed.score = kThreadsOfMultiprocessor * speed.cores;
  speed.megahertz = info.clock_mhz;
  speed.peak_flops = speed.cores * speed.megahertz * kMega * flops_of_cycle(info.arch);
  const auto profile = load_gpu_profile(gpu_label(info.name, multiprocessors));
  if (profile) {
    speed.measured_flops = precision == "bf16" ? profile->bf16 : precision == "tf32" ? profile->tf32 : profile->f32;
  }
  return speed;
}

struct Rule {
  const char* name;
  const char* what;  // a text that says what the shares follow
  std::function<double(const DeviceSpeed&)> value;
  const char* unit;
};

Rule rule_of_flops(const std::vector<DeviceSpeed>& speeds) {
  // The measured rates are used only if all devices have one; otherwise all devices are compared by
  // their peak rates.
  const bool measured =
      std::all_of(speeds.begin(), speeds.end(), [](const DeviceSpeed& s) { return s.measured_flops > 0; });
  if (measured) {
    return {"flops", "the measured rate of matrix products",
            [](const DeviceSpeed& s) { return s.measured_flops / 1e9; }, "GFLOP/s"};
  }
  return {"flops", "the peak rate of f32 operations", [](const DeviceSpeed& s) { return s.peak_flops / 1e9; },
          "GFLOP/s"};
}

Rule rule_of(const std::string& name, const std::vector<DeviceSpeed>& speeds) {
  if (name == "uniform") return {"uniform", "", [](const DeviceSpeed&) { return 1.0; }, ""};
  if (name == "cores") {
    return {"cores", "the number of threads or multiprocessors", [](const DeviceSpeed& s) { return s.cores; }, ""};
  }
  if (name == "frequency") return {"frequency", "the clock", [](const DeviceSpeed& s) { return s.megahertz; }, "MHz"};
  if (name == "flops") return rule_of_flops(speeds);
  NACRE_CHECK(name == kAutomaticShares, "the rule of shares must be one of share_rule_names()");
  return {kAutomaticShares, "the number of threads, with a multiprocessor of a GPU as four threads",
          [](const DeviceSpeed& s) { return s.score; }, ""};
}

}  // namespace

std::vector<std::string> share_rule_names() { return {kAutomaticShares, "uniform", "cores", "flops", "frequency"}; }

DeviceSpeed device_speed(const RankDevice& rank, const RunDevice& device, const std::string& precision) {
  const std::shared_ptr<Device> gpu = device.gpu();
  if (!gpu) return speed_of_host(rank.threads);
  return speed_of_gpu(gpu->info(), device.backend()->traits().multiprocessors, precision);
}

FirstShares shares_by_rule(const std::string& name, const std::vector<RankDevice>& devices,
                           const std::vector<DeviceSpeed>& speeds) {
  NACRE_CHECK(devices.size() == speeds.size(), "there must be one speed for each device");
  const Rule rule = rule_of(name, speeds);
  FirstShares first;
  for (size_t r = 0; r < speeds.size(); ++r) {
    first.shares.push_back(rule.value(speeds[r]));
    if (first.shares[r] > 0) continue;
    throw UserError("--shares " + name, fmt::format("{} of {} is not known", rule.what, devices[r].text),
                    "use --shares cores, or give numbers");
  }
  const double sum = std::accumulate(first.shares.begin(), first.shares.end(), 0.0);
  std::string each;
  for (size_t r = 0; r < speeds.size(); ++r) {
    const std::string value = rule.unit[0] == '\0' ? "" : fmt::format(" ({:.0f} {})", first.shares[r], rule.unit);
    each += fmt::format("{}{} {:.1f} %{}", r == 0 ? "" : ", ", devices[r].text, 100 * first.shares[r] / sum, value);
  }
  const std::string follows =
      rule.what[0] == '\0' ? "all devices have equal shares" : std::string("shares follow ") + rule.what;
  first.reason = fmt::format("{}{}: {}", name == kAutomaticShares ? "first " : "", follows, each);
  return first;
}

}  // namespace nacre
