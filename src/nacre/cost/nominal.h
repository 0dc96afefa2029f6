// Nominal profiles say what an ordinary device of each type is taken to do where nothing has been
// measured, and for choices that must not depend on the machine they are made on (--plan off,
// --deterministic).
#pragma once

#include "nacre/cost/device_traits.h"
#include "nacre/cost/model.h"

namespace nacre {

struct NominalProfile {
  CostModel model;          // predicts the seconds of a kernel's counted work
  int64_t cache_bytes = 0;  // rows gathered from a table of at most this size count as near
  // When plans are compared, each byte of memory that a plan takes counts as this many seconds. So
  // of two plans that take about equally long, the smaller one is chosen.
  double seconds_of_byte = 0;
  // Dropping values may make a step longer by at most this factor times the share of the memory
  // that it saves (plan/drop.h).
  double time_for_memory = 0;
  // From this many edges per vertex on, edge coefficients are applied at the vertices of a GPU's
  // plan, because one value kept for each edge then takes more memory than scaling the vertices'
  // rows once more. Plans for a CPU do not use this number.
  int64_t many_edges = 0;
  VariantRates rates;
  // This is the rate, in operations per second, of products by edge type whose results are added up
  // by vertex in registers. Sums over pairs that are kept in memory are multiplied in this way. The
  // rate is lower than that of the library's products, because each block of threads gathers its
  // own rows.
  double kept_sum_flops = 0;
  // The products of a typed kernel that read kept sums in place are this many times faster than
  // `model` says. The rate of typed kernels in `model` includes sums and products that go through
  // memory, and with kept sums nothing goes through memory.
  double in_place_products = 1;
};

const NominalProfile& nominal_cpu();
const NominalProfile& nominal_gpu();  // an ordinary data-centre GPU

// Holds what the work around the kernels of a mini-batch costs on an ordinary data-centre GPU.
// Nothing of it was measured: these are assumptions for schedules of a GPU that is not in this
// machine.
struct NominalLoading {
  double link_bytes_per_second = 0;  // rate of transfers between the host and the GPU
  double transfer_seconds = 0;       // seconds of a transfer of no bytes
  double hop_seconds = 0;            // seconds of sampling a hop without edges
  double sampled_edge_bytes = 0;     // bytes of GPU memory that sampling an edge moves
  double update_seconds = 0;         // seconds of the update of the weights
};
const NominalLoading& nominal_loading();

// Returns the profile of a part of a GPU (cuda:0@32) that computes at the same time as other parts:
// the rates of the whole GPU without what the other parts take.
NominalProfile nominal_gpu(const GpuPart& part);

}  // namespace nacre
