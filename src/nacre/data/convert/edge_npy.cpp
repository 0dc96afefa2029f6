#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/data/byte_stream.h"
#include "nacre/data/convert/edge_source.h"
#include "nacre/data/convert/pages.h"
#include "nacre/data/node_data.h"
#include "nacre/data/npy_header.h"

namespace nacre {
namespace {

constexpr int64_t kPart = 1 << 16;
constexpr int64_t kPartsInBlock = 16;

class EdgeNpy final : public EdgeSource {
 public:
  explicit EdgeNpy(const std::shared_ptr<const MappedFile>& file) : file_(file) {
    header_ = read_npy_header(*memory_stream(file->bytes()), file->size(), file->name());
    const Shape& shape = header_.shape;
    const bool wide = shape.size() == 2 && shape[0] == 2;
    if (!wide && !(shape.size() == 2 && shape[1] == 2)) {
      throw UserError(file->name(), "has shape " + shape_text(shape) + "; edges are [2, E] or [E, 2]",
                      "for features use --features beside an edge list");
    }
    if (header_.type.kind != 'i' && header_.type.kind != 'u') {
      throw UserError(file->name(), "holds " + npy_type_name(header_.type) + "; vertex ids are whole numbers",
                      "store int64 or int32");
    }
    edges_ = header_.count / 2;
    const bool apart = wide != header_.fortran;  // all sources before all destinations
    dst_at_ = apart ? edges_ : 1;
    step_ = apart ? 1 : 2;
    if (wide && shape[1] == 2) note_ = "the array is [2, 2]: its first row was read as sources";
  }

  bool next(std::vector<EdgePart>& parts) override {
    if (at_ == edges_) return false;
    const int64_t count = std::min(edges_ - at_, kPart * kPartsInBlock);
    parts.resize(static_cast<size_t>((count + kPart - 1) / kPart));
    bad_ = -1;
    parallel_for(count, kPart, [&](int64_t b, int64_t e) { convert(at_ + b, e - b, parts[b / kPart]); });
    if (bad_.load() >= 0) refuse(bad_.load());
    release(at_, count);
    at_ += count;
    return true;
  }
  void skip() override { at_ += std::min(edges_ - at_, kPart * kPartsInBlock); }

  bool weighted() const override { return false; }
  bool typed() const override { return false; }
  int64_t most_edges() const override { return edges_; }
  double total_bytes() const override { return static_cast<double>(header_.data_bytes()); }
  double bytes_done() const override { return static_cast<double>(at_ * 2 * header_.type.size); }
  std::vector<std::string> notes() const override {
    return note_.empty() ? std::vector<std::string>{} : std::vector<std::string>{note_};
  }

 private:
  const unsigned char* element(int64_t index) const {
    return reinterpret_cast<const unsigned char*>(file_->bytes().data()) + header_.data_offset +
           index * header_.type.size;
  }

  template <class T>
  static bool copy_ids(const unsigned char* from, int64_t step, std::vector<NodeId>& to) {
    bool good = true;
    for (size_t i = 0; i < to.size(); ++i) {
      T value;
      std::memcpy(&value, from + static_cast<int64_t>(i) * step * static_cast<int64_t>(sizeof(T)), sizeof(T));
      const auto wide =
          static_cast<uint64_t>(static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value));
      good = good && wide <= static_cast<uint64_t>(kMaxNodeId);
      to[i] = static_cast<NodeId>(wide);
    }
    return good;
  }

  bool copy(int64_t first, int64_t count, std::vector<NodeId>& to) const {
    to.resize(static_cast<size_t>(count));
    const unsigned char* from = element(first);
    if (header_.type.swap && header_.type.size > 1) return copy_swapped(first, to);
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

  bool copy_swapped(int64_t first, std::vector<NodeId>& to) const {
    bool good = true;
    for (size_t i = 0; i < to.size(); ++i) {
      const int64_t id = value_at(first + static_cast<int64_t>(i) * step_);
      good = good && id >= 0 && id <= kMaxNodeId;
      to[i] = static_cast<NodeId>(id);
    }
    return good;
  }

  // Of any type, slowly. Beyond 63 bits: -1, which is no id either.
  int64_t value_at(int64_t index) const {
    const unsigned char* p = element(index);
    uint64_t value = 0;
    for (int i = 0; i < header_.type.size; ++i) {
      value |= static_cast<uint64_t>(p[header_.type.swap ? header_.type.size - 1 - i : i]) << (8 * i);
    }
    const int unused = 64 - 8 * header_.type.size;
    if (header_.type.kind == 'i') return static_cast<int64_t>(value << unused) >> unused;
    return value >> 63 != 0 ? -1 : static_cast<int64_t>(value);
  }

  void convert(int64_t first, int64_t count, EdgePart& part) {
    const bool good = copy(first * step_, count, part.src) && copy(first * step_ + dst_at_, count, part.dst);
    if (!good) bad_ = first;
  }

  [[noreturn]] void refuse(int64_t first) const {
    for (int64_t i = at_;; ++i) {
      NACRE_CHECK(i < edges_ && first >= 0, "a bad id that is not there");
      for (const int64_t index : {i * step_, i * step_ + dst_at_}) {
        const int64_t id = value_at(index);
        if (id >= 0 && id <= kMaxNodeId) continue;
        throw UserError(file_->name(),
                        "edge " + human_count(i) + " (at offset " +
                            human_count(header_.data_offset + index * header_.type.size) + ") names vertex " +
                            std::to_string(id) + ", which is no vertex id",
                        "ids are 0 to 4,294,967,294");
      }
    }
  }

  void release(int64_t first, int64_t count) const {
    const int64_t bytes = count * step_ * header_.type.size;
    drop_pages(*file_, element(first * step_), bytes);
    if (step_ == 1) drop_pages(*file_, element(first + dst_at_), bytes);
  }

  std::shared_ptr<const MappedFile> file_;
  NpyHeader header_;
  int64_t edges_ = 0;
  int64_t dst_at_ = 0;  // elements from a source to its destination
  int64_t step_ = 1;    // elements from a source to the next
  int64_t at_ = 0;
  std::atomic<int64_t> bad_{-1};
  std::string note_;
};

}  // namespace

std::unique_ptr<EdgeSource> open_edge_npy(const std::shared_ptr<const MappedFile>& file) {
  return std::make_unique<EdgeNpy>(file);
}

}  // namespace nacre
