// A ZIP archive of stored members, each with a ZIP64 extra field so that size does not matter. Values are converted and
// written in pieces; a member's checksum is known only after its bytes, so local headers are written last, in place.
#include "nacre/data/npz_write.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "nacre/base/pending_file.h"

namespace nacre {
namespace {

void put(std::string& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

struct Member {
  std::string name;
  uint32_t crc = 0;
  int64_t offset = 0;  // of the local header
  int64_t size = 0;
};

constexpr uint32_t kSeeZip64 = 0xFFFFFFFF;
constexpr int kVersion = 45;  // the first with ZIP64

// Local headers hold (uncompressed, compressed) sizes in the extra field; central ones also the offset.
std::string zip_header(const Member& m, bool central) {
  std::string h;
  put(h, central ? 0x02014b50 : 0x04034b50, 4);
  if (central) put(h, kVersion, 2);
  put(h, kVersion, 2);
  put(h, 0, 2 + 2 + 2);     // flags, method stored, time
  put(h, (1 << 5) + 1, 2);  // 1980-01-01: the same bytes whenever written
  put(h, m.crc, 4);
  put(h, kSeeZip64, 4);
  put(h, kSeeZip64, 4);
  put(h, m.name.size(), 2);
  put(h, central ? 28 : 20, 2);
  if (central) {
    h.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
    put(h, kSeeZip64, 4);
  }
  h += m.name;
  put(h, 1, 2);
  put(h, central ? 24 : 16, 2);
  put(h, static_cast<uint64_t>(m.size), 8);
  put(h, static_cast<uint64_t>(m.size), 8);
  if (central) put(h, static_cast<uint64_t>(m.offset), 8);
  return h;
}

std::string npy_header(const char* descr, const Shape& shape) {
  std::string dims;
  for (const int64_t d : shape) dims += std::to_string(d) + ",";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
  text.resize((text.size() + 1 + 10 + 63) / 64 * 64 - 10 - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  put(header, text.size(), 2);
  return header + text;
}

class NpzWriter {
 public:
  explicit NpzWriter(const std::string& path) : file_(path) {}

  // Writes value(i) for i in [0, count) as elements of T.
  template <class T, class Value>
  void add(const std::string& key, const char* descr, const Shape& shape, Value value) {
    Member m{key + ".npy"};
    m.offset = end_;
    end_ += static_cast<int64_t>(zip_header(m, false).size());
    append(m, npy_header(descr, shape));
    const int64_t count = num_elements(shape);
    std::vector<T> piece;
    for (int64_t b = 0; b < count; b += 1 << 20) {
      const int64_t e = std::min<int64_t>(count, b + (1 << 20));
      piece.clear();
      for (int64_t i = b; i < e; ++i) piece.push_back(static_cast<T>(value(i)));
      append(m, {reinterpret_cast<const char*>(piece.data()), piece.size() * sizeof(T)});
    }
    const std::string header = zip_header(m, false);
    file_.write_at(m.offset, header.data(), static_cast<int64_t>(header.size()));
    members_.push_back(std::move(m));
  }

  void finish() {
    std::string tail;
    for (const Member& m : members_) tail += zip_header(m, true);
    const uint64_t directory = tail.size();
    const auto directory_at = static_cast<uint64_t>(end_);
    put(tail, 0x06064b50, 4);  // ZIP64 end of central directory
    put(tail, 44, 8);
    put(tail, kVersion, 2);
    put(tail, kVersion, 2);
    put(tail, 0, 4 + 4);
    put(tail, members_.size(), 8);
    put(tail, members_.size(), 8);
    put(tail, directory, 8);
    put(tail, directory_at, 8);
    put(tail, 0x07064b50, 4);  // its locator
    put(tail, 0, 4);
    put(tail, directory_at + directory, 8);
    put(tail, 1, 4);
    put(tail, 0x06054b50, 4);  // end of central directory
    put(tail, 0, 2 + 2);
    put(tail, 0xFFFF, 2);
    put(tail, 0xFFFF, 2);
    put(tail, kSeeZip64, 4);
    put(tail, kSeeZip64, 4);
    put(tail, 0, 2);
    file_.write_at(end_, tail.data(), static_cast<int64_t>(tail.size()));
    file_.commit();
  }

 private:
  void append(Member& m, std::string_view bytes) {
    m.crc = static_cast<uint32_t>(crc32_z(m.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
    m.size += static_cast<int64_t>(bytes.size());
    file_.write_at(end_, bytes.data(), static_cast<int64_t>(bytes.size()));
    end_ += static_cast<int64_t>(bytes.size());
  }

  PendingFile file_;
  int64_t end_ = 0;
  std::vector<Member> members_;
};

}  // namespace

void write_npz(const Dataset& d, const std::string& path) {
  NpzWriter out(path);
  const Graph& g = d.graph;
  const int64_t edges = g.num_edges();
  const Array<NodeId>& dst = g.edge_dst();
  out.add<int64_t>("num_nodes", "<i8", {}, [&](int64_t) { return d.num_nodes(); });
  out.add<int64_t>("edge_index", "<i8", {2, edges},
                   [&](int64_t i) { return i < edges ? g.col_idx()[i] : dst[i - edges]; });
  if (g.weighted()) out.add<float>("edge_weight", "<f4", {edges}, [&](int64_t i) { return g.edge_weight()[i]; });
  if (g.typed()) out.add<int64_t>("edge_type", "<i8", {edges}, [&](int64_t i) { return g.edge_type()[i]; });
  if (d.features.defined()) {
    out.add<float>("x", "<f4", d.features.shape(), [x = d.features.data<float>()](int64_t i) { return x[i]; });
  }
  if (d.multilabel()) {
    out.add<uint8_t>("y", "|u1", d.targets.shape(), [t = d.targets.data<uint8_t>()](int64_t i) { return t[i]; });
  } else if (!d.labels.empty()) {
    out.add<int64_t>("y", "<i8", {d.num_nodes()}, [&](int64_t i) { return d.labels[i]; });
  }
  const auto split = [&](const char* key, const Array<NodeId>& nodes) {
    if (!nodes.empty()) out.add<int64_t>(key, "<i8", {nodes.size()}, [&](int64_t i) { return nodes[i]; });
  };
  split("train_idx", d.splits.train);
  split("val_idx", d.splits.val);
  split("test_idx", d.splits.test);
  out.finish();
}

}  // namespace nacre
