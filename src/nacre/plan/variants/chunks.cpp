#include "nacre/plan/variants/chunks.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/log.h"

namespace nacre {
namespace {

// A plan file may ask for at most this many algorithms of the library for one product.
constexpr int64_t kMostAlgorithms = 64;

int64_t rows_of_chunk(const ChunkFacts& f, const DeviceTraits&) {
  return f.row_bytes == 0 ? f.rows : std::max(f.least, f.budget / f.row_bytes);
}

std::string all_rows_decline(const ChunkFacts& f, const DeviceTraits& device) {
  if (f.rows <= rows_of_chunk(f, device)) return "";
  return fmt::format("the {} rows would take {} of memory, and at most {} may be used for them", f.rows,
                     human_bytes(static_cast<double>(f.rows) * static_cast<double>(f.row_bytes)),
                     human_bytes(static_cast<double>(f.budget)));
}

std::string timing_declines(const AlgorithmFacts& f, const DeviceTraits& device) {
  if (device.batches) return "the shapes of a batch do not come again";
  if (!device.tune) return "this run does not time variants";
  return f.worth == TimedProducts::none ? "the products of gTasks are not worth timing" : "";
}

std::string timing_all_declines(const AlgorithmFacts& f, const DeviceTraits& device) {
  std::string why = timing_declines(f, device);
  if (!why.empty() || f.worth == TimedProducts::all) return why;
  return "small products of this kernel are not worth timing";
}

int64_t timed_algorithms(const AlgorithmFacts&, const DeviceTraits&) { return kTimedAlgorithms; }

}  // namespace

const VariantList<ChunkFacts>& chunk_variants() {
  static const VariantList<ChunkFacts> list = {
      "rows at a time",
      false,
      {{"all", all_rows_decline, nullptr}, {"some", nullptr, nullptr, rows_of_chunk}},
      {"{} at a time"}};
  return list;
}

const VariantList<AlgorithmFacts>& algorithm_variants() {
  static const VariantList<AlgorithmFacts> list = {
      "algorithm",
      false,
      {{"timed", timing_all_declines, nullptr, timed_algorithms},
       {"timed for large products", timing_declines, nullptr, timed_algorithms},
       {"the library's first", nullptr, nullptr}},
      {"among {} of the library", 2, kMostAlgorithms}};
  return list;
}

AlgorithmFacts algorithm_facts(KernelKind kind) {
  switch (kind) {
    case KernelKind::matmul:
    case KernelKind::weight_grad:
      return {TimedProducts::all};
    case KernelKind::gtask_grad:
      return {TimedProducts::none};
    default:
      return {TimedProducts::large};
  }
}

}  // namespace nacre
