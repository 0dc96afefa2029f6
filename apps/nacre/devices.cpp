// Defines nacre devices, which lists the hardware that it finds.
#include <fmt/format.h>
#include <hwy/targets.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
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

struct Gpus {
  std::vector<DeviceInfo> list;
  std::string why_none;
};

Gpus find_gpus() {
  Gpus gpus;
  DevicePlugin* plugin = device_plugin(&gpus.why_none);
  if (plugin == nullptr) return gpus;
  gpus.list = plugin->devices();
  gpus.why_none = plugin->why_no_devices();
  return gpus;
}

void print_text(const Gpus& gpus) {
  fmt::print("cpu   {}, {} threads, {}, {} free\n", cpu_model(), num_threads(), best_simd(),
             human_bytes(static_cast<double>(available_memory())));
  fmt::print("      matrix products: {}\n", cpu::gemm_library());
  if (gpus.list.empty()) fmt::print("cuda  none: {}\n", gpus.why_none);
  for (size_t i = 0; i < gpus.list.size(); ++i) {
    const DeviceInfo& d = gpus.list[i];
    fmt::print("cuda:{} {}, sm_{}, {} multiprocessors at {} MHz, {} L2, {} of {} free\n", i, d.name, d.arch,
               d.multiprocessors, d.clock_mhz, human_bytes(static_cast<double>(d.l2_bytes)),
               human_bytes(static_cast<double>(d.free_bytes)), human_bytes(static_cast<double>(d.memory_bytes)));
  }
}

void print_json(const Gpus& gpus) {
  using nlohmann::ordered_json;
  ordered_json list = ordered_json::array();
  for (const DeviceInfo& d : gpus.list) {
    list.push_back({{"name", d.name},
                    {"arch", d.arch},
                    {"multiprocessors", d.multiprocessors},
                    {"clock_mhz", d.clock_mhz},
                    {"l2_bytes", d.l2_bytes},
                    {"memory_bytes", d.memory_bytes},
                    {"free_bytes", d.free_bytes}});
  }
  const ordered_json cpu = {{"name", cpu_model()},
                            {"threads", num_threads()},
                            {"simd", best_simd()},
                            {"free_bytes", available_memory()},
                            {"matrix_products", cpu::gemm_library()}};
  const ordered_json j = {{"cpu", cpu}, {"cuda", list}, {"why_no_cuda", gpus.list.empty() ? gpus.why_none : ""}};
  fmt::print("{}\n", j.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

}  // namespace

void add_devices(Command app) {
  Command command = app.add_subcommand("devices", "list the hardware a run can use");
  const auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "print one JSON object instead of text");
  command.callback([json] {
    const Gpus gpus = find_gpus();
    return *json ? print_json(gpus) : print_text(gpus);
  });
}

}  // namespace nacre::cli
