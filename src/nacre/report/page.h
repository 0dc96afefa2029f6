// Makes one HTML page that reports on one or several runs and needs no network and no other file.
// The command nacre report writes it.
#pragma once

#include <string>
#include <vector>

#include "nacre/report/run_record.h"

namespace nacre {

// The most runs that a page compares.
inline constexpr size_t kMostReportedRuns = 16;

// Returns the page. Every figure of a run stands in an element <data> whose attribute `value` is
// the number as the file has it, and whose attribute `data-from` names the run, the file and the
// place.
std::string report_page(const std::vector<RunRecord>& runs);

}  // namespace nacre
