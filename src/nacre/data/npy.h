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

// What a NaN among values that should be whole numbers means.
enum class NanAs { error, minus_one };

// Reads one array, once, front to back, in bounded memory.
class NpyReader {
 public:
  explicit NpyReader(const std::shared_ptr<const MappedFile>& file);
  // `owner` keeps alive whatever `stream` borrows.
  NpyReader(std::unique_ptr<ByteStream> stream, int64_t total_bytes, std::string where,
            std::shared_ptr<const void> owner);

  // A whole file without a header; its size must fit the shape.
  static NpyReader headerless(const std::shared_ptr<const MappedFile>& file, const NpyType& type, const Shape& shape);
  // Elements described elsewhere: `stream` gives header.data_bytes() bytes.
  NpyReader(NpyHeader header, std::unique_ptr<ByteStream> stream, std::string where, std::shared_ptr<const void> owner);

  const NpyHeader& header() const { return header_; }
  const Shape& shape() const { return header_.shape; }
  const std::string& where() const { return where_; }
  // For what is wrong with the shape or the type.
  std::string where_header() const { return where_ + " at byte 0"; }
  bool is_float() const { return header_.type.kind == 'f'; }

  // Calls `sink(first, values)` for consecutive pieces in storage order: column by column when header().fortran.
  void stream_f32(FunctionRef<void(int64_t, std::span<const float>)> sink);
  // Floats must be whole numbers within 64 bits.
  void stream_i64(NanAs nan, FunctionRef<void(int64_t, std::span<const int64_t>)> sink);

  // The next `count` elements in storage order, for those who would rather pull.
  void next_f32(float* to, int64_t count);

  // The array as a row-major f32 tensor of its own shape. Points into the file where the file already holds just that.
  Tensor to_f32();
  // Every value, row-major, whole numbers. Rank at most 2.
  Buffer<int64_t> to_i64(NanAs nan);
  // The only value of an array of one element.
  int64_t scalar_i64();

  // Where the element at `stored` (its place in the file) belongs in row-major order. Rank at most 2.
  int64_t row_major_index(int64_t stored) const;

 private:
  template <class To, class Convert>
  void stream_as(const Convert& convert, FunctionRef<void(int64_t, std::span<const To>)> sink);
  void read_exactly(void* to, int64_t bytes);
  void require_matrix() const;
  void convert_mapped(float* to) const;

  std::shared_ptr<const void> owner_;
  std::shared_ptr<const MappedFile> file_;  // only when the array is a file of its own
  std::unique_ptr<ByteStream> stream_;
  std::string where_;
  NpyHeader header_;
};

}  // namespace nacre
