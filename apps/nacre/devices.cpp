// nacre devices: what hardware is here.
#include <fmt/format.h>
#include <hwy/targets.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "commands.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/parallel.h"
#include "nacre/device/device.h"
#include "nacre/engine/memory.h"
#include "nacre/kernel/cpu/gemm.h"

namespace nacre::cli {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string best_simd() {
  const int64_t targets = hwy::SupportedTargets();
  return hwy::TargetName(targets & -targets);  // the lowest bit is the best target
}

void print_gpus() {
  std::string why;
  DevicePlugin* plugin = device_plugin(&why);
  if (plugin == nullptr) {
    fmt::print("cuda  none: {}\n", why);
    return;
  }
  const std::vector<DeviceInfo> gpus = plugin->devices();
  if (gpus.empty()) fmt::print("cuda  none: {}\n", plugin->why_no_devices());
  for (size_t i = 0; i < gpus.size(); ++i) {
    const DeviceInfo& d = gpus[i];
    fmt::print("cuda:{} {}, sm_{}, {} multiprocessors at {} MHz, {} L2, {} of {} free\n", i, d.name, d.arch,
               d.multiprocessors, d.clock_mhz, human_bytes(static_cast<double>(d.l2_bytes)),
               human_bytes(static_cast<double>(d.free_bytes)), human_bytes(static_cast<double>(d.memory_bytes)));
  }
}

}  // namespace

void add_devices(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("devices", "list the hardware a run can use");
  command.callback([] {
    fmt::print("cpu   {}, {} threads, {}, {} free\n", cpu_model(), num_threads(), best_simd(),
               human_bytes(static_cast<double>(available_memory())));
    fmt::print("      matrix products: {}\n", cpu::gemm_library());
    print_gpus();
  });
}

}  // namespace nacre::cli
