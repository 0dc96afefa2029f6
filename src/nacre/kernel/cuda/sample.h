// Sources that sample neighbours on the device for several batches at once. Their draws are those
// of sample/draw.h, bit for bit.
//
// The destinations of all batches lie one after the other, and so do the edges they draw: batch b
// has the destinations [dst_ptr[b], dst_ptr[b + 1]) and the edges [edge_ptr[b], edge_ptr[b + 1]).
// `table` has an entry for every batch and vertex. It is the vertex's local number, or all ones if
// the vertex has none yet. While a hop is numbered, the entry of a new vertex is num_dst + the
// least number (in the batch) of the edges that reach it, which does not depend on the order of the
// threads.
#pragma once

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

// The most edges that a vertex can draw if it does not take all of its edges.
inline constexpr int kMostDraws = 1000;
// Size of the counter in which number_seeds() counts seeds that are no vertices or occur twice.
inline constexpr int64_t kSampleErrorBytes = 4;

NACRE_PARAMS(NumberSeedsParams, (const u32* __restrict__, vertices), (const i64* __restrict__, dst_ptr), (i64, batches),
             (u32* __restrict__, table), (i64, num_nodes), (u32* __restrict__, errors), (i64, count));
// Gives the seeds of each batch the numbers 0, 1 … in the table.
Source number_seeds();
NACRE_PARAMS(LookUpRowsParams, (const i64* __restrict__, row_ptr), (const u32* __restrict__, vertices),
             (i64* __restrict__, begins), (u32* __restrict__, degrees), (u32* __restrict__, counts), (i64, count));
// Looks up where the row of each vertex begins and how long it is, and counts the edges that a
// uniform draw of `fanout` takes.
Source look_up_rows(int fanout, bool replace);
NACRE_PARAMS(CountWeightedParams, (const float* __restrict__, weight), (const i64* __restrict__, begins),
             (const u32* __restrict__, degrees), (u32* __restrict__, counts), (i64, count));
// Counts the edges that a draw by weight takes.
Source count_weighted(int fanout, bool replace);
NACRE_PARAMS(TakeEndsParams, (const i64* __restrict__, sums), (const i64* __restrict__, places),
             (i64* __restrict__, out), (i64, count));
// Copies out[i] = sums[places[i]].
Source take_ends();

// The parameters of the three kernels that draw edges. `keys` has one element for each batch.
// `count` is the number of destinations; for pick_all, of edges.
NACRE_PARAMS(PickParams, (const u32* __restrict__, vertices), (const i64* __restrict__, begins),
             (const u32* __restrict__, degrees), (const i64* __restrict__, offsets), (const i64* __restrict__, dst_ptr),
             (const i64* __restrict__, edge_ptr), (const u64* __restrict__, keys), (i64, batches),
             (const u32* __restrict__, col), (const float* __restrict__, weight), (u32* __restrict__, table),
             (i64, num_nodes), (i64* __restrict__, edges), (float* __restrict__, scale), (u32* __restrict__, sources),
             (u32, hop), (i64, count));
Source pick_uniform(int fanout, bool replace);
Source pick_weighted(int fanout, bool replace);
Source pick_all();
// Returns how many threads work on a destination.
int pick_lanes(int fanout, bool weighted);

// The `count` edges of a hop. These parameters come first for mark_first() and number_new().
NACRE_PARAMS(HopEdgesParams, (const u32* __restrict__, sources), (const i64* __restrict__, dst_ptr),
             (const i64* __restrict__, edge_ptr), (i64, batches), (i64, num_nodes), (i64, count));
NACRE_PARAMS(MarkFirstParams, (const u32* __restrict__, table), (u32* __restrict__, ones));
// Sets ones[e] to 1 if edge e is the first edge of its batch that reaches its source and the source
// is new in this hop; otherwise to 0.
Source mark_first();
// Gives every new vertex its number. `next_ptr` and `next` are the vertices of the next hop.
NACRE_PARAMS(NumberNewParams, (u32* __restrict__, table), (const u32* __restrict__, ones),
             (const i64* __restrict__, sums), (const i64* __restrict__, next_ptr), (u32* __restrict__, next));
Source number_new();
NACRE_PARAMS(KeepKnownParams, (const u32* __restrict__, vertices), (const i64* __restrict__, dst_ptr), (i64, batches),
             (const i64* __restrict__, next_ptr), (u32* __restrict__, next), (i64, count));
// Copies the vertices of this hop, which have numbers already, to the list of vertices of the next
// hop.
Source keep_known();
NACRE_PARAMS(RelabelParams, (u32* __restrict__, sources), (const i64* __restrict__, edge_ptr), (i64, batches),
             (const u32* __restrict__, table), (i64, num_nodes), (i64, count));
// Replaces each source by its number in the batch, in place.
Source relabel();
NACRE_PARAMS(BlockRowsParams, (const i64* __restrict__, offsets), (const i64* __restrict__, dst_ptr),
             (const i64* __restrict__, edge_ptr), (i64, batches), (i64* __restrict__, row_ptr), (i64, count));
// Writes row_ptr of the block of each batch; that of batch b begins at dst_ptr[b] + b.
Source block_rows();
NACRE_PARAMS(GatherRowsParams, (const RowWord* __restrict__, table), (const u32* __restrict__, ids),
             (RowWord* __restrict__, out), (i64, rows));
// Copies row ids[i] of the table to row i of `out`. Rows have `width` floats.
Source gather_rows(int64_t width);
NACRE_PARAMS(ScatterRowsParams, (const RowWord* __restrict__, from), (const u32* __restrict__, ids),
             (RowWord* __restrict__, table), (i64, rows));
// Copies row i of `from` to row ids[i] of the table. No id occurs twice.
Source scatter_rows(int64_t width);
// Returns the number of threads of gather_rows() and of scatter_rows().
int64_t gather_threads(int64_t rows, int64_t width);
NACRE_PARAMS(TakeValuesParams, (const i64* __restrict__, edges), (const Value* __restrict__, from),
             (Value* __restrict__, to), (i64, count));
// Copies to[e] = from[edges[e]]. Values have 4 bytes if `four_bytes`, otherwise 2.
Source take_values(bool four_bytes);

}  // namespace nacre::cuda
