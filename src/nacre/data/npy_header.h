// The header of an .npy array (format versions 1 to 3) is magic, version, length, and a Python
// dictionary literal such as
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2708, 1433), }
// A strict parser of just this grammar reads it; nothing is evaluated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nacre/data/byte_stream.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

struct NpyType {
  char kind = 'f';    // f: float, i: signed integer, u: unsigned integer, b: boolean
  int size = 4;       // bytes per element
  bool swap = false;  // elements are stored big-endian
};

struct NpyHeader {
  NpyType type;
  bool fortran = false;  // elements are stored column by column
  Shape shape;
  int64_t count = 0;        // number of elements
  int64_t data_offset = 0;  // where the elements begin

  int64_t data_bytes() const { return count * type.size; }
};

// Reads the header from the front of `stream`, which holds `total_bytes` bytes. Everything the
// header claims is compared with that size.
NpyHeader read_npy_header(ByteStream& stream, int64_t total_bytes, const std::string& where);

// Parses the short type names of NumPy, "<f4" or "|b1". Throws UserError for types that are not
// numbers.
NpyType parse_npy_type(const std::string& descr, const std::string& where);
// Returns the number of elements of `shape`, or -1 if the number of bytes does not fit 64 bits.
int64_t checked_npy_count(const Shape& shape, int element_size);

std::string npy_type_name(const NpyType& type);  // returns for example "f32", "i64" or "bool"

}  // namespace nacre
