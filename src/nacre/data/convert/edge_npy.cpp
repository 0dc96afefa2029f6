#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/data/byte_stream.h"
#include "nacre/data/convert/edge_source.h"
#include "nacre/data/convert/pages.h"
#include "nacre/data/native_floats.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npy_header.h"

namespace nacre {
namespace {

constexpr int64_t kPart = 1 << 16;
constexpr int64_t kPartsInBlock = 16;

// Edges in an array whose bytes are mapped or come out of a stream.
class EdgeNpy : public EdgeSource {
 public:
  EdgeNpy(NpyHeader header, std::string where, PairLayout layout)
      : header_(std::move(header)), where_(std::move(where)) {
    const Shape& shape = header_.shape;
    const bool two_rows = shape.size() == 2 && shape[0] == 2 && layout != PairLayout::two_columns;
    const bool tall = shape.size() == 2 && shape[1] == 2 && layout != PairLayout::two_rows;
    if (!two_rows && !tall) {
      const char* expected = layout == PairLayout::guess         ? "[2, E] or [E, 2]"
                             : layout == PairLayout::two_columns ? "[E, 2]"
                                                                 : "[2, E]";
      throw UserError(where_ + " at byte 0", "has shape " + shape_text(shape) + "; edges are " + expected,
                      "for features use --features beside an edge list");
    }
    if (header_.type.kind == 'b' || (header_.type.kind == 'f' && layout == PairLayout::guess)) {
      throw UserError(where_ + " at byte 0", "holds " + npy_type_name(header_.type) + "; node ids are whole numbers",
                      "store int64 or int32");
    }
    edges_ = header_.count / 2;
    const bool apart = two_rows != header_.fortran;  // whether all sources come first
    dst_at_ = apart ? edges_ : 1;
    step_ = apart ? 1 : 2;
    if (two_rows && tall) note_ = "the array is [2, 2]: its first row was read as sources";
    if (!two_rows && layout == PairLayout::guess && shape[0] != 2)
      note_ = "edges have shape [E, 2]: read as one (source, destination) pair per row";
  }

  bool next(std::vector<EdgePart>& parts) override {
    if (at_ == edges_) return false;
    const int64_t count = std::min(edges_ - at_, kPart * kPartsInBlock);
    parts.resize((count + kPart - 1) / kPart);
    fetch(at_, count);
    bad_ = -1;
    parallel_for(count, kPart, [&](int64_t b, int64_t e) { convert(at_ + b, e - b, parts[b / kPart]); });
    if (bad_.load() >= 0) refuse(bad_.load());
    release(at_, count);
    at_ += count;
    return true;
  }
  void skip() override {
    const int64_t count = std::min(edges_ - at_, kPart * kPartsInBlock);
    pass(at_, count);
    at_ += count;
  }
  bool ended() const override { return at_ == edges_; }

  bool weighted() const override { return false; }
  bool typed() const override { return false; }
  int64_t most_edges() const override { return edges_; }
  double total_bytes() const override { return static_cast<double>(header_.data_bytes()); }
  double bytes_done() const override { return static_cast<double>(at_ * 2 * header_.type.size); }
  std::vector<std::string> notes() const override {
    return note_.empty() ? std::vector<std::string>{} : std::vector<std::string>{note_};
  }

 protected:
  // Makes the edges [first, first + count) ready for element().
  virtual void fetch(int64_t first, int64_t count) = 0;
  // Says that the edges [first, first + count) will not be needed again.
  virtual void release(int64_t first, int64_t count) = 0;
  // Skips the edges [first, first + count), which are not needed at all.
  virtual void pass(int64_t first, int64_t count) = 0;
  // Returns the bytes of the element number `index` of the array. fetch() must have been called for
  // its edge.
  virtual const unsigned char* element(int64_t index) const = 0;

  int64_t size_of(int64_t elements) const { return elements * header_.type.size; }

  NpyHeader header_;
  std::string where_;
  int64_t edges_ = 0;
  int64_t dst_at_ = 0;  // distance in elements from a source to its destination
  int64_t step_ = 1;    // distance in elements from a source to the next one

 private:
  template <class T>
  static bool copy_ids(const unsigned char* from, int64_t step, std::vector<NodeId>& to) {
    bool good = true;
    for (size_t i = 0; i < to.size(); ++i) {
      T value;
      std::memcpy(&value, from + static_cast<int64_t>(i) * step * static_cast<int64_t>(sizeof(T)), sizeof(T));
      const auto id =
          static_cast<uint64_t>(static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value));
      good = good && id <= static_cast<uint64_t>(kMaxNodeId);
      to[i] = static_cast<NodeId>(id);
    }
    return good;
  }

  bool copy(int64_t first, int64_t count, std::vector<NodeId>& to) const {
    to.resize(count);
    const unsigned char* from = element(first);
    if ((header_.type.swap && header_.type.size > 1) || header_.type.kind == 'f') return copy_slowly(first, to);
    const bool is_signed = header_.type.kind == 'i';
    switch (header_.type.size) {
      case 1:
        return is_signed ? copy_ids<int8_t>(from, step_, to) : copy_ids<uint8_t>(from, step_, to);
      case 2:
        return is_signed ? copy_ids<int16_t>(from, step_, to) : copy_ids<uint16_t>(from, step_, to);
      case 4:
        return is_signed ? copy_ids<int32_t>(from, step_, to) : copy_ids<uint32_t>(from, step_, to);
      default:
        return is_signed ? copy_ids<int64_t>(from, step_, to) : copy_ids<uint64_t>(from, step_, to);
    }
  }

  bool copy_slowly(int64_t first, std::vector<NodeId>& to) const {
    bool good = true;
    for (size_t i = 0; i < to.size(); ++i) {
      const int64_t id = value_at(first + static_cast<int64_t>(i) * step_);
      good = good && id >= 0 && id <= kMaxNodeId;
      to[i] = static_cast<NodeId>(id);
    }
    return good;
  }

  // Returns the element number `index` as an integer, whatever its type is; copy_ids() is faster.
  // Returns -1, which is no id, for values beyond 63 bits and for floats that are no ids.
  int64_t value_at(int64_t index) const {
    const unsigned char* p = element(index);
    uint64_t value = 0;
    for (int i = 0; i < header_.type.size; ++i) {
      value |= static_cast<uint64_t>(p[header_.type.swap ? header_.type.size - 1 - i : i]) << (8 * i);
    }
    const int unused = 64 - 8 * header_.type.size;
    if (header_.type.kind == 'f') return whole_float(value);
    if (header_.type.kind == 'i') return static_cast<int64_t>(value << unused) >> unused;
    return value >> 63 != 0 ? -1 : static_cast<int64_t>(value);
  }

  int64_t whole_float(uint64_t bits) const {
    const int size = header_.type.size;
    const double value = size == 8   ? std::bit_cast<double>(bits)
                         : size == 4 ? double{std::bit_cast<float>(static_cast<uint32_t>(bits))}
                                     : double{native::widen(native::Element::f16, static_cast<uint16_t>(bits))};
    return value >= 0 && value <= static_cast<double>(kMaxNodeId) && value == std::trunc(value)
               ? static_cast<int64_t>(value)
               : -1;
  }

  void convert(int64_t first, int64_t count, EdgePart& part) {
    const bool good = copy(first * step_, count, part.src) && copy(first * step_ + dst_at_, count, part.dst);
    if (!good) bad_ = first;
  }

  [[noreturn]] void refuse(int64_t first) const {
    for (int64_t i = at_;; ++i) {
      NACRE_CHECK(i < edges_ && first >= 0, "reading reported an invalid id, but none was found");
      for (const int64_t index : {i * step_, i * step_ + dst_at_}) {
        const int64_t id = value_at(index);
        if (id >= 0 && id <= kMaxNodeId) continue;
        throw UserError(where_ + " at byte " + std::to_string(header_.data_offset + size_of(index)),
                        "edge " + human_count(i) + " names node " + std::to_string(id) + ", which is not a node id",
                        "ids are 0 to 4,294,967,294");
      }
    }
  }

  int64_t at_ = 0;
  std::atomic<int64_t> bad_{-1};
  std::string note_;
};

class MappedEdges final : public EdgeNpy {
 public:
  MappedEdges(const std::shared_ptr<const MappedFile>& file, PairLayout layout)
      : EdgeNpy(read_npy_header(*memory_stream(file->bytes()), file->size(), file->name()), file->name(), layout),
        file_(file) {}

 private:
  void fetch(int64_t, int64_t) override {}
  void pass(int64_t, int64_t) override {}
  void release(int64_t first, int64_t count) override {
    const int64_t bytes = size_of(count * step_);
    drop_pages(*file_, element(first * step_), bytes);
    if (step_ == 1) drop_pages(*file_, element(first + dst_at_), bytes);
  }
  const unsigned char* element(int64_t index) const override {
    return reinterpret_cast<const unsigned char*>(file_->bytes().data()) + header_.data_offset + size_of(index);
  }

  std::shared_ptr<const MappedFile> file_;
};

// Edges in an archive. If sources and destinations lie apart, two streams over the same member read
// them.
class StreamedEdges final : public EdgeNpy {
 public:
  StreamedEdges(const NpzFile& npz, const std::string& key, PairLayout layout)
      : EdgeNpy(npz.open(key).header(), npz.open(key).where(), layout), npz_(npz) {
    for (int64_t i = 0; i < (step_ == 1 ? 2 : 1); ++i) {
      streams_.push_back(npz_.bytes(key));
      read(*streams_.back(), nullptr, header_.data_offset + size_of(i * dst_at_));
    }
    rooms_.resize(streams_.size());
  }

 private:
  void fetch(int64_t first, int64_t count) override {
    first_ = first * step_;
    for (size_t i = 0; i < streams_.size(); ++i) {
      rooms_[i].resize(size_of(count * step_));
      read(*streams_[i], rooms_[i].data(), size_of(count * step_));
    }
    finish(first + count);
  }
  void pass(int64_t first, int64_t count) override {
    for (const auto& stream : streams_) read(*stream, nullptr, size_of(count * step_));
    finish(first + count);
  }
  void release(int64_t, int64_t) override {}
  const unsigned char* element(int64_t index) const override {
    const bool second = step_ == 1 && index >= dst_at_;
    return rooms_[second ? 1 : 0].data() + size_of(index - first_ - (second ? dst_at_ : 0));
  }

  void read(ByteStream& stream, unsigned char* to, int64_t bytes) {
    std::vector<unsigned char> unwanted(to == nullptr ? std::min<int64_t>(bytes, 1 << 20) : 0);
    while (bytes > 0) {
      const int64_t wanted = to == nullptr ? std::min<int64_t>(bytes, 1 << 20) : bytes;
      if (stream.read(to == nullptr ? unwanted.data() : to, wanted) != wanted)
        throw UserError(where_ + " at byte 0", "the array is cut off", "write the file again");
      bytes -= wanted;
    }
  }

  // Closes the streams once all edges are read. The stream of sources stops before the destinations
  // and so has not checked the checksum of the member, but the stream of destinations has.
  void finish(int64_t done) {
    if (done == edges_) streams_.clear();
  }

  NpzFile npz_;
  std::vector<std::unique_ptr<ByteStream>> streams_;
  std::vector<std::vector<unsigned char>> rooms_;
  int64_t first_ = 0;  // number of the element at the beginning of rooms_[0]
};

}  // namespace

std::unique_ptr<EdgeSource> open_edge_npy(const std::shared_ptr<const MappedFile>& file, PairLayout layout) {
  return std::make_unique<MappedEdges>(file, layout);
}

std::unique_ptr<EdgeSource> open_edge_npz(const NpzFile& npz, const std::string& key, PairLayout layout) {
  return std::make_unique<StreamedEdges>(npz, key, layout);
}

}  // namespace nacre
