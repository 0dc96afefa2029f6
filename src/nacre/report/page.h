// Makes one HTML page that reports on one or several runs and needs no network and no other file.
// The command nacre report writes it.
#pragma once

#include <string>
#include <vector>

#include "nacre/report/run_record.h"

namespace nacre {

// Largest number of runs that a page compares.
inline constexpr size_t kMostReportedRuns = 16;

// Largest number of bytes of a page with pictures of plans and steps. Pictures that would make the
// page larger are left out.
inline constexpr size_t kMostPageBytes = 2'000'000;

// Returns the page. Every figure of a run stands in an element <data> whose attribute `value` is
// the number as the file has it, and whose attribute `data-from` names the run, the file and the
// place, for example "0:result.json:test_acc". In a place, * means the sum of all values there:
// "0:metrics.jsonl:*:seconds". The words plus and minus stand between places whose values are added
// or subtracted. The widths of bars and the points of curves are drawn from the same values.
std::string report_page(const std::vector<RunRecord>& runs);

}  // namespace nacre
