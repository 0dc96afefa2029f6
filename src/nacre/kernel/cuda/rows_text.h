// Declares texts that the writers of row kernels share.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "nacre/kernel/cuda/emit.h"
#include "nacre/kernel/cuda/rows.h"
#include "nacre/kernel/cuda/text.h"

namespace nacre::cuda {

// If the values of a program are at most this wide, a thread holds whole rows of them.
inline constexpr int64_t kThin = 8;

// Returns the width of the widest value.
int64_t widest(const RowProgram& program);
// Adds the operands of a program to the parameters of a kernel: "float* p0, u16* p1" … Returns the
// entry.
Entry& add_operands(Entry& entry, const RowProgram& program, const char* name);
// Returns how many threads share the entries of a row if a thread holds whole values.
int entry_lanes(int64_t mean_degree);
// Returns how many rows are in flight at once: as many as the registers allow.
int batch_for(const RowProgram& program, int lanes, int vector, MicroOp common);
// Says which of the names src<u>, dst<u> and typ<u> a program reads.
struct EntryNames {
  bool rows_at_dst = true;
  bool needs_src = false, needs_dst = false, needs_type = false;
  EntryNames(const ProgramText& text, bool at_dst);
};
// Returns the declaration "float name[size]" (with size 0: "float name"), all elements set to
// `value`.
std::string array(const std::string& name, int size, const std::string& value);

}  // namespace nacre::cuda
