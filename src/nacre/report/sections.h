// The sections of a report. Each function returns HTML, or an empty text if the runs have nothing
// to show there.
#pragma once

#include <string>
#include <vector>

#include "nacre/report/run_record.h"

namespace nacre {

using RunRecords = std::vector<RunRecord>;

// Returns text from a file as the text of an HTML element or attribute.
std::string html_text(const std::string& text);

std::string results_section(const RunRecords& runs);   // the main figures, side by side
std::string curves_section(const RunRecords& runs);    // losses and scores over epochs
std::string epochs_section(const RunRecords& runs);    // the same as tables
std::string memory_section(const RunRecords& runs);    // the memory bill
std::string time_section(const RunRecords& runs);      // where the time went
std::string kernels_section(const RunRecords& runs);   // kernels and their floors
std::string settings_section(const RunRecords& runs);  // all settings
std::string warnings_section(const RunRecords& runs);

// The style sheet and the script of the page.
extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace nacre
