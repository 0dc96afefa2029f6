#include <algorithm>
#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/data/checksum.h"
#include "nacre/data/native.h"
#include "nacre/data/native_floats.h"
#include "nacre/data/native_layout.h"
#include "nacre/data/native_writer.h"
#include "nacre/data/node_data.h"
#include "nacre/data/validate.h"

namespace nacre {
namespace {

using native::Element;
using native::FileHeader;
using native::kPage;
using native::SectionEntry;

constexpr const char* kConvertAgain = "the file is truncated or damaged: convert the data set again";

class Reader {
 public:
  explicit Reader(const std::shared_ptr<const MappedFile>& file) : file_(file), where_(file->name()) {
    if (!is_native(*file)) throw UserError(where_, "is not a Nacre data set");
    if (file->size() < kPage) damaged("the header is cut off");
    FileHeader header;
    std::memcpy(&header, file->bytes().data(), sizeof(header));
    version_ = header.version;
    if (version_ < 1 || version_ > native::kVersion) {
      throw UserError(where_,
                      "has format version " + std::to_string(version_) + "; this program reads versions 1 to " +
                          std::to_string(native::kVersion),
                      "convert the data set again");
    }
    if (header.file_bytes != static_cast<uint64_t>(file->size())) {
      damaged("it should be " + human_count(static_cast<int64_t>(header.file_bytes)) + " bytes long, not " +
              human_count(file->size()));
    }
    if (header.checksum != native::header_checksum(file->bytes().data()))
      damaged("the header's checksum does not match");
    if (header.sections > native::kMaxSections) damaged("too many sections");
    table_.resize(header.sections);
    for (size_t i = 0; i < table_.size(); ++i) {
      std::memcpy(&table_[i], file->bytes().data() + sizeof(header) + i * sizeof(SectionEntry), sizeof(SectionEntry));
    }
    check_table();
  }

  // Checks every byte: sections by their checksums, and that gaps are zero.
  void verify() const {
    int64_t end = kPage;
    for (const SectionEntry& entry : table_) {
      if (entry.bytes == 0) continue;
      const auto offset = static_cast<int64_t>(entry.offset);
      const auto gap = file_->bytes().subspan(static_cast<size_t>(end), static_cast<size_t>(offset - end));
      if (std::any_of(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{0}; })) {
        damaged("bytes before section '" + name_of(entry) + "', between offsets " + human_count(end) + " and " +
                human_count(offset) + ", are not zero");
      }
      if (checksum_of(entry) != entry.checksum) {
        damaged("section '" + name_of(entry) + "' (" + human_count(static_cast<int64_t>(entry.bytes)) +
                " bytes at offset " + human_count(offset) + ") is damaged: its checksum does not match");
      }
      end = offset + static_cast<int64_t>(entry.bytes);
    }
    if (end != file_->size()) damaged("bytes follow the last section");
  }

  template <class T>
  Array<T> array(std::string_view name, bool required = true) const {
    const SectionEntry* entry = find(name, native::ElementOf<T>::value, 1, required);
    if (entry == nullptr) return {};
    return {file_, reinterpret_cast<const T*>(file_->bytes().data() + entry->offset), entry->shape[0]};
  }

  Tensor matrix(std::string_view name, DType dtype, Element element) const {
    const SectionEntry* entry = find(name, element, 2, false);
    if (entry == nullptr) return {};
    auto* data = static_cast<std::byte*>(file_->memory().get()) + entry->offset;
    return {dtype, {entry->shape[0], entry->shape[1]}, file_->memory(), data};
  }

  // Returns features as f32: mapped if they are stored as f32, otherwise widened.
  Tensor features(std::string_view name) const {
    const SectionEntry* entry = find(name);
    if (entry == nullptr) return {};
    if (!native::is_float(entry->element) || entry->rank != 2) wrong_type(name);
    if (entry->element == Element::f32) return matrix(name, DType::f32, Element::f32);
    Tensor values(DType::f32, {entry->shape[0], entry->shape[1]});
    const auto* from = reinterpret_cast<const uint16_t*>(file_->bytes().data() + entry->offset);
    constexpr int64_t piece = 16 << 20;
    for (int64_t i = 0; i < values.size(); i += piece) {
      const int64_t count = std::min(piece, values.size() - i);
      native::widen(entry->element, from + i, values.data<float>() + i, count);
      native::release_pages(from + i, count * 2);
    }
    return values;
  }

  std::string text(std::string_view name, bool required = true) const {
    const Array<uint8_t> bytes = array<uint8_t>(name, required);
    return {reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(bytes.size())};
  }

  NativeContents contents() const {
    NativeContents result{version_, {}, text("conversion", false)};
    for (const SectionEntry& entry : table_) {
      result.sections.push_back({name_of(entry), entry.element, Shape(entry.shape, entry.shape + entry.rank),
                                 static_cast<int64_t>(entry.offset), static_cast<int64_t>(entry.bytes)});
    }
    return result;
  }

  [[noreturn]] void damaged(const std::string& what) const { throw UserError(where_, what, kConvertAgain); }

 private:
  static std::string name_of(const SectionEntry& entry) {
    return {entry.name, strnlen(entry.name, sizeof(entry.name))};
  }

  void check_table() const {
    const auto size = static_cast<uint64_t>(file_->size());
    uint64_t end = kPage;
    for (const SectionEntry& entry : table_) {
      const int64_t element = native::element_size(entry.element);
      int64_t bytes = element;
      bool fits = element > 0 && (entry.rank == 1 || entry.rank == 2);
      for (uint32_t i = 0; fits && i < entry.rank; ++i) {
        fits = entry.shape[i] >= 0 && !__builtin_mul_overflow(bytes, entry.shape[i], &bytes);
      }
      fits = fits && static_cast<uint64_t>(bytes) == entry.bytes;
      if (bytes == 0) {
        fits = fits && entry.offset == 0;
      } else {
        fits = fits && entry.offset % kPage == 0 && entry.offset >= end && entry.offset <= size &&
               entry.bytes <= size - entry.offset;
        end = entry.offset + entry.bytes;
      }
      if (!fits) damaged("section '" + name_of(entry) + "' does not fit the file");
    }
  }

  const SectionEntry* find(std::string_view name) const {
    const auto found =
        std::find_if(table_.begin(), table_.end(), [&](const SectionEntry& e) { return name_of(e) == name; });
    return found == table_.end() ? nullptr : &*found;
  }

  const SectionEntry* find(std::string_view name, Element element, uint32_t rank, bool required) const {
    const SectionEntry* found = find(name);
    if (found == nullptr && required) damaged("section '" + std::string(name) + "' is missing");
    if (found != nullptr && (found->element != element || found->rank != rank)) wrong_type(name);
    return found;
  }

  [[noreturn]] void wrong_type(std::string_view name) const {
    damaged("section '" + std::string(name) + "' has a wrong type");
  }

  // Returns the checksum of the bytes of a section. It is computed piece by piece, so that a file
  // larger than memory does not fill the memory.
  uint64_t checksum_of(const SectionEntry& entry) const {
    constexpr int64_t piece = 64 << 20;
    Checksum64 sum;
    const auto bytes = static_cast<int64_t>(entry.bytes);
    for (int64_t at = 0; at < bytes; at += piece) {
      const std::byte* p = file_->bytes().data() + entry.offset + at;
      const int64_t count = std::min(piece, bytes - at);
      sum.update(p, count);
      if (bytes > piece) native::release_pages(p, count);
    }
    return sum.value();
  }

  std::shared_ptr<const MappedFile> file_;
  const std::string& where_;
  std::vector<SectionEntry> table_;
  uint32_t version_ = 0;
};

void check_sorted(const Graph& graph, const Reader& reader) {
  std::atomic<bool> sorted{true};
  parallel_for(graph.num_dst(), 1 << 14, [&](int64_t b, int64_t e) {
    const NodeId* ids = graph.col_idx().data();
    bool good = true;
    for (int64_t v = b; v < e; ++v)
      good = good && std::is_sorted(ids + graph.row_ptr()[v], ids + graph.row_ptr()[v + 1]);
    if (!good) sorted = false;
  });
  if (!sorted) reader.damaged("the edges of a node are not sorted");
}

Graph read_graph(const Reader& reader, const Array<int64_t>& scalars, const std::string& where) {
  GraphArrays arrays;
  if (scalars[0] < 0 || scalars[0] > kMaxNodeId + 1) reader.damaged("the number of nodes is out of range");
  if (scalars[1] < 1 || scalars[1] > kMaxEdgeTypes) reader.damaged("the number of edge types is out of range");
  arrays.num_src = arrays.num_dst = scalars[0];
  arrays.num_edge_types = static_cast<int>(scalars[1]);
  arrays.row_ptr = reader.array<int64_t>("row_ptr");
  arrays.col_idx = reader.array<NodeId>("col_idx");
  arrays.edge_weight = reader.array<float>("edge_weight", false);
  arrays.edge_type = reader.array<uint16_t>("edge_type", false);
  if (arrays.row_ptr.empty()) reader.damaged("section 'row_ptr' is empty");
  Graph graph(std::move(arrays), where);
  check_sorted(graph, reader);
  return graph;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

HeldOutEdges read_held_out(const Reader& reader, const std::string& part) {
  return {reader.array<NodeId>(part + "_src", false), reader.array<NodeId>(part + "_dst", false),
          reader.array<uint16_t>(part + "_type", false)};
}

void read_kinds(const Reader& reader, Dataset& data) {
  const std::string text = reader.text("kinds", false);
  if (text.empty()) return;
  try {
    const nlohmann::json kinds = parse_json_or_discard<nlohmann::json>(text);
    data.node_types = kinds.at("types").get<std::vector<std::string>>();
    data.node_offsets = kinds.at("offsets").get<std::vector<int64_t>>();
    for (const nlohmann::json& r : kinds.at("relations")) {
      data.relations.push_back({r.at(0).get<int>(), r.at(1).get<std::string>(), r.at(2).get<int>()});
    }
  } catch (const nlohmann::json::exception&) {
    reader.damaged("section 'kinds' cannot be understood");
  }
}

void read_features(const Reader& reader, Dataset& data) {
  data.features = reader.features("features");
  std::vector<Tensor> by_kind(data.node_types.size());
  bool any = false;
  for (size_t k = 0; k < by_kind.size(); ++k) {
    by_kind[k] = reader.features("features." + std::to_string(k));
    any = any || by_kind[k].defined();
  }
  if (any) data.type_features = std::move(by_kind);
}

Dataset read_parts(const std::shared_ptr<const MappedFile>& file, const Reader& reader, bool features) {
  const Array<int64_t> scalars = reader.array<int64_t>("scalars");
  if (scalars.size() != 3) reader.damaged("section 'scalars' has a wrong size");
  Dataset data;
  data.name = reader.text("name");
  data.notes = split_lines(reader.text("notes"));
  data.graph = read_graph(reader, scalars, file->name());
  data.num_classes = scalars[2];
  read_kinds(reader, data);
  if (features) read_features(reader, data);
  data.labels = reader.array<int32_t>("labels", false);
  data.targets = reader.matrix("targets", DType::u8, Element::u8);
  data.splits = {reader.array<NodeId>("train"), reader.array<NodeId>("val"), reader.array<NodeId>("test")};
  data.val_edges = read_held_out(reader, "val");
  data.test_edges = read_held_out(reader, "test");
  data.original_ids = reader.array<int64_t>("original_ids", false);
  data.node_names = split_lines(reader.text("node_names", false));
  data.class_names = split_lines(reader.text("class_names", false));
  return data;
}

}  // namespace

bool is_native(const MappedFile& file) { return file.starts_with(native::kMagic); }

Dataset read_native(const std::string& path, bool verify) { return read_native(MappedFile::open(path), verify); }

Dataset read_native(const std::shared_ptr<const MappedFile>& file, bool verify) {
  const Reader reader(file);
  if (verify) reader.verify();
  Dataset data = read_parts(file, reader, true);
  validate_parts(data, file->name(), verify ? Depth::everything : Depth::without_features);
  return data;
}

NativeContents native_contents(const std::shared_ptr<const MappedFile>& file) { return Reader(file).contents(); }

void verify_native(const std::shared_ptr<const MappedFile>& file) {
  const Reader reader(file);
  reader.verify();
  // Feature values were checked when they were written, and the checksum shows that they are
  // unchanged.
  validate_parts(read_parts(file, reader, false), file->name(), Depth::everything);
}

}  // namespace nacre
