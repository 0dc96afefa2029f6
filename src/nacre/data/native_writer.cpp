#include "nacre/data/native_writer.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/data/native_floats.h"

namespace nacre::native {
namespace {

constexpr int64_t kRowsBytes = 32 << 20;
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

int64_t elements(const SectionEntry& entry) {
  return entry.rank == 2 ? entry.shape[0] * entry.shape[1] : entry.shape[0];
}

int64_t first_not_finite(const float* values, int64_t count) {
  std::atomic<int64_t> first{kNone};
  parallel_for(count, 1 << 18, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      if ((std::bit_cast<uint32_t>(values[i]) & 0x7F800000u) != 0x7F800000u) continue;
      int64_t seen = first.load();
      while (i < seen && !first.compare_exchange_weak(seen, i)) {
      }
      return;
    }
  });
  return first.load() == kNone ? -1 : first.load();
}

}  // namespace

uint64_t header_checksum(const void* page) {
  std::array<unsigned char, kPage> copy;
  std::memcpy(copy.data(), page, kPage);
  std::memset(copy.data() + offsetof(FileHeader, checksum), 0, sizeof(uint64_t));
  return checksum64(copy.data(), kPage);
}

OpenSection Writer::open(std::string_view name, Element element, const Shape& shape) {
  OpenSection section{};
  SectionEntry& entry = section.entry;
  NACRE_CHECK(name.size() < sizeof(entry.name), "the section's name is too long");
  std::memcpy(entry.name, name.data(), name.size());
  entry.element = element;
  entry.rank = static_cast<uint32_t>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) entry.shape[i] = shape[i];
  section.offset = next_offset();
  const int64_t bytes = num_elements(shape) * element_size(element);
  if (bytes > 0) end_ = section.offset + bytes;
  return section;
}

void Writer::append(OpenSection& section, const void* data, int64_t bytes) {
  if (bytes == 0) return;
  write_(section.offset + section.sum.bytes(), data, bytes);
  section.sum.update(data, bytes);
}

const SectionEntry& Writer::close(OpenSection& section) {
  SectionEntry& entry = section.entry;
  const int64_t bytes = section.sum.bytes();
  if (elements(entry) * element_size(entry.element) != bytes) {
    const int64_t row = element_size(entry.element) * (entry.rank == 2 ? entry.shape[1] : 1);
    NACRE_CHECK(row > 0 && bytes % row == 0, "the bytes of the section are not whole rows");
    entry.shape[0] = bytes / row;
    end_ = section.offset + bytes;
  }
  entry.bytes = static_cast<uint64_t>(bytes);
  entry.offset = bytes > 0 ? static_cast<uint64_t>(section.offset) : 0;
  entry.checksum = section.sum.value();
  adopt(entry);
  return table_.back();
}

void Writer::adopt(const SectionEntry& entry) {
  if (static_cast<int64_t>(table_.size()) == kMaxSections) {
    throw UserError("data set", "has too many parts for one file", "merge some kinds of nodes");
  }
  table_.push_back(entry);
  if (entry.bytes > 0) end_ = std::max(end_, static_cast<int64_t>(entry.offset + entry.bytes));
}

int64_t Writer::finish() {
  std::array<char, kPage> page{};
  FileHeader header{};
  std::memcpy(header.magic, kMagic.data(), sizeof(header.magic));
  header.version = kVersion;
  header.sections = static_cast<uint32_t>(table_.size());
  header.file_bytes = static_cast<uint64_t>(end_);
  std::memcpy(page.data(), &header, sizeof(header));
  std::memcpy(page.data() + sizeof(header), table_.data(), table_.size() * sizeof(SectionEntry));
  header.checksum = header_checksum(page.data());
  std::memcpy(page.data(), &header, sizeof(header));
  write_(0, page.data(), kPage);
  return end_;
}

RowSource rows_of(const Tensor& features) {
  RowSource source{features.shape()[0], features.shape()[1], {}, {}};
  source.get = [features](int64_t first, int64_t) { return features.data<float>() + first * features.shape()[1]; };
  source.done = [features, from = int64_t{0}](int64_t end) mutable {
    const auto* x = features.data<float>();
    release_pages(x + from * features.shape()[1], (end - from) * features.shape()[1] * 4);
    from = end;
  };
  return source;
}

RowSource rows_in_order(const Tensor& features, const Array<uint32_t>& order) {
  RowSource source{order.size(), features.shape()[1], {}, {}};
  source.get = [features, order, room = std::vector<float>()](int64_t first, int64_t count) mutable {
    const int64_t columns = features.shape()[1];
    room.resize(count * columns);
    parallel_for(count, std::max<int64_t>(1, (1 << 16) / columns), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const float* row = features.data<float>() + static_cast<int64_t>(order[first + i]) * columns;
        std::copy(row, row + columns, room.data() + i * columns);
      }
    });
    return room.data();
  };
  return source;
}

void append_rows(Writer& writer, OpenSection& section, const RowSource& source, const RowsTo& to) {
  const int64_t step = std::max<int64_t>(1, kRowsBytes / std::max<int64_t>(1, source.columns * 4));
  std::vector<uint16_t> narrow_values;
  for (int64_t row = to.begin; row < source.rows; row += step) {
    const int64_t count = std::min(step, source.rows - row);
    const int64_t values = count * source.columns;
    const float* x = source.get(row, count);
    const auto refuse = [&](int64_t at, const std::string& what, const std::string& remedy) {
      throw UserError(
          to.where + " row " + std::to_string(row + at / source.columns),
          "feature " + human_count(at % source.columns) + " of node " + human_count(row + at / source.columns) + what,
          remedy);
    };
    if (to.check_finite) {
      const int64_t bad = first_not_finite(x, values);
      if (bad >= 0) refuse(bad, " is not finite", "replace NaN and infinite values");
    }
    if (to.stored == Element::f32) {
      writer.append(section, x, values * 4);
    } else {
      narrow_values.resize(values);
      const int64_t bad = narrow(to.stored, x, narrow_values.data(), values);
      if (bad >= 0) refuse(bad, " is too large for " + std::string(float_name(to.stored)), "use --feature-dtype f32");
      writer.append(section, narrow_values.data(), values * 2);
    }
    if (source.done) source.done(row + count);
    if (to.mark) to.mark(row + count);
  }
}

void release_pages(const void* data, int64_t bytes) {
  if (bytes < (1 << 20)) return;
  auto* begin = static_cast<char*>(const_cast<void*>(data));
  const auto before = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) % kPage);
  const int64_t skipped = before == 0 ? 0 : kPage - before;
  const int64_t whole = (bytes - skipped) / kPage * kPage;
  // If the system refuses, the pages merely stay in memory.
  madvise(begin + skipped, static_cast<size_t>(whole), MADV_PAGEOUT);
}

}  // namespace nacre::native
