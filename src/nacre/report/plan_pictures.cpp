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

std::string text_of(double x, double y, const std::string& text, const char* more = "") {
  return fmt::format(R"(<text x="{:.0f}" y="{:.0f}" {}>{}</text>)", x, y, more, xml_text(printable(text)));
}

// ---- the graph of the kernels

constexpr double kBox = 190, kBoxHeight = 40, kGapX = 24, kGapY = 34, kMargin = 8;

struct Link {
  size_t from, to;
};

// Links each kernel to the kernels that have last written the values that it reads.
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

struct Spot {
  double x = 0, y = 0;
};

// Puts every kernel below all kernels that it reads from.
std::vector<Spot> layout(size_t count, const std::vector<Link>& links) {
  std::vector<size_t> row(count, 0);
  for (const Link& link : links) row[link.to] = std::max(row[link.to], row[link.from] + 1);
  std::vector<size_t> used(count + 1, 0);
  std::vector<Spot> spots(count);
  for (size_t k = 0; k < count; ++k) {
    spots[k] = {kMargin + static_cast<double>(used[row[k]]++) * (kBox + kGapX),
                kMargin + static_cast<double>(row[k]) * (kBoxHeight + kGapY)};
  }
  return spots;
}

std::string box(const KernelRecord& kernel, const Spot& at) {
  const std::string time = kernel.ms >= 0 ? ", " + human_seconds(kernel.ms / 1e3) : "";
  return fmt::format(R"(<g><title>{}</title><rect class="box{}" x="{:.0f}" y="{:.0f}" width="{}" height="{}" rx="4"/>)",
                     xml_text(printable(fmt::format("kernel {} by {}{}", name_of(kernel), kernel.kind, time))),
                     kernel.once ? " once" : "", at.x, at.y, kBox, kBoxHeight) +
         text_of(at.x + 8, at.y + 17, name_of(kernel)) + text_of(at.x + 8, at.y + 33, kernel.kind, R"(class="mark")") +
         "</g>";
}

std::string arrow(const Spot& from, const Spot& to) {
  const double x1 = from.x + kBox / 2, y1 = from.y + kBoxHeight, x2 = to.x + kBox / 2, y2 = to.y;
  const double bend = (y2 - y1) / 2;
  return fmt::format(R"(<path class="link" d="M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}"/>)", x1, y1, x1,
                     y1 + bend, x2, y2 - bend, x2, y2);
}

std::string figure(const std::string& title, const std::string& words, double width, double height,
                   const std::string& svg, const char* note) {
  return fmt::format(
      R"(<figure class="picture"><figcaption>{0}</figcaption><p class="note">{1}</p>
<div class="scroll" tabindex="0" role="region" aria-label="{0}"><svg viewBox="0 0 {2:.0f} {3:.0f}" style="width:{2:.0f}px" role="img" aria-label="{4}">{5}</svg></div></figure>
)",
      xml_text(printable(title)), note, width, height, xml_text(printable(words)), svg);
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

}  // namespace

std::string kernel_graph(const RunRecord& run) {
  if (run.kernels.empty() || run.kernels.size() > kMostDrawn) return "";
  const std::vector<Link> links = links_of(run.kernels);
  const std::vector<Spot> spots = layout(run.kernels.size(), links);
  std::string svg;
  double width = 0, height = 0;
  for (const Link& link : links) svg += arrow(spots[link.from], spots[link.to]);
  for (size_t k = 0; k < spots.size(); ++k) {
    svg += box(run.kernels[k], spots[k]);
    width = std::max(width, spots[k].x + kBox + kMargin);
    height = std::max(height, spots[k].y + kBoxHeight + kMargin);
  }
  const std::string words =
      fmt::format("{} kernels and {} values that one has written and another one reads; the table lists the kernels",
                  run.kernels.size(), links.size());
  return figure(run.name + ": the kernels of a step and what they read", words, width, height, svg,
                "A line leads from a kernel to those that read its results. Kernels in dashed boxes run once, before "
                "training.");
}

std::string step_timeline(const RunRecord& run) {
  const std::vector<KernelRecord> kernels = timed(run);
  if (kernels.empty() || kernels.size() > kMostDrawn) return "";
  double whole = 0, floor = 0;
  for (const KernelRecord& kernel : kernels) {
    whole += kernel.ms;
    floor += std::max(0.0, kernel.floor_ms);
  }
  if (!(whole > 0)) return "";
  std::string svg;
  double begin = 0;
  const double per_ms = kTimes / whole;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const KernelRecord& kernel = kernels[k];
    const double y = kMargin + static_cast<double>(k) * kRow;
    const double x = kLabels + begin * per_ms;
    svg += text_of(kLabels - 8, y + 14, name_of(kernel), R"(class="mark" text-anchor="end")");
    svg += fmt::format(R"(<g><title>{}</title><rect class="time" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="14"/>)",
                       xml_text(printable(fmt::format("{}: {}", name_of(kernel), human_seconds(kernel.ms / 1e3)))), x,
                       y + 3, std::max(1.0, kernel.ms * per_ms));
    if (kernel.floor_ms > 0)
      svg += fmt::format(R"(<rect class="floor" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="6"/>)", x, y + 7,
                         std::min(kernel.floor_ms, kernel.ms) * per_ms);
    svg += "</g>" + text_of(x + std::max(1.0, kernel.ms * per_ms) + 5, y + 14, human_seconds(kernel.ms / 1e3),
                            R"(class="mark")");
    begin += kernel.ms;
  }
  std::string words = fmt::format("{} kernels in {}", kernels.size(), human_seconds(whole / 1e3));
  if (floor > 0) words += fmt::format("; the sum of their floors is {}", human_seconds(floor / 1e3));
  return figure(
      run.name + ": timeline of a step, " + words, words + "; the table of kernels has the figures",
      kLabels + kTimes + kFigures, 2 * kMargin + static_cast<double>(kernels.size()) * kRow, svg,
      "The mean time of each kernel, in the order in which they run. The dark part of a bar is the least time "
      "that the kernel would need by the measured rates of this machine, where these are known.");
}

std::string partition_picture(const RunRecord& run) {
  if (run.partition_svg.empty()) return "";
  return fmt::format(
      R"(<figure class="picture"><figcaption>{0}: the partition of the first nodes</figcaption><p class="note">Every dot is an edge between two of the first nodes, in the colour of its gTask. A row is a destination, a column a source.</p><img alt="Adjacency matrix of the first nodes of {0}, each edge in the colour of its gTask" src="data:image/svg+xml,{1}"></figure>
)",
      xml_text(printable(run.name)), percent_encoded(run.partition_svg));
}

}  // namespace nacre
