// Pieces the row kernels share.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "nacre/kernel/cuda/emit.h"
#include "nacre/kernel/cuda/rows.h"
#include "nacre/kernel/cuda/text.h"

namespace nacre::cuda {

// Programs no wider than this run one row a thread.
inline constexpr int64_t kThin = 8;

int64_t widest(const RowProgram& program);
// Adds the operands of a program to the parameters of a kernel: "float* p0, u16* p1" …
Entry& add_operands(Entry& entry, const RowProgram& program, const char* name);
// Threads that share the entries of a row whose values a thread holds whole.
int entry_lanes(int64_t mean_degree);
// Rows in flight at once: as many as registers allow.
int batch_for(const RowProgram& program, int lanes, int vector, MicroOp common);
// Declarations of src<u>, dst<u>, pos<u>, typ<u> that the program needs, from the entry held by lane `from`.
struct EntryNames {
  bool rows_at_dst = true;
  bool needs_src = false, needs_dst = false, needs_type = false;
  EntryNames(const ProgramText& text, bool at_dst);
};
// "float name[n]" or "float name", all elements set.
std::string array(const std::string& name, int slots, const std::string& value);

}  // namespace nacre::cuda
