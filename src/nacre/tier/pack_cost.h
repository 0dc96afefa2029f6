// Decides when packing pays. Packing writes the rows of a group of batches next to each other, in
// the order of their batches, so that they are read without the rest of their pages.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/tier/row_file.h"

namespace nacre {

// Holds rates of a disk, in bytes per second.
struct DiskRates {
  double pages = 0;  // reads of single pages at random places
  double runs = 0;   // reads of long runs
  double writes = 0;
};
// Measures the rates with a few megabytes: reads of `file`, and writes to an unnamed file in
// `folder`. `writes` is 0 if nothing can be written there.
DiskRates measure_rates(const RowFile& file, const std::string& folder);

// Counts what a group of batches reads.
struct GroupReads {
  int64_t rows = 0;            // rows that are read, summed over the batches
  int64_t pages = 0;           // pages that hold these rows, summed over the batches
  int64_t distinct_pages = 0;  // pages that hold these rows, each counted once
};
// Return the seconds that it takes to read the rows of a group from the table, and to pack them and
// read them from the pack.
double seconds_in_place(const GroupReads& reads, const RowLayout& layout, const DiskRates& rates);
double seconds_packed(const GroupReads& reads, const RowLayout& layout, const DiskRates& rates);

}  // namespace nacre
