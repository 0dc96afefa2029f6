// A .nacre file is little-endian throughout:
//
//   [0, 4096)   FileHeader, then one SectionEntry per section, then zeros
//   sections    in the order of the table, each at the next multiple of 4096, zeros in the gaps;
//               empty sections take no room, and their offset is 0
//
// The sections row_ptr, col_idx, scalars, train, val, test, name and notes are always there; the
// others only if the data set has such a part:
//   row_ptr, col_idx, edge_weight, edge_type     the graph, grouped by destination
//   features (f32, bf16 or f16), features.K      features of all vertices, or of those of kind K
//   labels, targets, train, val, test            labels and splits
//   val_src, val_dst, val_type, test_src, ...    held-out edges
//   original_ids, node_names                     ids or names of the vertices in the source
//   class_names                                  names of the classes (names: one per line)
//   kinds                                        JSON: kinds of vertices, first ids, relations
//   scalars                                      i64: vertices, edge types, classes
//   name, notes, conversion                      UTF-8: name; notes, one per line; JSON that says
//                                                how the file was made
// Version 1 has its sections in another order. It has no narrow features, held-out edges, names of
// vertices and classes, original ids, kinds or conversion.
// Checksums are checksum64 (checksum.h): one of the first 4096 bytes, computed with the checksum
// field set to zero, and one of the bytes of each section.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace nacre::native {

static_assert(std::endian::native == std::endian::little, "the format is mapped, not converted");

// The magic contains a line end, because a transfer in text mode changes line ends: a file that was
// damaged in this way is not recognised.
constexpr std::string_view kMagic = "\x8FNacre\r\n";
constexpr uint32_t kVersion = 2;  // version of written files; version 1 can be read, too
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

// Returns the checksum of a first page, in which the checksum field itself counts as zero.
uint64_t header_checksum(const void* page);

}  // namespace nacre::native
