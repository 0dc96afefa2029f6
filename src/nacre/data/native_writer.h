// Writing a .nacre file section by section, in pieces where a section is larger than memory. Layout in native_layout.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/data/checksum.h"
#include "nacre/data/native_layout.h"
#include "nacre/tensor/tensor.h"

namespace nacre::native {

// A section being written: its bytes arrive in order.
struct OpenSection {
  SectionEntry entry;
  int64_t offset = 0;
  Checksum64 sum;
};

class Writer {
 public:
  using WriteAt = std::function<void(int64_t offset, const void* data, int64_t bytes)>;
  explicit Writer(WriteAt write) : write_(std::move(write)) {}

  // Where a section opened now begins.
  int64_t next_offset() const { return (end_ + kPage - 1) / kPage * kPage; }
  // Keeps room for `shape`. The first dimension may turn out otherwise if no other section is opened before this one
  // is closed.
  OpenSection open(std::string_view name, Element element, const Shape& shape);
  void append(OpenSection& section, const void* data, int64_t bytes);
  const SectionEntry& close(OpenSection& section);

  template <class T>
  void add(std::string_view name, const T* data, const Shape& shape) {
    OpenSection section = open(name, ElementOf<T>::value, shape);
    append(section, data, num_elements(shape) * static_cast<int64_t>(sizeof(T)));
    close(section);
  }
  template <class T>
  void add(std::string_view name, const Array<T>& array) {
    add(name, array.data(), {array.size()});
  }
  void add(std::string_view name, std::string_view text) {
    add(name, reinterpret_cast<const uint8_t*>(text.data()), {static_cast<int64_t>(text.size())});
  }

  // A section whose bytes are in the file already.
  void adopt(const SectionEntry& entry);
  // Writes the header; returns the size of the file.
  int64_t finish();

 private:
  WriteAt write_;
  std::vector<SectionEntry> table_;
  int64_t end_ = kPage;
};

// Rows of features, wherever they come from.
struct RowSource {
  int64_t rows = 0;
  int64_t columns = 0;
  // The rows [first, first + count), valid until the next call.
  std::function<const float*(int64_t first, int64_t count)> get;
  // Tells that the rows before `end` will not be asked for again. May be empty.
  std::function<void(int64_t end)> done;
};
RowSource rows_of(const Tensor& features);
// The rows of `features` in another order: row i is order[i] of it.
RowSource rows_in_order(const Tensor& features, const Array<uint32_t>& order);

struct RowsTo {
  std::string where;  // for messages
  Element stored = Element::f32;
  int64_t begin = 0;         // rows that are in the file already, and counted in the section's checksum
  bool check_finite = true;  // refuse NaN and infinite values
  std::function<void(int64_t rows_written)> mark;  // called now and then; may be empty
};
// Appends the rows from `to.begin` on to `section`, about 32 MiB at a time.
void append_rows(Writer& writer, OpenSection& section, const RowSource& source, const RowsTo& to);

// A hint that memory is not needed for now: pages of mapped files leave, nothing is lost.
void release_pages(const void* data, int64_t bytes);

}  // namespace nacre::native
