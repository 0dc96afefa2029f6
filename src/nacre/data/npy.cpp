#include "nacre/data/npy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kPiece = 1 << 15;  // number of elements that are converted at a time

struct Half {
  uint16_t bits;
  explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 31u;
    const uint32_t fraction = bits & 1023u;
    if (exponent == 0) {  // zero and subnormals are fraction * 2^-24
      const float magnitude = static_cast<float>(fraction) * 0x1.0p-24F;
      return sign != 0 ? -magnitude : magnitude;
    }
    const uint32_t biased = exponent == 31 ? 255 : exponent + 112;
    return std::bit_cast<float>(sign | (biased << 23) | (fraction << 13));
  }
};

struct Bool {
  uint8_t byte;
};

template <class T>
struct Tag {
  using Type = T;
};

// Calls fn(Tag<T>()), where T is the C++ type of a stored element of type `type`.
template <class Fn>
void with_type(const NpyType& type, const Fn& fn) {
  const int code = type.kind * 16 + type.size;
  switch (code) {
    case 'f' * 16 + 2:
      return fn(Tag<Half>{});
    case 'f' * 16 + 4:
      return fn(Tag<float>{});
    case 'f' * 16 + 8:
      return fn(Tag<double>{});
    case 'i' * 16 + 1:
      return fn(Tag<int8_t>{});
    case 'i' * 16 + 2:
      return fn(Tag<int16_t>{});
    case 'i' * 16 + 4:
      return fn(Tag<int32_t>{});
    case 'i' * 16 + 8:
      return fn(Tag<int64_t>{});
    case 'u' * 16 + 1:
      return fn(Tag<uint8_t>{});
    case 'u' * 16 + 2:
      return fn(Tag<uint16_t>{});
    case 'u' * 16 + 4:
      return fn(Tag<uint32_t>{});
    case 'u' * 16 + 8:
      return fn(Tag<uint64_t>{});
    case 'b' * 16 + 1:
      return fn(Tag<Bool>{});
    default:
      NACRE_CHECK(false, "the header parser accepted an element type that cannot be read");
  }
}

template <class T>
T load(const unsigned char* p, bool swap) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, p, sizeof(T));
  if (swap) std::reverse(bytes, bytes + sizeof(T));
  return std::bit_cast<T>(bytes);
}

struct ToFloat {
  template <class T>
  float operator()(T value, int64_t) const {
    if constexpr (std::is_same_v<T, Bool>) {
      return value.byte != 0 ? 1.0F : 0.0F;
    } else if constexpr (std::is_same_v<T, double>) {
      // Values out of float's range become infinite, which validation reports. A plain cast of them
      // would be undefined.
      if (std::abs(value) > std::numeric_limits<float>::max()) {
        return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(value > 0 ? 1 : -1));
      }
      return static_cast<float>(value);
    } else {
      return static_cast<float>(value);
    }
  }
};

struct ToInteger {
  NanAs nan;
  const std::string& where;

  template <class T>
  int64_t operator()(T value, int64_t index) const {
    if constexpr (std::is_same_v<T, Bool>) {
      return value.byte != 0 ? 1 : 0;
    } else if constexpr (std::is_same_v<T, Half> || std::is_floating_point_v<T>) {
      return from_double(static_cast<double>(static_cast<float_of<T>>(value)), index);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) fail(std::to_string(value), index);
      return static_cast<int64_t>(value);
    } else {
      return value;
    }
  }

 private:
  template <class T>
  using float_of = std::conditional_t<std::is_same_v<T, Half>, float, T>;

  int64_t from_double(double value, int64_t index) const {
    if (std::isnan(value) && nan == NanAs::minus_one) return -1;
    if (!(std::abs(value) < 0x1.0p63) || value != std::trunc(value)) fail(std::to_string(value), index);
    return static_cast<int64_t>(value);
  }

  [[noreturn]] void fail(const std::string& value, int64_t index) const {
    throw UserError(where, "value " + value + " at position " + std::to_string(index) + " is not a usable whole number",
                    "store whole numbers");
  }
};

}  // namespace

NpyReader::NpyReader(const std::shared_ptr<const MappedFile>& file)
    : NpyReader(memory_stream(file->bytes()), file->size(), file->name(), file) {
  file_ = file;
}

NpyReader::NpyReader(std::unique_ptr<ByteStream> stream, int64_t total_bytes, std::string where,
                     std::shared_ptr<const void> owner)
    : owner_(std::move(owner)),
      stream_(std::move(stream)),
      where_(std::move(where)),
      header_(read_npy_header(*stream_, total_bytes, where_)) {}

NpyReader::NpyReader(NpyHeader header, std::unique_ptr<ByteStream> stream, std::string where,
                     std::shared_ptr<const void> owner)
    : owner_(std::move(owner)), stream_(std::move(stream)), where_(std::move(where)), header_(std::move(header)) {}

NpyReader NpyReader::headerless(const std::shared_ptr<const MappedFile>& file, const NpyType& type,
                                const Shape& shape) {
  NpyHeader header;
  header.type = type;
  header.shape = shape;
  header.count = num_elements(shape);
  if (header.data_bytes() != file->size()) {
    throw UserError(file->name() + " at byte " + std::to_string(file->size()),
                    "shape " + shape_text(shape) + " of " + npy_type_name(type) + " does not fit its " +
                        std::to_string(file->size()) + " bytes");
  }
  NpyReader reader(header, memory_stream(file->bytes()), file->name(), file);
  reader.file_ = file;
  return reader;
}

void NpyReader::read_exactly(void* to, int64_t bytes) {
  if (stream_->read(to, bytes) != bytes)
    throw UserError(where_header(), "the array is cut off", "write the file again");
}

void NpyReader::require_matrix() const {
  if (shape().size() > 2) {
    throw UserError(where_header(), "has shape " + shape_text(shape()) + "; at most two dimensions are understood",
                    "reshape it before saving");
  }
}

int64_t NpyReader::row_major_index(int64_t stored) const {
  if (!header_.fortran || shape().size() < 2) return stored;
  return stored % shape()[0] * shape()[1] + stored / shape()[0];
}

template <class To, class Convert>
void NpyReader::stream_as(const Convert& convert, FunctionRef<void(int64_t, std::span<const To>)> sink) {
  std::vector<unsigned char> raw(std::min(kPiece, header_.count) * header_.type.size);
  std::vector<To> values(std::min(kPiece, header_.count));
  with_type(header_.type, [&](auto tag) {
    using From = typename decltype(tag)::Type;
    for (int64_t first = 0; first < header_.count; first += kPiece) {
      const int64_t n = std::min(kPiece, header_.count - first);
      read_exactly(raw.data(), n * static_cast<int64_t>(sizeof(From)));
      for (int64_t i = 0; i < n; ++i) {
        values[i] = convert(load<From>(raw.data() + i * sizeof(From), header_.type.swap), first + i);
      }
      sink(first, std::span<const To>(values.data(), static_cast<size_t>(n)));
    }
  });
}

void NpyReader::stream_f32(FunctionRef<void(int64_t, std::span<const float>)> sink) {
  stream_as<float>(ToFloat{}, sink);
}

void NpyReader::next_f32(float* to, int64_t count) {
  std::vector<unsigned char> raw(std::min(kPiece, count) * header_.type.size);
  with_type(header_.type, [&](auto tag) {
    using From = typename decltype(tag)::Type;
    for (int64_t first = 0; first < count; first += kPiece) {
      const int64_t n = std::min(kPiece, count - first);
      read_exactly(raw.data(), n * static_cast<int64_t>(sizeof(From)));
      for (int64_t i = 0; i < n; ++i)
        to[first + i] = ToFloat{}(load<From>(raw.data() + i * sizeof(From), header_.type.swap), i);
    }
  });
}

void NpyReader::stream_i64(NanAs nan, FunctionRef<void(int64_t, std::span<const int64_t>)> sink) {
  stream_as<int64_t>(ToInteger{nan, where_}, sink);
}

// Converts all elements of the mapped file to f32, in parallel and in storage order.
void NpyReader::convert_mapped(float* to) const {
  const auto* from = reinterpret_cast<const unsigned char*>(file_->bytes().data()) + header_.data_offset;
  with_type(header_.type, [&](auto tag) {
    using From = typename decltype(tag)::Type;
    parallel_for(header_.count, 1 << 18, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) to[i] = ToFloat{}(load<From>(from + i * sizeof(From), header_.type.swap), i);
    });
  });
}

Tensor NpyReader::to_f32() {
  require_matrix();
  const bool same_type = header_.type.kind == 'f' && header_.type.size == 4 && !header_.type.swap;
  const bool same_order = !header_.fortran || shape().size() < 2;
  if (same_type && same_order && file_ != nullptr && header_.data_offset % 4 == 0) {
    auto* begin = static_cast<std::byte*>(file_->memory().get()) + header_.data_offset;
    return {DType::f32, shape(), file_->memory(), begin};
  }
  Tensor result(DType::f32, shape());
  auto* to = result.data<float>();
  if (same_type && same_order) {
    read_exactly(to, header_.data_bytes());
    return result;
  }
  if (same_order && file_ != nullptr) {
    convert_mapped(to);
    return result;
  }
  stream_f32([&](int64_t first, std::span<const float> values) {
    for (size_t i = 0; i < values.size(); ++i) to[row_major_index(first + static_cast<int64_t>(i))] = values[i];
  });
  return result;
}

Buffer<int64_t> NpyReader::to_i64(NanAs nan) {
  require_matrix();
  Buffer<int64_t> result(header_.count);
  stream_i64(nan, [&](int64_t first, std::span<const int64_t> values) {
    for (size_t i = 0; i < values.size(); ++i) result[row_major_index(first + static_cast<int64_t>(i))] = values[i];
  });
  return result;
}

int64_t NpyReader::scalar_i64() {
  if (header_.count != 1) {
    throw UserError(where_header(), "has shape " + shape_text(shape()) + "; a single number is expected",
                    "store one integer");
  }
  int64_t result = 0;
  stream_i64(NanAs::error, [&](int64_t, std::span<const int64_t> values) { result = values[0]; });
  return result;
}

}  // namespace nacre
