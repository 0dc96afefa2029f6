#include "nacre/data/convert/feature_file.h"

#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/data/byte_stream.h"
#include "nacre/data/convert/pages.h"
#include "nacre/data/mapped_file.h"
#include "nacre/data/native_floats.h"
#include "nacre/data/npy_header.h"

namespace nacre {
namespace {

bool headerless(const std::string& path) { return path.ends_with(".bin") || path.ends_with(".raw"); }

float to_float(double value) {
  // Values beyond f32 become infinite, which is refused later. A plain cast of them would be
  // undefined.
  if (value > std::numeric_limits<float>::max()) return std::numeric_limits<float>::infinity();
  if (value < std::numeric_limits<float>::lowest()) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(value);
}

void to_f32(const std::byte* from, int element, float* to, int64_t count) {
  parallel_for(count, 1 << 18, [&](int64_t b, int64_t e) {
    if (element == 4) {
      std::memcpy(to + b, from + b * 4, static_cast<size_t>(e - b) * 4);
    } else if (element == 2) {
      for (int64_t i = b; i < e; ++i) {
        uint16_t bits;
        std::memcpy(&bits, from + i * 2, 2);
        to[i] = native::widen(native::Element::f16, bits);
      }
    } else {
      for (int64_t i = b; i < e; ++i) {
        double value;
        std::memcpy(&value, from + i * 8, 8);
        to[i] = to_float(value);
      }
    }
  });
}

bool usable(const NpyHeader& header) {
  return header.type.kind == 'f' && !header.type.swap && !header.fortran && header.shape.size() == 2;
}

}  // namespace

native::RowSource mapped_rows(const MappedRows& r) {
  native::RowSource source{r.rows, r.columns, {}, {}};
  const std::byte* data = r.file->bytes().data() + r.offset;
  const int64_t row_bytes = r.columns * r.element;
  source.get = [r, data, row_bytes, room = std::vector<float>()](int64_t first, int64_t count) mutable {
    const std::byte* from = data + first * row_bytes;
    if (r.element == 4 && r.offset % 4 == 0) return reinterpret_cast<const float*>(from);
    room.resize(count * r.columns);
    to_f32(from, r.element, room.data(), count * r.columns);
    return static_cast<const float*>(room.data());
  };
  source.done = [r, data, row_bytes, from = int64_t{0}](int64_t end) mutable {
    drop_pages(*r.file, data + from * row_bytes, (end - from) * row_bytes);
    from = end;
  };
  return source;
}

native::RowSource rows_in_turn(int64_t rows, int64_t columns, const std::string& where,
                               const std::function<bool(std::vector<float>&)>& pull) {
  struct State {
    std::vector<float> held;
    int64_t first = 0;  // row number of the first row in `held`
  };
  native::RowSource source{rows, columns, {}, {}};
  const auto fail = [where](int64_t row, const std::string& what) {
    throw UserError(where + " row " + std::to_string(row), what, "give one row per node");
  };
  source.get = [=, state = State()](int64_t first, int64_t count) mutable {
    NACRE_CHECK(first >= state.first, "rows were asked for out of turn");
    const auto held = [&] { return static_cast<int64_t>(state.held.size()) / columns; };
    while (true) {
      const int64_t gone = std::min(first - state.first, held());
      state.held.erase(state.held.begin(), state.held.begin() + gone * columns);
      state.first += gone;
      if (state.first == first && held() >= count) break;
      if (!pull(state.held))
        fail(state.first + held(), "the rows end here, but there are " + human_count(rows) + " nodes");
    }
    if (first + count == rows) {
      while (held() == count && pull(state.held)) {
      }
      if (held() > count) fail(rows, "this row is one too many: there are " + human_count(rows) + " nodes");
    }
    return static_cast<const float*>(state.held.data());
  };
  return source;
}

bool has_feature_rows(const std::string& path) {
  if (headerless(path)) return true;
  if (!path.ends_with(".npy")) return false;
  const auto file = MappedFile::open(path);
  return usable(read_npy_header(*memory_stream(file->bytes()), file->size(), path));
}

std::optional<native::RowSource> open_feature_rows(const std::string& path, int64_t num_nodes) {
  if (!has_feature_rows(path)) return std::nullopt;
  MappedRows rows{MappedFile::open(path)};
  if (headerless(path)) {
    const int64_t size = rows.file->size();
    if (size == 0 || num_nodes == 0 || size % (num_nodes * 4) != 0) {
      throw UserError(path,
                      "holds " + human_count(size) + " bytes, which is no whole number of f32 columns for " +
                          human_count(num_nodes) + " nodes",
                      "give one row of f32 per node, or the number of nodes with --num-nodes");
    }
    rows.rows = num_nodes;
    rows.columns = size / (num_nodes * 4);
    return mapped_rows(rows);
  }
  const NpyHeader header = read_npy_header(*memory_stream(rows.file->bytes()), rows.file->size(), path);
  rows.offset = header.data_offset;
  rows.element = header.type.size;
  rows.rows = header.shape[0];
  rows.columns = header.shape[1];
  if (rows.rows != num_nodes) {
    throw UserError(
        path, "features have " + human_count(rows.rows) + " rows, but there are " + human_count(num_nodes) + " nodes",
        "give one row per node, or the number of nodes with --num-nodes");
  }
  if (rows.columns == 0) throw UserError(path, "features have no columns");
  return mapped_rows(rows);
}

}  // namespace nacre
