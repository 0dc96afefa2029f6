// Variants of programs over gTasks on a GPU (gtask, gtask_grad).
#pragma once

#include "nacre/plan/variants.h"
#include "nacre/plan/variants/chunks.h"

namespace nacre {

struct TaskFacts {
  int64_t edges = 0;
  int64_t vertices = 0;  // number of vertices at both ends of the edges
  int64_t rows = 0;      // rows that the edges are reduced to
  int64_t free_bytes = 0;
};
// Returns the facts of a kernel; `free_bytes` of the device's memory are free.
TaskFacts task_facts(const PlannedKernel& k, int64_t free_bytes);

// The decision `gTasks`: where the edges are sorted and cut into gTasks. The gTasks are the same on
// the device and on the host.
enum class TaskCut { on_device, on_host };
const VariantList<TaskFacts>& task_cut_variants();

// The decision `gTasks walked together`: a row whose edges lie in several gTasks is summed in
// pieces. If there are too many pieces, neighbouring gTasks are walked as one: as few of them as
// leave at most as many pieces as the limit.
enum class TaskWindow { of_few_pieces, single };
const VariantList<TaskFacts>& task_window_variants();

// Returns what decides how many edges a gtask_grad takes at a time. Both factors of these edges are
// written to memory before they are multiplied.
ChunkFacts task_chunks(const PlannedKernel& k);

}  // namespace nacre
