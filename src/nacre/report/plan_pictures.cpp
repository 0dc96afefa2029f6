#include "nacre/report/plan_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "nacre/base/log.h"
#include "nacre/base/printable.h"

namespace nacre {
namespace {

constexpr size_t kMostDrawn = 300;

std::string name_of(const KernelRecord& kernel) { return fmt::format("{} {}", kernel.index, kernel.operation); }

// Returns the sentence for a run with too many kernels for a picture; empty if there are few.
std::string too_many(const RunRecord& run, const char* picture) {
  if (run.kernels.size() <= kMostDrawn) return "";
  return fmt::format("There is no {}, because the plan has more than {} kernels; nacre explain --run {} lists them.",
                     picture, kMostDrawn, run.folder);
}

// ---- the graph of the kernels

// Returns links to each kernel from the kernels that have last written the values that it reads.
std::vector<Link> links_of(const std::vector<KernelRecord>& kernels) {
  std::vector<Link> links;
  std::map<int64_t, size_t> writer;
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::vector<size_t> sources;
    for (const int64_t value : kernels[k].reads) {
      const auto found = writer.find(value);
      if (found == writer.end()) continue;
      if (std::find(sources.begin(), sources.end(), found->second) == sources.end()) sources.push_back(found->second);
    }
    for (const size_t source : sources) links.push_back({source, k});
    for (const int64_t value : kernels[k].writes) writer[value] = k;
  }
  return links;
}

// Returns the place of every kernel: below all kernels that it reads from.
std::vector<Spot> layout(size_t count, const std::vector<Link>& links) {
  std::vector<size_t> row(count, 0);
  for (const Link& link : links) row[link.to] = std::max(row[link.to], row[link.from] + 1);
  std::vector<size_t> used(count + 1, 0);
  std::vector<Spot> spots;
  spots.reserve(count);
  for (const size_t r : row) spots.push_back(spot_at(used[r]++, r));
  return spots;
}

Box box_of(const KernelRecord& kernel, const Spot& at) {
  const std::string time = kernel.ms >= 0 ? ", " + human_seconds(kernel.ms / 1e3) : "";
  return {at,
          fmt::format("kernel {} by {}{}", name_of(kernel), kernel.kind, time),
          {name_of(kernel), kernel.kind},
          kernel.index,
          kernel.once};
}

// ---- the timeline

constexpr double kLabels = 210, kRow = 20, kTimes = 560, kFigures = 90;

std::vector<KernelRecord> timed(const RunRecord& run) {
  std::vector<KernelRecord> kernels;
  std::copy_if(run.kernels.begin(), run.kernels.end(), std::back_inserter(kernels),
               [](const KernelRecord& kernel) { return kernel.ms >= 0 && !kernel.once; });
  return kernels;
}

std::string percent_encoded(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string("-_.~ =;,()").find(c) != std::string::npos;
    text += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

// Says why a run has no timeline.
std::string untimed(const RunRecord& run) {
  if (run.kernels.empty()) return "There are no pictures of a step, because the run folder has no plan.json.";
  const char* why = run.results.empty()
                        ? "result.json is missing, where a run writes the times of its kernels when it ends"
                        : "kernels are timed only in runs that train a node classifier on the whole graph on one CPU";
  return fmt::format(
      "There is no timeline of a step, because {}. To see when each part of another run works, add --trace FILE to "
      "nacre train and open the file in Perfetto (ui.perfetto.dev).",
      why);
}

// Returns the SVG of a kernel's row in the timeline. The kernel starts `begin` milliseconds after
// the step.
std::string timeline_row(const KernelRecord& kernel, double begin, double y, double per_ms) {
  const double x = kLabels + begin * per_ms, width = std::max(1.0, kernel.ms * per_ms);
  const std::string time = human_seconds(kernel.ms / 1e3);
  std::string words = fmt::format("{}: {}", name_of(kernel), time);
  if (kernel.floor_ms >= 0) words += fmt::format(", at least {}", human_seconds(kernel.floor_ms / 1e3));
  std::string svg = text_svg(kLabels - 8, y + 14, name_of(kernel), R"(class="mark" text-anchor="end")");
  svg += fmt::format(R"(<g><title>{}</title><rect class="time" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="14"/>)",
                     xml_text(printable(words)), x, y + 3, width);
  if (kernel.floor_ms > 0)
    svg += fmt::format(R"(<rect class="floor" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="6"/>)", x, y + 7,
                       std::min(kernel.floor_ms, kernel.ms) * per_ms);
  return svg + "</g>" + text_svg(x + width + 5, y + 14, time, R"(class="mark")");
}

}  // namespace

Picture kernel_graph(const RunRecord& run) {
  if (const std::string why = too_many(run, "graph of the kernels"); !why.empty()) return {"", why};
  if (run.kernels.empty()) return {};
  const std::vector<Link> links = links_of(run.kernels);
  const std::vector<Spot> spots = layout(run.kernels.size(), links);
  std::vector<Box> boxes;
  for (size_t k = 0; k < spots.size(); ++k) boxes.push_back(box_of(run.kernels[k], spots[k]));
  Drawing drawing;
  drawing.title = run.name + ": the kernels of a step and what they read";
  drawing.note =
      "A line leads from a kernel to those that read its results. Kernels in dashed boxes run once, before training. "
      "The strip at the left of a box has the colour of the kernel, one of eight that take turns.";
  drawing.words =
      fmt::format("{} kernels and {} values that one has written and another one reads; the table lists the kernels",
                  run.kernels.size(), links.size());
  return {boxes_figure(drawing, boxes, links), ""};
}

Picture step_timeline(const RunRecord& run) {
  if (const std::string why = too_many(run, "timeline of a step"); !why.empty()) return {"", why};
  const std::vector<KernelRecord> kernels = timed(run);
  double whole = 0, floor = 0;
  for (const KernelRecord& kernel : kernels) {
    whole += kernel.ms;
    floor += std::max(0.0, kernel.floor_ms);
  }
  if (!(whole > 0)) return {"", untimed(run)};
  Drawing drawing;
  double begin = 0;
  for (size_t k = 0; k < kernels.size(); ++k) {
    drawing.svg += timeline_row(kernels[k], begin, kMargin + static_cast<double>(k) * kRow, kTimes / whole);
    begin += kernels[k].ms;
  }
  std::string words = fmt::format("{} kernels in {}", kernels.size(), human_seconds(whole / 1e3));
  if (floor > 0) words += fmt::format("; the sum of their floors is {}", human_seconds(floor / 1e3));
  drawing.title = run.name + ": timeline of a step, " + words;
  drawing.note =
      "The mean time of each kernel, in the order in which they run. The dark part of a bar is the least time that "
      "the kernel would need by the measured rates of this machine, where these are known.";
  drawing.words = words + "; the table of kernels has the figures";
  drawing.width = kLabels + kTimes + kFigures;
  drawing.height = 2 * kMargin + static_cast<double>(kernels.size()) * kRow;
  return {drawing_figure(drawing), ""};
}

Picture partition_picture(const RunRecord& run) {
  if (run.partition_svg.empty()) return {};
  return {
      fmt::format(
          R"(<figure class="picture"><figcaption>{0}: the partition of the first nodes</figcaption><p class="note">Every dot is an edge between two of the first nodes, in the colour of its gTask. A row is a destination, a column a source.</p><img alt="Adjacency matrix of the first nodes of {0}, each edge in the colour of its gTask" src="data:image/svg+xml,{1}"></figure>
)",
          xml_text(printable(run.name)), percent_encoded(run.partition_svg)),
      ""};
}

}  // namespace nacre
