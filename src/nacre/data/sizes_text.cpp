#include <algorithm>
#include <string>

#include "nacre/base/error.h"
#include "nacre/data/byte_stream.h"
#include "nacre/data/sizes_parts.h"

namespace nacre {
namespace {

// Number of bytes at the beginning of a file that are looked at.
constexpr int64_t kLookedAt = 256 << 10;
// The columns of an edge list may grow by doubling. Then the old and the new memory exist at the
// same time: three times what is needed.
constexpr int64_t kGrowing = 3;
// Text is read in blocks of this size, and one block is parsed while its text is held.
constexpr int64_t kTextBlock = int64_t{16} << 20;
constexpr int64_t kBlockCopies = 3;
// Bytes for the id of a node in a file whose ids are renumbered: the id, a bucket of the hash
// table, and copies while ids are sorted.
constexpr int64_t kIdBytes = 48;
// Bytes for the name of a node in a file that names nodes by words: the word, what refers to it,
// and the hash table.
constexpr int64_t kWordBytes = 128;

// The beginning of a text. The whole text is `share` times as long.
struct Head {
  std::string text;
  double share = 0;
};

Head plain_head(const MappedFile& file) {
  const auto looked = static_cast<size_t>(std::min(file.size(), kLookedAt));
  Head head{std::string(reinterpret_cast<const char*>(file.bytes().data()), looked), 0};
  if (looked > 0) head.share = static_cast<double>(file.size()) / static_cast<double>(looked);
  return head;
}

// Returns the beginning of a gzipped text, unpacked from the first kLookedAt bytes of the file. If
// the file is longer, its stream ends with an error, which is ignored.
Head packed_head(const MappedFile& file) {
  const int64_t looked = std::min(file.size(), kLookedAt);
  Head head;
  try {
    const auto stream = inflate_stream(file.bytes().first(static_cast<size_t>(looked)), Wrapping::gzip, file.name());
    std::string piece(4096, '\0');
    for (int64_t got = 1; got > 0;) {
      got = stream->read(piece.data(), static_cast<int64_t>(piece.size()));
      head.text.append(piece.data(), static_cast<size_t>(got));
    }
  } catch (const UserError&) {
    if (looked == file.size()) throw;
  }
  head.share = static_cast<double>(file.size()) / static_cast<double>(std::max<int64_t>(1, looked));
  return head;
}

}  // namespace

TextGuess guess_text(const std::shared_ptr<const MappedFile>& file) {
  const Head head = file->starts_with("\x1f\x8b") ? packed_head(*file) : plain_head(*file);
  int64_t lines = 0, values = 0;
  bool inside = false;
  for (const char c : head.text) {
    lines += c == '\n' ? 1 : 0;
    const bool value = c != '\n' && c != ' ' && c != '\t' && c != ',' && c != ';' && c != '\r';
    values += value && !inside ? 1 : 0;
    inside = value;
  }
  lines = std::max<int64_t>(1, lines);
  return {static_cast<int64_t>(head.share * static_cast<double>(lines)) + 1, (values + lines - 1) / lines,
          static_cast<int64_t>(head.share * static_cast<double>(head.text.size()))};
}

DataSizes edge_text_sizes(std::string_view format, const std::shared_ptr<const MappedFile>& file,
                          const LoadOptions& options) {
  const TextGuess text = guess_text(file);
  const bool words = format == "names" || (format == "edges" && has_word_ids(file));
  DataSizes s;
  s.exact = false;
  s.graph.edges = text.lines;
  s.graph.weighted = text.columns > 2 && format != "snap";
  s.graph.typed = text.columns > 3 && format != "snap" && format != "mtx";
  s.graph.nodes = options.num_nodes > 0 ? options.num_nodes : std::min<int64_t>(text.lines, INT64_C(0xFFFFFFFF));
  if (words) s.label_bytes = s.graph.nodes * kWordBytes / 2;
  if (format == "snap") s.label_bytes = s.graph.nodes * 8;
  const int64_t columns = 8 + (s.graph.weighted ? 4 : 0) + (s.graph.typed ? 2 : 0);
  const int64_t ids = words ? s.graph.nodes * kWordBytes : format == "snap" ? s.graph.nodes * kIdBytes : 0;
  const int64_t parsed = kBlockCopies * std::min(text.bytes, kTextBlock);
  s.reading = file->size() + ids + std::max(build_graph_bytes(s.graph), s.graph.edges * columns * kGrowing + parsed);
  complete_sizes(s, file->size());
  return s;
}

}  // namespace nacre
