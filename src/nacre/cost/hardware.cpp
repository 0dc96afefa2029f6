#include "nacre/cost/hardware.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/cost/nominal.h"

namespace nacre {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

struct GpuRates {
  // These are rates in bytes per second: of rows in order, of rows gathered from the cache, and of
  // other gathered rows.
  double stream = 0, near = 0, far = 0;
  double flops = 0;  // operations per second of matrix products
};

// Returns a GPU that has these rates and is otherwise an ordinary data-centre GPU
// (cost/nominal.cpp).
DescribedDevice gpu(const std::string& name, double memory_gib, const GpuRates& rates, int multiprocessors,
                    int64_t cache_bytes, const std::string& source) {
  DescribedDevice device;
  device.name = name;
  device.count = 8;
  device.model = nominal_gpu().model;
  const auto set = [&](Feature feature, double rate) {
    Work one;
    one[feature] = 1;
    device.model.scale(feature, 1 / (rate * nominal_gpu().model.predict(one)));
  };
  set(Feature::stream_bytes, rates.stream);
  set(Feature::near_bytes, rates.near);
  set(Feature::far_bytes, rates.far);
  set(Feature::flops, rates.flops);
  device.cache_bytes = cache_bytes;
  device.memory_bytes = static_cast<int64_t>(memory_gib * kGiB);
  device.multiprocessors = multiprocessors;
  device.rates = fmt::format(
      "{}: rows in order at {:.3g} TB/s, gathered at {:.3g} TB/s and at {:.3g} TB/s from the cache, products at {:.3g} "
      "TFLOP/s (tf32)",
      source, rates.stream / 1e12, rates.far / 1e12, rates.near / 1e12, rates.flops / 1e12);
  return device;
}

// The rates and the size of the cache were fitted to four epochs on one H200 (docs/results_log.md).
// The fitted cache is larger than the real one, because rows of vertices with many edges are
// gathered most often.
Hardware h200x8() {
  Hardware h;
  h.name = "h200x8";
  h.devices = {gpu("H200", 139, {.stream = 3.0e12, .near = 15e12, .far = 4.7e12, .flops = 200e12}, 132,
                   int64_t{170} << 20, "fitted to epochs of one H200")};
  h.machines = 128;
  h.inside = {.bandwidth = 400e9, .latency = 10e-6, .message = 1e-6};
  h.between = {.bandwidth = 45e9, .latency = 20e-6, .message = 2e-6};
  return h;
}

Hardware a100x8() {
  Hardware h;
  h.name = "a100x8";
  h.devices = {gpu("A100", 79, {.stream = 1.3e12, .near = 6.5e12, .far = 2.0e12, .flops = 100e12}, 108,
                   int64_t{130} << 20, "those of an H200 in proportion to the memory")};
  h.machines = 128;
  h.inside = {.bandwidth = 250e9, .latency = 10e-6, .message = 1e-6};
  h.between = {.bandwidth = 22e9, .latency = 20e-6, .message = 2e-6};
  return h;
}

std::vector<Hardware> all() { return {h200x8(), a100x8()}; }

std::string link_text(const LinkRates& link) {
  if (link.bandwidth == 0) return "as fast as the memory of the devices";
  return fmt::format("{:.3g} GB/s each way for each device; a communication takes {} more, and {} more for each peer",
                     link.bandwidth / 1e9, human_seconds(link.latency), human_seconds(link.message));
}

}  // namespace

int Hardware::devices_of_machine() const {
  int count = 0;
  for (const DescribedDevice& device : devices) count += device.count;
  return count;
}

const DescribedDevice& Hardware::device_of(int rank) const {
  int at = rank % devices_of_machine();
  for (const DescribedDevice& device : devices) {
    if (at < device.count) return device;
    at -= device.count;
  }
  throw UserError(name, "describes no devices");
}

std::vector<std::string> Hardware::assumptions() const {
  std::vector<std::string> lines;
  for (const DescribedDevice& d : devices) {
    std::string line = fmt::format("{}: {} in each machine, rates {}", d.name, d.count, d.rates);
    if (d.memory_bytes > 0) line += ", " + human_bytes(static_cast<double>(d.memory_bytes)) + " of memory";
    line += ", " + human_bytes(static_cast<double>(d.cache_bytes)) + " of cache";
    if (d.together < 1) line += fmt::format(", {:.0f} % of the memory rates while other devices run", 100 * d.together);
    lines.push_back(std::move(line));
  }
  lines.push_back("inside a machine: " + link_text(inside));
  if (machines > 1) lines.push_back("between machines: " + link_text(between));
  lines.emplace_back(overlap ? "links move rows while devices compute"
                             : "devices move rows themselves and do not compute meanwhile");
  return lines;
}

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  for (const Hardware& h : all()) names.push_back(h.name);
  return names;
}

Hardware named_hardware(const std::string& name) {
  for (Hardware& h : all()) {
    if (h.name == name) return h;
  }
  throw UserError("--hardware", "'" + name + "' is neither a file nor the name of described hardware",
                  "choose " + listed(hardware_names()) + ", or write a TOML file (docs/many_devices.md)");
}

}  // namespace nacre
