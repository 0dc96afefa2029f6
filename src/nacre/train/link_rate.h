// This file measures, before a run begins, the rate at which rows of other ranks come in.
#pragma once

#include "nacre/engine/backend.h"
#include "nacre/kernel/rank_links.h"
#include "nacre/partition/local_graph.h"

namespace nacre {

// Exchanges rows of the rank's halo a few times and returns the bytes per second of the fastest
// exchange. The rate is rounded to a power of two, so that small differences between runs change no
// plan; on a busy machine, rates still differ by more than that. Returns 0 if too few rows travel
// to tell. All ranks must call this together; each gets a rate of its own. The values of the rank
// lie in the memory of `backend`.
double measure_link(RankLinks& links, const LocalGraph& local, Backend& backend);

// Returns the bytes per second at which rows of other ranks are taken to come in, on a GPU or on
// the host, where measure_link() was not called or could not tell.
double usual_link_rate(bool gpu);

}  // namespace nacre
