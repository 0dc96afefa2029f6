// Sources that sample neighbours on the device, several batches at once: the draws of sample/draw.h, bit for bit.
//
// Destinations of all batches lie one after the other, and so do the edges they draw: batch b has the destinations
// [dst_ptr[b], dst_ptr[b + 1]) and the edges [edge_ptr[b], edge_ptr[b + 1]). `table` has an entry for every batch and
// vertex: the vertex's local number; num_dst + the number (in the batch) of the first edge of the hop that meets it,
// while the hop is numbered; or all ones. Least numbers do not depend on who comes first.
#pragma once

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

// The most edges a vertex can draw where it does not take all.
inline constexpr int kMostDraws = 1000;
// `number_seeds` counts seeds that are no vertices or come twice here.
inline constexpr int64_t kSampleErrorBytes = 4;

NACRE_PARAMS(NumberSeedsParams, (const u32* __restrict__, vertices), (const i64* __restrict__, dst_ptr), (i64, batches),
             (u32* __restrict__, table), (i64, num_nodes), (u32* __restrict__, errors), (i64, count));
Source number_seeds();
NACRE_PARAMS(LookUpRowsParams, (const i64* __restrict__, row_ptr), (const u32* __restrict__, vertices),
             (i64* __restrict__, begins), (u32* __restrict__, degrees), (u32* __restrict__, counts), (i64, count));
// The counts are those of a uniform draw of `fanout`.
Source look_up_rows(int fanout, bool replace);
NACRE_PARAMS(CountWeightedParams, (const float* __restrict__, weight), (const i64* __restrict__, begins),
             (const u32* __restrict__, degrees), (u32* __restrict__, counts), (i64, count));
// The counts are those of a draw by weight.
Source count_weighted(int fanout, bool replace);
NACRE_PARAMS(TakeEndsParams, (const i64* __restrict__, sums), (const i64* __restrict__, places),
             (i64* __restrict__, out), (i64, count));
// out[i] = sums[places[i]].
Source take_ends();

// `keys` has one element for each batch. `count` is the number of destinations; for pick_all, of edges.
NACRE_PARAMS(PickParams, (const u32* __restrict__, vertices), (const i64* __restrict__, begins),
             (const u32* __restrict__, degrees), (const i64* __restrict__, offsets), (const i64* __restrict__, dst_ptr),
             (const i64* __restrict__, edge_ptr), (const u64* __restrict__, keys), (i64, batches),
             (const u32* __restrict__, col), (const float* __restrict__, weight), (u32* __restrict__, table),
             (i64, num_nodes), (i64* __restrict__, edges), (float* __restrict__, scale), (u32* __restrict__, sources),
             (u32, hop), (i64, count));
Source pick_uniform(int fanout, bool replace);
Source pick_weighted(int fanout, bool replace);
Source pick_all();
// A destination is one unit of this many threads.
int pick_lanes(int fanout, bool weighted);

NACRE_PARAMS(MarkFirstParams, (const u32* __restrict__, sources), (const i64* __restrict__, dst_ptr),
             (const i64* __restrict__, edge_ptr), (i64, batches), (const u32* __restrict__, table), (i64, num_nodes),
             (u32* __restrict__, ones), (i64, count));
Source mark_first();
// `next_ptr` and `next` are the vertices of the hop after this.
NACRE_PARAMS(NumberNewParams, (const u32* __restrict__, sources), (const i64* __restrict__, dst_ptr),
             (const i64* __restrict__, edge_ptr), (i64, batches), (u32* __restrict__, table), (i64, num_nodes),
             (const u32* __restrict__, ones), (const i64* __restrict__, sums), (const i64* __restrict__, next_ptr),
             (u32* __restrict__, next), (i64, count));
Source number_new();
NACRE_PARAMS(KeepKnownParams, (const u32* __restrict__, vertices), (const i64* __restrict__, dst_ptr), (i64, batches),
             (const i64* __restrict__, next_ptr), (u32* __restrict__, next), (i64, count));
Source keep_known();
NACRE_PARAMS(RelabelParams, (u32* __restrict__, sources), (const i64* __restrict__, edge_ptr), (i64, batches),
             (const u32* __restrict__, table), (i64, num_nodes), (i64, count));
// Changes `sources` in place.
Source relabel();
NACRE_PARAMS(BlockRowsParams, (const i64* __restrict__, offsets), (const i64* __restrict__, dst_ptr),
             (const i64* __restrict__, edge_ptr), (i64, batches), (i64* __restrict__, row_ptr), (i64, count));
// Writes row_ptr of batch b from dst_ptr[b] + b on.
Source block_rows();
NACRE_PARAMS(GatherRowsParams, (const RowWord* __restrict__, table), (const u32* __restrict__, ids),
             (RowWord* __restrict__, out), (i64, rows));
// Rows of `width` floats.
Source gather_rows(int64_t width);
NACRE_PARAMS(ScatterRowsParams, (const RowWord* __restrict__, from), (const u32* __restrict__, ids),
             (RowWord* __restrict__, table), (i64, rows));
// The row ids[i] of the table becomes row i. No id stands there twice.
Source scatter_rows(int64_t width);
// Threads that either takes.
int64_t gather_threads(int64_t rows, int64_t width);
NACRE_PARAMS(TakeValuesParams, (const i64* __restrict__, edges), (const Value* __restrict__, from),
             (Value* __restrict__, to), (i64, count));
// Values of 4 or (not `wide`) 2 bytes.
Source take_values(bool wide);

}  // namespace nacre::cuda
