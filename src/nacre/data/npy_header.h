// The header of an .npy array (format versions 1 to 3): magic, version, length, then a Python dictionary literal such
// as
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2708, 1433), }
// read by a strict parser of just that grammar; nothing is evaluated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nacre/data/byte_stream.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

struct NpyType {
  char kind = 'f';    // f: float, i: signed, u: unsigned, b: boolean
  int size = 4;       // bytes per element
  bool swap = false;  // stored big-endian
};

struct NpyHeader {
  NpyType type;
  bool fortran = false;  // column-major
  Shape shape;
  int64_t count = 0;        // elements
  int64_t data_offset = 0;  // where the elements begin

  int64_t data_bytes() const { return count * type.size; }
};

// Reads the header from the front of `stream`, which holds `total_bytes` in all. Whatever the header claims has been
// compared with that size before this returns.
NpyHeader read_npy_header(ByteStream& stream, int64_t total_bytes, const std::string& where);

// NumPy's short names, "<f4" or "|b1"; throws UserError for types that are no numbers.
NpyType parse_npy_type(const std::string& descr, const std::string& where);
// Elements of `shape`; -1 when their bytes do not fit 64 bits.
int64_t checked_npy_count(const Shape& shape, int element_size);

std::string npy_type_name(const NpyType& type);  // "f32", "i64", "bool"

}  // namespace nacre
