// A .nacre file, little-endian throughout:
//
//   [0, 4096)   FileHeader, then one SectionEntry per section, then zeros
//   sections    in the order of the table, each at the next multiple of 4096, gaps filled with zeros;
//               empty sections take no room, their offset is 0
//
// Sections, all but the first, "scalars", "train", "val", "test", "name" and "notes" only where there is something to
// say:
//   row_ptr, col_idx, edge_weight, edge_type     the graph, grouped by destination
//   features (f32, bf16 or f16), features.K      of all vertices, or of those of kind K
//   labels, targets, train, val, test            what is learnt, and from whom
//   val_src, val_dst, val_type, test_src, ...    held-out edges
//   original_ids, node_names                     what the source called the vertices; names one per line
//   class_names                                  likewise the classes
//   kinds                                        JSON: kinds of vertices, where each begins, relations
//   scalars                                      i64: vertices, edge types, classes
//   name, notes, conversion                      UTF-8; notes one per line; JSON of how the file was made
// Version 1 has them in another order and knows neither narrow features nor what came after "test".
// Checksums are checksum64 (checksum.h): of the first 4096 bytes with the field itself zero, and of each section's
// bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace nacre::native {

static_assert(std::endian::native == std::endian::little, "the format is mapped, not converted");

constexpr std::string_view kMagic = "\x8FNacre\r\n";  // a text-mode transfer would damage its end
constexpr uint32_t kVersion = 2;                      // of files written; those of version 1 are read as well
constexpr int64_t kPage = 4096;

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t sections;
  uint64_t file_bytes;
  uint64_t checksum;
  char reserved[32];
};

enum class Element : uint32_t { u8 = 1, u16 = 2, u32 = 3, i32 = 4, i64 = 5, f32 = 6, bf16 = 7, f16 = 8 };

struct SectionEntry {
  char name[24];  // zero-padded
  Element element;
  uint32_t rank;  // 1 or 2
  int64_t shape[2];
  uint64_t offset;
  uint64_t bytes;
  uint64_t checksum;
  char reserved[8];
};

static_assert(sizeof(FileHeader) == 64 && sizeof(SectionEntry) == 80);
constexpr int64_t kMaxSections =
    (kPage - static_cast<int64_t>(sizeof(FileHeader))) / static_cast<int64_t>(sizeof(SectionEntry));

template <class T>
struct ElementOf;
template <>
struct ElementOf<uint8_t> {
  static constexpr Element value = Element::u8;
};
template <>
struct ElementOf<uint16_t> {
  static constexpr Element value = Element::u16;
};
template <>
struct ElementOf<uint32_t> {
  static constexpr Element value = Element::u32;
};
template <>
struct ElementOf<int32_t> {
  static constexpr Element value = Element::i32;
};
template <>
struct ElementOf<int64_t> {
  static constexpr Element value = Element::i64;
};
template <>
struct ElementOf<float> {
  static constexpr Element value = Element::f32;
};

constexpr int64_t element_size(Element e) {
  switch (e) {
    case Element::u8:
      return 1;
    case Element::u16:
    case Element::bf16:
    case Element::f16:
      return 2;
    case Element::u32:
    case Element::i32:
    case Element::f32:
      return 4;
    case Element::i64:
      return 8;
  }
  return 0;
}

// Of a whole first page, whose own checksum field counts as zero.
uint64_t header_checksum(const void* page);

}  // namespace nacre::native
