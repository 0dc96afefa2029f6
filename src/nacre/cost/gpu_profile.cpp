#include "nacre/cost/gpu_profile.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/cost/nominal.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kFormat = "nacre-gpu-profile";
// This number must be increased when the measurements change, so that older files are not used.
constexpr int kVersion = 2;

constexpr GpuFigure kFigures[] = {
    {"copy_bytes", &GpuProfile::copy, 1e-9, "GB/s", "copied inside the device, read and written"},
    {"far_gather_16_bytes", &GpuProfile::far_16, 1e-9, "GB/s", "rows of 16 floats gathered from memory"},
    {"far_gather_64_bytes", &GpuProfile::far_64, 1e-9, "GB/s", "rows of 64 floats"},
    {"far_gather_256_bytes", &GpuProfile::far_256, 1e-9, "GB/s", "rows of 256 floats"},
    {"near_gather_16_bytes", &GpuProfile::near_16, 1e-9, "GB/s", "rows of 16 floats gathered from the L2 cache"},
    {"near_gather_64_bytes", &GpuProfile::near_64, 1e-9, "GB/s", "rows of 64 floats"},
    {"near_gather_256_bytes", &GpuProfile::near_256, 1e-9, "GB/s", "rows of 256 floats"},
    {"gemm_f32_flops", &GpuProfile::f32, 1e-12, "TFLOP/s", "large matrix products, f32"},
    {"gemm_tf32_flops", &GpuProfile::tf32, 1e-12, "TFLOP/s", "tf32"},
    {"gemm_bf16_flops", &GpuProfile::bf16, 1e-12, "TFLOP/s", "bf16"},
    {"launch_seconds", &GpuProfile::launch, 1e6, "us", "an empty kernel"},
    {"graph_launch_seconds", &GpuProfile::graph_launch, 1e6, "us", "an empty kernel in a recorded step"},
    {"up_pinned_bytes", &GpuProfile::up_pinned, 1e-9, "GB/s", "host to device, page-locked memory"},
    {"up_pageable_bytes", &GpuProfile::up_pageable, 1e-9, "GB/s", "host to device, ordinary memory"},
    {"down_pinned_bytes", &GpuProfile::down_pinned, 1e-9, "GB/s", "device to host, page-locked memory"},
    {"down_pageable_bytes", &GpuProfile::down_pageable, 1e-9, "GB/s", "device to host, ordinary memory"},
    {"link_gather_64_bytes", &GpuProfile::link_64, 1e-9, "GB/s", "rows of 64 floats gathered from the host"},
    {"link_gather_256_bytes", &GpuProfile::link_256, 1e-9, "GB/s", "rows of 256 floats gathered from the host"},
};

std::string path_of(const std::string& device) {
  std::string name;
  for (const char c : device) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  return (fs::path(cache_folder()) / ("gpu-" + name + ".json")).string();
}

GpuProfile parse(const std::string& text, const std::string& device) {
  GpuProfile profile;
  const ordered_json j = parse_json<ordered_json>(text, path_of(device));
  if (j.at("format") != kFormat || j.at("version") != kVersion || j.at("device") != device) {
    throw UserError(path_of(device), "was written by another version of the program or for another GPU");
  }
  profile.device = device;
  profile.l2_bytes = j.at("l2_bytes").get<int64_t>();
  for (const GpuFigure& f : kFigures) {
    profile.*f.value = j.at(f.key).get<double>();
    if (!(profile.*f.value > 0)) throw UserError(path_of(device), fmt::format("\"{}\" is not above 0", f.key));
  }
  return profile;
}

double product_rate(const GpuProfile& profile, GemmType precision) {
  switch (precision) {
    case GemmType::f32:
      return profile.f32;
    case GemmType::tf32:
      return profile.tf32;
    case GemmType::bf16:
      return profile.bf16;
  }
  return profile.f32;
}

}  // namespace

std::span<const GpuFigure> gpu_figures() { return kFigures; }

std::optional<GpuProfile> load_gpu_profile(const std::string& device) {
  std::error_code ignored;
  if (cache_folder().empty() || !fs::exists(path_of(device), ignored)) return std::nullopt;
  try {
    return parse(read_file(path_of(device)), device);
  } catch (const std::exception&) {
    log_warning(path_of(device) + " is not a profile of this GPU and is not used");
    return std::nullopt;
  }
}

std::string gpu_label(const std::string& name, int multiprocessors) {
  return fmt::format("{}, {} multiprocessors", name, multiprocessors);
}

std::string gpu_profile_json(const GpuProfile& profile) {
  ordered_json j = {
      {"format", kFormat}, {"version", kVersion}, {"device", profile.device}, {"l2_bytes", profile.l2_bytes}};
  for (const GpuFigure& f : kFigures) j[f.key] = profile.*f.value;
  return j.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

bool save_gpu_profile(const GpuProfile& profile) {
  try {
    if (cache_folder().empty()) throw UserError("cache folder", "is not known", "set NACRE_CACHE");
    fs::create_directories(cache_folder());
    write_file(path_of(profile.device), gpu_profile_json(profile) + "\n");
    return true;
  } catch (const std::exception& error) {
    log_warning(fmt::format("the GPU profile cannot be stored: {}", error.what()));
    return false;
  }
}

VariantRates variant_rates(const GpuProfile& profile, GemmType precision) {
  // A launch counts as one in a graph, because steps are recorded and launched as graphs.
  return {.launch_seconds = profile.graph_launch,
          .bytes_per_second = profile.copy,
          .flops_per_second = product_rate(profile, precision),
          .cell_slower = nominal_gpu().rates.cell_slower};
}

DeviceProfile planning_profile(const GpuProfile& profile, GemmType precision) {
  DeviceProfile p;
  p.machine = profile.device;
  p.cache_bytes = profile.l2_bytes;
  p.gemm_flops = product_rate(profile, precision);
  p.stream_bytes = profile.copy;
  p.near_gather_bytes = profile.near_256;
  p.far_gather_bytes = profile.far_256;
  p.launch_seconds = profile.launch;
  Coefficients c{};
  const auto set = [&c](Feature feature, double seconds) { c[static_cast<size_t>(feature)] = seconds; };
  for (size_t f = 0; f < kFeatures; ++f) {
    Work one;
    one.amount[f] = 1;
    c[f] = nominal_gpu().model.predict(one);
  }
  set(Feature::constant, profile.launch);
  set(Feature::flops, 1 / p.gemm_flops);
  set(Feature::stream_bytes, 1 / p.stream_bytes);
  set(Feature::near_bytes, 1 / p.near_gather_bytes);
  set(Feature::far_bytes, 1 / p.far_gather_bytes);
  p.model = CostModel::uniform(c);
  return p;
}

}  // namespace nacre
