#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"
#include "nacre/data/checksum.h"
#include "nacre/data/native.h"
#include "nacre/data/native_layout.h"

namespace nacre {
namespace native {

uint64_t header_checksum(const void* page) {
  std::array<unsigned char, kPage> copy;
  std::memcpy(copy.data(), page, kPage);
  std::memset(copy.data() + offsetof(FileHeader, checksum), 0, sizeof(uint64_t));
  return checksum64(copy.data(), kPage);
}

}  // namespace native

namespace {

using native::SectionEntry;

class Writer {
 public:
  explicit Writer(const std::string& path) : file_(path) {}

  template <class T>
  void add(std::string_view name, const T* data, const Shape& shape) {
    SectionEntry entry{};
    NACRE_CHECK(name.size() < sizeof(entry.name) && static_cast<int64_t>(table_.size()) < native::kMaxSections,
                "section does not fit the table");
    std::memcpy(entry.name, name.data(), name.size());
    entry.element = native::ElementOf<T>::value;
    entry.rank = static_cast<uint32_t>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) entry.shape[i] = shape[i];
    const int64_t bytes = num_elements(shape) * static_cast<int64_t>(sizeof(T));
    entry.bytes = static_cast<uint64_t>(bytes);
    entry.checksum = checksum64(data, bytes);
    if (bytes > 0) {
      const int64_t offset = (end_ + native::kPage - 1) / native::kPage * native::kPage;
      entry.offset = static_cast<uint64_t>(offset);
      file_.write_at(offset, data, bytes);
      end_ = offset + bytes;
    }
    table_.push_back(entry);
  }

  template <class T>
  void add(std::string_view name, const Array<T>& array) {
    add(name, array.data(), {array.size()});
  }

  void add(std::string_view name, const std::string& text) {
    add(name, reinterpret_cast<const uint8_t*>(text.data()), {static_cast<int64_t>(text.size())});
  }

  void finish() {
    std::array<char, native::kPage> page{};
    native::FileHeader header{};
    std::memcpy(header.magic, native::kMagic.data(), sizeof(header.magic));
    header.version = native::kVersion;
    header.sections = static_cast<uint32_t>(table_.size());
    header.file_bytes = static_cast<uint64_t>(end_);
    std::memcpy(page.data(), &header, sizeof(header));
    std::memcpy(page.data() + sizeof(header), table_.data(), table_.size() * sizeof(SectionEntry));
    header.checksum = native::header_checksum(page.data());
    std::memcpy(page.data(), &header, sizeof(header));
    file_.write_at(0, page.data(), native::kPage);
    file_.commit();
  }

 private:
  PendingFile file_;
  std::vector<SectionEntry> table_;
  int64_t end_ = native::kPage;
};

std::string joined_notes(const std::vector<std::string>& notes) {
  std::string text;
  for (std::string note : notes) {
    std::replace(note.begin(), note.end(), '\n', ' ');
    text += note + "\n";
  }
  return text;
}

}  // namespace

void write_native(const Dataset& dataset, const std::string& path) {
  NACRE_CHECK(dataset.graph.num_src() == dataset.graph.num_dst(), "a data set holds a full graph");
  const GraphArrays& graph = dataset.graph.arrays();
  Writer writer(path);
  writer.add("name", dataset.name);
  writer.add("notes", joined_notes(dataset.notes));
  const int64_t scalars[3] = {dataset.num_nodes(), graph.num_edge_types, dataset.num_classes};
  writer.add("scalars", scalars, {3});
  writer.add("row_ptr", graph.row_ptr);
  writer.add("col_idx", graph.col_idx);
  if (!graph.edge_weight.empty()) writer.add("edge_weight", graph.edge_weight);
  if (!graph.edge_type.empty()) writer.add("edge_type", graph.edge_type);
  if (dataset.features.defined()) {
    writer.add("features", dataset.features.data<float>(), dataset.features.shape());
  }
  if (!dataset.labels.empty()) writer.add("labels", dataset.labels);
  if (dataset.targets.defined()) writer.add("targets", dataset.targets.data<uint8_t>(), dataset.targets.shape());
  writer.add("train", dataset.splits.train);
  writer.add("val", dataset.splits.val);
  writer.add("test", dataset.splits.test);
  writer.finish();
}

}  // namespace nacre
