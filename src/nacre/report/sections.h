// Declares the sections of a report. Each function returns HTML, or an empty text if the runs have
// nothing to show in its section.
#pragma once

#include <string>
#include <vector>

#include "nacre/report/run_record.h"

namespace nacre {

using RunRecords = std::vector<RunRecord>;

// Returns `text`, which comes from a file, with the escapes that make it the text of an HTML
// element or attribute.
std::string html_text(const std::string& text);

std::string results_section(const RunRecords& runs);  // shows the main figures of all runs side by
                                                      // side
std::string curves_section(const RunRecords& runs);   // shows losses and scores over epochs as
                                                      // charts
std::string epochs_section(const RunRecords& runs);   // shows losses and scores over epochs as
                                                      // tables
std::string memory_section(const RunRecords& runs);   // shows the memory bill
std::string time_section(const RunRecords& runs);     // shows where the time went
// Shows pictures of the plan and of a step that take at most `most_bytes` together, and says which
// ones are missing.
std::string step_section(const RunRecords& runs, size_t most_bytes);
std::string kernels_section(const RunRecords& runs);   // shows the kernels and their floors
std::string settings_section(const RunRecords& runs);  // shows all settings
std::string warnings_section(const RunRecords& runs);

// These texts are the style sheet and the script of the page.
extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace nacre
