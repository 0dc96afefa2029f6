#include "nacre/data/convert/progress.h"

#include <fmt/format.h>

#include <istream>
#include <sstream>

namespace nacre {
namespace {

using native::SectionEntry;

std::string hex_of(const SectionEntry& entry) {
  std::string text;
  for (size_t i = 0; i < sizeof(entry); ++i) {
    text += fmt::format("{:02x}", reinterpret_cast<const unsigned char*>(&entry)[i]);
  }
  return text;
}

bool from_hex(const std::string& text, SectionEntry& entry) {
  if (text.size() != 2 * sizeof(entry)) return false;
  for (size_t i = 0; i < sizeof(entry); ++i) {
    reinterpret_cast<unsigned char*>(&entry)[i] =
        static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return true;
}

std::istream& operator>>(std::istream& in, Progressed& p) {
  return in >> p.block >> p.consumed >> p.edges >> p.largest_id >> p.largest_type;
}

std::string text_of(const Progressed& p) {
  return fmt::format("{} {} {} {} {}", p.block, p.consumed, p.edges, p.largest_id, p.largest_type);
}

}  // namespace

Earlier read_earlier(const std::vector<std::string>& entries) {
  Earlier earlier;
  for (const std::string& entry : entries) {
    std::istringstream in(entry);
    std::string kind;
    in >> kind;
    if (kind == "run") {
      SortedRun run;
      Progressed at;
      if (in >> run.offset >> run.count >> run.checksum >> at) earlier.runs.emplace_back(run, at);
    } else if (kind == "section") {
      std::string hex;
      SectionEntry section;
      if (!(in >> hex) || !from_hex(hex, section)) continue;
      (earlier.graph_done ? earlier.features : earlier.graph).push_back(section);
      earlier.feature_rows = 0;
    } else if (kind == "graph") {
      MergeResult& m = earlier.merged;
      earlier.graph_done = !!(in >> m.edges >> m.loops_added >> m.unused >> earlier.source);
    } else if (kind == "rows") {
      in >> earlier.feature_rows >> earlier.feature_checksum;
    }
  }
  return earlier;
}

std::string run_entry(const SortedRun& run, const Progressed& at) {
  return fmt::format("run {} {} {} {}", run.offset, run.count, run.checksum, text_of(at));
}

std::string section_entry(const SectionEntry& section) { return "section " + hex_of(section); }

std::string graph_entry(const MergeResult& merged, const Progressed& at) {
  return fmt::format("graph {} {} {} {}", merged.edges, merged.loops_added, merged.unused, text_of(at));
}

std::string rows_entry(int64_t rows, uint64_t checksum) { return fmt::format("rows {} {}", rows, checksum); }

}  // namespace nacre
