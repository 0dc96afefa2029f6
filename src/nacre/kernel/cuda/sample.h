// Sources that sample neighbours on the device, several batches at once: the draws of sample/draw.h, bit for bit.
//
// Destinations of all batches lie one after the other, and so do the edges they draw: batch b has the destinations
// [dst_ptr[b], dst_ptr[b + 1]) and the edges [edge_ptr[b], edge_ptr[b + 1]). `table` has an entry for every batch and
// vertex: the vertex's local number; num_dst + the number (in the batch) of the first edge of the hop that meets it,
// while the hop is numbered; or all ones. Least numbers do not depend on who comes first.
#pragma once

#include "nacre/kernel/cuda/source.h"

namespace nacre::cuda {

// The most edges a vertex can draw where it does not take all.
inline constexpr int kMostDraws = 1000;
// `number_seeds` counts seeds that are no vertices or come twice here.
inline constexpr int64_t kSampleErrorBytes = 4;

// number_seeds(vertices, dst_ptr, batches: i64, table, num_nodes, errors: u32*, count)
Source number_seeds();
// look_up_rows(row_ptr, vertices, begins: i64*, degrees: u32*, counts: u32*, count): counts of a uniform draw of
// `fanout`.
Source look_up_rows(int fanout, bool replace);
// count_weighted(weight, begins, degrees, counts, count): of a draw by weight.
Source count_weighted(int fanout, bool replace);
// take_ends(sums: i64*, places: i64*, out: i64*, count): out[i] = sums[places[i]].
Source take_ends();

// What the sources that pick take: vertices, begins, degrees, offsets (n + 1), dst_ptr, edge_ptr, keys (of batches),
// batches: i64, col, weight, table, num_nodes, edges: i64*, scale, sources: u32*, hop: u32, count: i64 (of
// destinations; pick_all: of edges).
Source pick_uniform(int fanout, bool replace);
Source pick_weighted(int fanout, bool replace);
Source pick_all();
// A destination is one unit of this many threads.
int pick_lanes(int fanout, bool weighted);

// mark_first(sources, dst_ptr, edge_ptr, batches, table, num_nodes, ones: u32*, count)
Source mark_first();
// number_new(sources, dst_ptr, edge_ptr, batches, table, num_nodes, ones, sums, next_ptr, next: u32*, count): next_ptr
// and next are the vertices of the hop after this.
Source number_new();
// keep_known(vertices, dst_ptr, batches, next_ptr, next, count)
Source keep_known();
// relabel(sources, edge_ptr, batches, table, num_nodes, count): in place.
Source relabel();
// block_rows(offsets, dst_ptr, edge_ptr, batches, row_ptr, count): row_ptr of batch b from dst_ptr[b] + b on.
Source block_rows();
// gather_rows(table, ids: u32*, out, rows: i64): rows of `width` floats.
Source gather_rows(int64_t width);
// scatter_rows(from, ids: u32*, table, rows: i64): the row ids[i] of the table becomes row i. No id stands there twice.
Source scatter_rows(int64_t width);
// Threads that either takes.
int64_t gather_threads(int64_t rows, int64_t width);
// take_values(edges, from, to, count): of 4 or 2 bytes.
Source take_values(bool wide);

}  // namespace nacre::cuda
