#include "nacre/report/svg_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/printable.h"

namespace nacre {
namespace {

constexpr double kGapX = 24, kGapY = 34;
constexpr size_t kLetters = 27;       // about the number of letters that fit into a box
constexpr int64_t kColours = 8;       // number of the colour classes c0 to c7 in style.cpp
constexpr double kHighOnPage = 1500;  // a higher picture is printed over several pages

// Returns the text if it fits into a box; otherwise its beginning and "…".
std::string shortened(const std::string& text) {
  if (text.size() <= kLetters) return text;
  size_t end = kLetters - 1;
  // Do not cut inside a character of several bytes.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

// Returns the path of a line between two boxes. If they are in one column and no neighbours, the
// line passes beside the boxes between them.
std::string line_between(const Spot& from, const Spot& to) {
  const double x1 = from.x + kBoxWidth / 2, y1 = from.y + kBoxHeight, x2 = to.x + kBoxWidth / 2, y2 = to.y;
  const double bend = (y2 - y1) / 2;
  const double aside = x1 == x2 && y2 - y1 > kGapY ? 0.75 * kBoxWidth : 0;
  return fmt::format("M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}", x1, y1, x1 + aside, y1 + bend,
                     x2 + aside, y2 - bend, x2, y2);
}

}  // namespace

Spot spot_at(size_t column, size_t row) {
  return {kMargin + static_cast<double>(column) * (kBoxWidth + kGapX),
          kMargin + static_cast<double>(row) * (kBoxHeight + kGapY)};
}

std::string text_svg(double x, double y, const std::string& text, const char* more) {
  return fmt::format(R"(<text x="{:.0f}" y="{:.0f}" {}>{}</text>)", x, y, more, xml_text(printable(text)));
}

std::string box_svg(const Box& box) {
  const Spot& at = box.at;
  std::string svg =
      fmt::format(R"(<g><title>{}</title><rect class="box{}" x="{:.0f}" y="{:.0f}" width="{}" height="{}"/>)",
                  xml_text(printable(box.words)), box.once ? " once" : "", at.x, at.y, kBoxWidth, kBoxHeight);
  if (box.kernel >= 0) {
    svg += fmt::format(R"(<rect class="own c{}" x="{:.0f}" y="{:.0f}" width="6" height="{}"/>)", box.kernel % kColours,
                       at.x, at.y, kBoxHeight);
  }
  return svg + text_svg(at.x + 12, at.y + 17, shortened(box.lines[0])) +
         text_svg(at.x + 12, at.y + 33, shortened(box.lines[1]), R"(class="mark")") + "</g>";
}

std::string links_svg(const std::vector<Link>& links, const std::vector<Spot>& spots) {
  std::string svg;
  for (const Link& link : links)
    svg += fmt::format(R"(<path class="link" d="{}"/>)", line_between(spots[link.from], spots[link.to]));
  return svg;
}

std::string drawing_figure(const Drawing& d) {
  return fmt::format(
      R"(<figure class="picture"><figcaption>{0}</figcaption><p class="note">{1}</p>
<div class="scroll" tabindex="0" role="region" aria-label="{0}"><svg{6} viewBox="0 0 {2:.0f} {3:.0f}" style="width:{2:.0f}px" role="img" aria-label="{4}">{5}</svg></div>{7}</figure>
)",
      xml_text(printable(d.title)), d.note, d.width, d.height, xml_text(printable(d.words)), d.svg,
      d.height <= kHighOnPage ? R"( class="page")" : "", d.below);
}

std::string boxes_figure(Drawing drawing, const std::vector<Box>& boxes, const std::vector<Link>& links) {
  std::vector<Spot> spots;
  std::string svg;
  for (const Box& box : boxes) {
    spots.push_back(box.at);
    svg += box_svg(box);
    drawing.width = std::max(drawing.width, box.at.x + kBoxWidth + kGapX + kMargin);
    drawing.height = std::max(drawing.height, box.at.y + kBoxHeight + kMargin);
  }
  drawing.svg = links_svg(links, spots) + svg;
  return drawing_figure(drawing);
}

}  // namespace nacre
