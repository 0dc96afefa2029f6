// Writes a .nacre file section by section, and large sections piece by piece. The layout is in
// native_layout.h.
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

// A section that is being written. Its bytes arrive in order.
struct OpenSection {
  SectionEntry entry;
  int64_t offset = 0;
  Checksum64 sum;
};

class Writer {
 public:
  using WriteAt = std::function<void(int64_t offset, const void* data, int64_t bytes)>;
  explicit Writer(WriteAt write) : write_(std::move(write)) {}

  // Returns where a section that is opened now begins.
  int64_t next_offset() const { return (end_ + kPage - 1) / kPage * kPage; }
  // Opens a section and keeps room for `shape`. The first dimension may turn out different if this
  // section is closed before another one is opened.
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

  // Adds a section whose bytes are already in the file.
  void adopt(const SectionEntry& entry);
  // Writes the header and returns the size of the file.
  int64_t finish();

 private:
  WriteAt write_;
  std::vector<SectionEntry> table_;
  int64_t end_ = kPage;
};

// Gives rows of features from any source.
struct RowSource {
  int64_t rows = 0;
  int64_t columns = 0;
  // Returns the rows [first, first + count), which stay valid until the next call.
  std::function<const float*(int64_t first, int64_t count)> get;
  // Says that the rows before `end` will not be needed again. May be empty.
  std::function<void(int64_t end)> done;
};
RowSource rows_of(const Tensor& features);
// Returns the rows of `features` in another order: row i is row order[i] of `features`.
RowSource rows_in_order(const Tensor& features, const Array<uint32_t>& order);

struct RowsTo {
  std::string where;  // name of the source, for messages
  Element stored = Element::f32;
  // Rows before this one are already in the file and in the checksum of the section.
  int64_t begin = 0;
  bool check_finite = true;                        // refuse NaN and infinite values
  std::function<void(int64_t rows_written)> mark;  // called from time to time; may be empty
};
// Appends the rows from `to.begin` on to `section`, about 32 MiB at a time.
void append_rows(Writer& writer, OpenSection& section, const RowSource& source, const RowsTo& to);

// Tells the system that these pages of mapped files are not needed for now. Nothing is lost.
void release_pages(const void* data, int64_t bytes);

}  // namespace nacre::native
