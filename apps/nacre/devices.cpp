// nacre devices: what hardware is here.
#include <fmt/format.h>
#include <hwy/targets.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>

#include "commands.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/parallel.h"
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

}  // namespace

void add_devices(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("devices", "list the hardware a run can use");
  command.callback([] {
    fmt::print("cpu   {}, {} threads, {}, {} free\n", cpu_model(), num_threads(), best_simd(),
               human_bytes(static_cast<double>(available_memory())));
    fmt::print("      matrix products: {}\n", cpu::gemm_library());
  });
}

}  // namespace nacre::cli
