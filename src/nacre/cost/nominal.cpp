#include "nacre/cost/nominal.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nacre {
namespace {

using Seconds = std::initializer_list<std::pair<Feature, double>>;

Coefficients with(Coefficients c, Seconds seconds) {
  for (const auto& [feature, value] : seconds) c[static_cast<size_t>(feature)] = value;
  return c;
}

CostModel cpu_model() {
  return CostModel::uniform(with({}, {{Feature::constant, 5e-6},
                                      {Feature::flops, 1 / 100e9},
                                      {Feature::vector_flops, 1 / 20e9},
                                      {Feature::stream_bytes, 1 / 15e9},
                                      {Feature::near_bytes, 1 / 40e9},
                                      {Feature::far_bytes, 1 / 12e9},
                                      {Feature::rows, 2e-9},
                                      {Feature::edges, 1e-9},
                                      {Feature::tasks, 20e-9},
                                      {Feature::steps, 0.5e-6}}));
}

// Returns the nominal cost model of a GPU. Products of whole matrices run on tensor cores. Products
// inside programs are loops of a group of threads, and few edges do not fill the device with such
// groups. Typed kernels launch a product for each type. The bytes that go through memory between
// their parts (sums, rows gathered by pair, products by pair) grow with the products, so the rate
// of these products includes them.
CostModel gpu_model() {
  const Coefficients usual = with({}, {{Feature::constant, 4e-6},
                                       {Feature::flops, 1 / 200e12},
                                       {Feature::vector_flops, 1 / 20e12},
                                       {Feature::stream_bytes, 1 / 3e12},
                                       {Feature::near_bytes, 1 / 6e12},
                                       {Feature::far_bytes, 1 / 3.5e12},
                                       {Feature::rows, 5e-12},
                                       {Feature::edges, 5e-12},
                                       {Feature::tasks, 0.1e-9},
                                       {Feature::steps, 2e-6}});
  const Coefficients program = with(usual, {{Feature::constant, 60e-6}, {Feature::flops, 1 / 1e12}});
  const auto typed = [&](double rate) { return with(usual, {{Feature::constant, 25e-6}, {Feature::flops, 1 / rate}}); };
  // The products of an LSTM are slow, because each step waits for the step before it.
  const Coefficients lstm = with(usual, {{Feature::flops, 1 / 10e12}});
  return CostModel::of_kinds({{"", usual},
                              {"gtask", program},
                              {"gtask_grad", program},
                              {"typed_reduce", typed(70e12)},
                              {"typed_weight_grad", typed(70e12)},
                              {"typed_rows", typed(400e12)},
                              {"typed_rows_grad", typed(400e12)},
                              {"lstm", lstm},
                              {"lstm_grad", lstm}});
}

}  // namespace

const NominalProfile& nominal_cpu() {
  static const NominalProfile profile = {
      .model = cpu_model(), .cache_bytes = 16 << 20, .seconds_of_byte = 0, .time_for_memory = 0.1};
  return profile;
}

const NominalLoading& nominal_loading() {
  static const NominalLoading loading = {.link_bytes_per_second = 20e9,
                                         .transfer_seconds = 15e-6,
                                         .hop_seconds = 60e-6,
                                         .sampled_edge_bytes = 48,
                                         .update_seconds = 20e-6};
  return loading;
}

const NominalProfile& nominal_gpu() {
  static const NominalProfile profile = {
      .model = gpu_model(),
      .cache_bytes = 40 << 20,
      .seconds_of_byte = 1 / 4e12,
      .time_for_memory = 0.6,
      .many_edges = 24,
      .rates = {.launch_seconds = 3e-6, .bytes_per_second = 3.5e12, .flops_per_second = 300e12, .cell_slower = 1.4},
      .kept_sum_flops = 220e12,
      .in_place_products = 3};
  return profile;
}

// If the other multiprocessors rest, a few multiprocessors get more than their share of the
// memory's rate: on an H200, 16, 32 and 64 of 132 multiprocessors gathered 1.15, 2.17 and 3.44 of
// 3.9 TB/s alone. Four parts of 24 multiprocessors that gathered at the same time each reached a
// quarter of the memory's rate.
NominalProfile nominal_gpu(const GpuPart& part) {
  NominalProfile profile = nominal_gpu();
  const double all = 1 - std::pow(1 - std::min(part.busy, 1.0), 2.7);
  const double memory = part.busy > 0 ? all * part.own / part.busy : 1;
  for (const Feature f : {Feature::flops, Feature::vector_flops, Feature::rows, Feature::edges, Feature::tasks})
    profile.model.scale(f, 1 / part.own);
  for (const Feature f : {Feature::stream_bytes, Feature::near_bytes, Feature::far_bytes})
    profile.model.scale(f, 1 / memory);
  profile.cache_bytes = static_cast<int64_t>(static_cast<double>(profile.cache_bytes) * part.cache());
  profile.seconds_of_byte /= memory;
  profile.rates.bytes_per_second *= memory;
  profile.rates.flops_per_second *= part.own;
  profile.kept_sum_flops *= part.own;
  return profile;
}

}  // namespace nacre
