#include "nacre/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "nacre/report/sections.h"

namespace nacre {
namespace {

struct Section {
  const char* id;
  const char* title;
  std::string (*html)(const RunRecords& runs);
};

// Largest number of bytes that the frame of the page and the notes on missing pictures take, about.
constexpr size_t kMostFrameBytes = 40'000;

constexpr Section kSections[] = {
    {"results", "Results", results_section},
    {"curves", "Curves", curves_section},
    {"time", "Time", time_section},
    {"memory", "Memory", memory_section},
    {"step", "A step", nullptr},  // step_section() takes the room that the others leave
    {"kernels", "Kernels", kernels_section},
    {"epochs", "Epochs", epochs_section},
    {"settings", "Settings", settings_section},
    {"warnings", "Warnings", warnings_section},
};

// Returns the HTML of every section. The HTML of a section that has nothing to show is empty.
std::vector<std::string> sections_of(const RunRecords& runs) {
  std::vector<std::string> all;
  size_t bytes = std::string_view(kReportStyle).size() + std::string_view(kReportScript).size() + kMostFrameBytes;
  for (const Section& section : kSections) {
    all.push_back(section.html != nullptr ? section.html(runs) : "");
    bytes += all.back().size();
  }
  for (size_t s = 0; s < all.size(); ++s) {
    if (kSections[s].html == nullptr) all[s] = step_section(runs, kMostPageBytes - std::min(kMostPageBytes, bytes));
  }
  return all;
}

std::string title_of(const RunRecords& runs) {
  std::string names;
  for (const RunRecord& run : runs) names += (names.empty() ? "" : ", ") + run.name;
  return names;
}

}  // namespace

std::string report_page(const std::vector<RunRecord>& runs) {
  std::string contents, body;
  const std::vector<std::string> sections = sections_of(runs);
  for (size_t s = 0; s < sections.size(); ++s) {
    const Section& section = kSections[s];
    if (sections[s].empty()) continue;
    contents += fmt::format("<li><a href=\"#{}\">{}</a></li>", section.id, section.title);
    body += fmt::format("<section aria-labelledby=\"{0}\"><h2 id=\"{0}\">{1}</h2>\n{2}</section>\n", section.id,
                        section.title, sections[s]);
  }
  const std::string title = html_text(title_of(runs));
  return fmt::format(
      R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{0} – Nacre report</title>
<style>{1}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the results</a>
<header><h1>{0}</h1><nav aria-label="Sections"><ul>{2}</ul></nav></header>
<main id="main">
{3}</main>
<script>{4}</script>
</body>
</html>
)",
      title, kReportStyle, contents, body, kReportScript);
}

}  // namespace nacre
