// NumPy arrays, from a file of their own or from a member of an archive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "nacre/base/function_ref.h"
#include "nacre/data/byte_stream.h"
#include "nacre/data/mapped_file.h"
#include "nacre/data/npy_header.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

// What NaN means among values that should be whole numbers.
enum class NanAs { error, minus_one };

// Reads one array once, front to back, in bounded memory.
class NpyReader {
 public:
  explicit NpyReader(const std::shared_ptr<const MappedFile>& file);
  // `owner` keeps the memory alive that `stream` borrows.
  NpyReader(std::unique_ptr<ByteStream> stream, int64_t total_bytes, std::string where,
            std::shared_ptr<const void> owner);

  // Reads a whole file without a header. Its size must match the shape.
  static NpyReader headerless(const std::shared_ptr<const MappedFile>& file, const NpyType& type, const Shape& shape);
  // Reads elements that have no header of their own: `header` describes them, and `stream` gives
  // header.data_bytes() bytes.
  NpyReader(NpyHeader header, std::unique_ptr<ByteStream> stream, std::string where, std::shared_ptr<const void> owner);

  const NpyHeader& header() const { return header_; }
  const Shape& shape() const { return header_.shape; }
  const std::string& where() const { return where_; }
  // Returns the place for messages about a wrong shape or type.
  std::string where_header() const { return where_ + " at byte 0"; }
  bool is_float() const { return header_.type.kind == 'f'; }

  // Calls `sink(first, values)` for consecutive pieces in storage order, which is column by column
  // if header().fortran.
  void stream_f32(FunctionRef<void(int64_t, std::span<const float>)> sink);
  // Calls `sink` as stream_f32() does, with whole numbers. Floats must be whole numbers that fit 64
  // bits.
  void stream_i64(NanAs nan, FunctionRef<void(int64_t, std::span<const int64_t>)> sink);

  // Reads the next `count` elements in storage order, for callers that pull.
  void next_f32(float* to, int64_t count);

  // Returns the array as a row-major f32 tensor of the same shape. Points into the file if the file
  // holds exactly these bytes.
  Tensor to_f32();
  // Returns all values as whole numbers in row-major order. The rank is at most 2.
  Buffer<int64_t> to_i64(NanAs nan);
  // Returns the only value of an array of one element.
  int64_t scalar_i64();

  // Returns the row-major index of the element that is number `stored` in the file. The rank is at
  // most 2.
  int64_t row_major_index(int64_t stored) const;

 private:
  template <class To, class Convert>
  void stream_as(const Convert& convert, FunctionRef<void(int64_t, std::span<const To>)> sink);
  void read_exactly(void* to, int64_t bytes);
  void require_matrix() const;
  void convert_mapped(float* to) const;

  std::shared_ptr<const void> owner_;
  std::shared_ptr<const MappedFile> file_;  // set only if the array is a file of its own
  std::unique_ptr<ByteStream> stream_;
  std::string where_;
  NpyHeader header_;
};

}  // namespace nacre
