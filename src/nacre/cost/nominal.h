// Nominal profiles: what an ordinary device of each type is taken to do where nothing has been
// measured, and for choices that must not depend on the machine they are made on (--plan off,
// --deterministic).
#pragma once

#include "nacre/cost/device_traits.h"
#include "nacre/cost/model.h"

namespace nacre {

struct NominalProfile {
  CostModel model;          // seconds of a kernel's counted work
  int64_t cache_bytes = 0;  // gathered rows of a table no larger than this are near
  // What a byte of memory costs when plans are compared: of two plans that take about equally long,
  // the smaller one is chosen.
  double seconds_of_byte = 0;
  // A step may become longer by this factor times the share of memory that it saves (plan/drop.h).
  double time_for_memory = 0;
  // With this many edges per vertex or more, one value kept for each edge takes more memory than
  // scaling the vertices' rows once more, so edge coefficients are applied at the vertices; 0:
  // never.
  int64_t many_edges = 0;
  VariantRates rates;
  // Operations per second of products by edge type whose results are added up by vertex in
  // registers. Sums over pairs that are kept in memory are multiplied in this way. The rate is
  // lower than that of the library's products, because each block of threads gathers its own rows.
  double kept_sum_flops = 0;
  // How many times faster the products of a typed kernel are if they read kept sums in place: the
  // rate of typed kernels in `model` includes sums and products that go through memory, and here
  // nothing does.
  double in_place_products = 1;
};

const NominalProfile& nominal_cpu();
const NominalProfile& nominal_gpu();  // an ordinary data-centre GPU

// What the work around the kernels of a mini-batch costs on an ordinary data-centre GPU. Nothing of
// it was measured: these are assumptions for schedules of a GPU that is not in this machine.
struct NominalLoading {
  double link_bytes_per_second = 0;  // rate of transfers between the host and the GPU
  double transfer_seconds = 0;       // seconds of a transfer of no bytes
  double hop_seconds = 0;            // seconds of sampling a hop without edges
  double sampled_edge_bytes = 0;     // bytes of GPU memory that sampling an edge moves
  double update_seconds = 0;         // seconds of the update of the weights
};
const NominalLoading& nominal_loading();

// Returns the profile of a part of a GPU (cuda:0@32) that computes at the same time as other parts:
// the rates of the whole GPU, less what the others take.
NominalProfile nominal_gpu(const GpuPart& part);

}  // namespace nacre
