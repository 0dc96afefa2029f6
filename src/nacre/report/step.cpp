// Makes the section with the pictures of a plan and of a step.
#include <fmt/format.h>

#include <algorithm>

#include "nacre/report/plan_pictures.h"
#include "nacre/report/sections.h"

namespace nacre {
namespace {

struct Drawer {
  const char* name;
  Picture (*draw)(const RunRecord& run);
};
constexpr Drawer kDrawers[] = {
    {"the timeline of a step", step_timeline},
    {"the partition", partition_picture},
    {"the graph of the kernels", kernel_graph},
    {"the operations (DFG)", dfg_picture},
};

// Returns the HTML of a note below the pictures of a run.
std::string note(const std::string& text) { return "<p class=\"note\">" + html_text(text) + "</p>\n"; }

// Returns the HTML of the pictures of a run that fit into `most_bytes` bytes together, and of notes
// that say which ones are missing. `alone` says that the page reports on this run only.
std::string pictures_of(const RunRecord& run, size_t most_bytes, bool alone) {
  std::string html, notes, left_out;
  for (const Drawer& drawer : kDrawers) {
    const Picture picture = drawer.draw(run);
    if (!picture.missing.empty()) notes += note(picture.missing);
    if (html.size() + picture.html.size() <= most_bytes) {
      html += picture.html;
    } else {
      left_out += (left_out.empty() ? "" : ", ") + std::string(drawer.name);
    }
  }
  if (!left_out.empty()) {
    notes += note(fmt::format("Left out, because the page would become too large: {}. {}", left_out,
                              alone ? "nacre explain --run " + run.folder + " shows the plan as text."
                                    : "The page of this run alone may have room: nacre report " + run.folder + "."));
  }
  return html + notes;
}

}  // namespace

std::string step_section(const RunRecords& runs, size_t most_bytes) {
  std::string html;
  for (size_t r = 0; r < runs.size(); ++r) {
    // Runs share the remaining bytes evenly. Bytes that a run does not need are left for the runs
    // after it.
    const size_t room = (most_bytes - std::min(most_bytes, html.size())) / (runs.size() - r);
    const std::string pictures = pictures_of(runs[r], room, runs.size() == 1);
    if (pictures.empty()) continue;
    // The pictures of a run that is compared with others are folded away, because they are large.
    html += runs.size() == 1
                ? pictures
                : fmt::format("<details><summary>{}</summary>{}</details>\n", html_text(runs[r].name), pictures);
  }
  return html;
}

}  // namespace nacre
