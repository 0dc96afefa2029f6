#include "nacre/data/formats/inputs.h"

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/convert/feature_file.h"
#include "nacre/data/node_data.h"
#include "nacre/data/text.h"

namespace nacre {
namespace {

bool row_by_row(const NpyHeader& header) { return !header.fortran && header.shape.size() == 2 && header.shape[1] > 0; }

// Returns the bytes of features in memory, which are 0 if the file can be mapped as it is.
int64_t memory_of(const NpyHeader& header, bool mapped) {
  const bool as_it_is = header.type.kind == 'f' && header.type.size == 4 && !header.type.swap && !header.fortran;
  return mapped && as_it_is ? 0 : header.count * static_cast<int64_t>(sizeof(float));
}

void require_rows(int64_t rows, int64_t vertices, const std::string& where) {
  if (rows == vertices) return;
  throw UserError(
      where + " row " + std::to_string(std::min(rows, vertices)),
      "features have " + human_count(rows) + " rows, but there are " + human_count(vertices) + " such nodes",
      "the data set is incomplete: fetch it again");
}

// Returns a function that reads about a million values, in whole rows, at a time.
std::function<bool(std::vector<float>&)> pull_from(std::shared_ptr<NpyReader> array) {
  return [array = std::move(array), row = int64_t{0}](std::vector<float>& values) mutable {
    const int64_t columns = array->shape()[1];
    const int64_t count = std::min(array->shape()[0] - row, std::max<int64_t>(1, (1 << 20) / columns));
    if (count == 0) return false;
    values.resize(values.size() + static_cast<size_t>(count * columns));
    array->next_f32(values.data() + values.size() - count * columns, count * columns);
    row += count;
    return true;
  };
}

}  // namespace

EdgeInput text_edges(const std::shared_ptr<const MappedFile>& file) {
  // A gzipped edge list is assumed to take at least one byte for each edge.
  const int64_t at_most = file->starts_with("\x1F\x8B") ? file->size() : file->size() / 4 + 1;
  return {file->name(), [file] { return open_edge_text(file); }, at_most};
}

EdgeInput npy_edges(const std::shared_ptr<const MappedFile>& file, PairLayout layout) {
  const int64_t count = open_edge_npy(file, layout)->most_edges();
  return {file->name(), [file, layout] { return open_edge_npy(file, layout); }, count};
}

EdgeInput npz_edges(const NpzFile& npz, const std::string& key, PairLayout layout) {
  const NpyReader array = npz.open(key);
  return {array.where(), [npz, key, layout] { return open_edge_npz(npz, key, layout); }, array.header().count / 2};
}

LargestEnds largest_ends(const EdgeInput& edges) {
  LargestEnds largest;
  const std::unique_ptr<EdgeSource> source = edges.open();
  std::vector<EdgePart> parts;
  int64_t before = 0;
  const auto take = [&](const std::vector<NodeId>& ids, int64_t& top, int64_t& edge) {
    const auto found = std::max_element(ids.begin(), ids.end());
    if (found == ids.end() || int64_t{*found} <= top) return;
    top = *found;
    edge = before + (found - ids.begin());
  };
  while (source->next(parts)) {
    for (const EdgePart& part : parts) {
      take(part.src, largest.src, largest.src_edge);
      take(part.dst, largest.dst, largest.dst_edge);
      before += static_cast<int64_t>(part.src.size());
    }
  }
  return largest;
}

FeatureInput npy_features(const std::shared_ptr<const MappedFile>& file) {
  const NpyHeader header = NpyReader(file).header();
  FeatureInput input;
  input.where = file->name();
  input.rows = header.shape.empty() ? 0 : header.shape[0];
  input.columns = header.shape.size() == 2 ? header.shape[1] : 1;
  input.memory = memory_of(header, true);
  input.read = [file] { return features_from(NpyReader(file)); };
  if (!row_by_row(header)) return input;
  input.stream = [file, header](int64_t vertices) {
    require_rows(header.shape[0], vertices, file->name());
    if (header.type.kind != 'f' || header.type.swap) {
      return rows_in_turn(vertices, header.shape[1], file->name(), pull_from(std::make_shared<NpyReader>(file)));
    }
    return mapped_rows({file, header.data_offset, header.type.size, header.shape[0], header.shape[1]});
  };
  return input;
}

FeatureInput npz_features(const NpzFile& npz, const std::string& key) {
  const NpyReader array = npz.open(key);
  const NpyHeader& header = array.header();
  FeatureInput input;
  input.where = array.where();
  input.rows = header.shape.empty() ? 0 : header.shape[0];
  input.columns = header.shape.size() == 2 ? header.shape[1] : 1;
  input.memory = memory_of(header, false);
  input.read = [npz, key] { return features_from(npz.open(key)); };
  if (!row_by_row(header)) return input;
  input.stream = [npz, key, header, where = input.where](int64_t vertices) {
    require_rows(header.shape[0], vertices, where);
    auto pull = pull_from(std::make_shared<NpyReader>(npz.open(key)));
    return rows_in_turn(vertices, header.shape[1], where, [npz, pull](std::vector<float>& v) { return pull(v); });
  };
  return input;
}

FeatureInput text_features(const std::shared_ptr<const MappedFile>& file) {
  FeatureInput input;
  input.where = file->name();
  input.memory = file->size() * (file->starts_with("\x1F\x8B") ? 4 : 2);
  input.read = [file] { return read_text_matrix(file, NanAs::error).tensor(); };
  input.stream = [file](int64_t vertices) {
    auto rows = std::make_shared<TextRows>(file, NanAs::error);
    if (rows->columns() == 0) rows->fail(rows->lines(), "the file ends without a row of numbers: there are no rows");
    return rows_in_turn(vertices, rows->columns(), file->name(),
                        [rows](std::vector<float>& v) { return rows->next(v); });
  };
  return input;
}

FeatureInput raw_features(const std::shared_ptr<const MappedFile>& file, int64_t width) {
  const int64_t row = width * static_cast<int64_t>(sizeof(float));
  if (file->size() == 0 || file->size() % row != 0) {
    throw UserError(file->name() + " at byte " + std::to_string(file->size() / row * row),
                    "has no .npy header, and its " + std::to_string(file->size()) +
                        " bytes are no whole number of rows of " + std::to_string(width) + " f32",
                    "the file is truncated: fetch it again");
  }
  FeatureInput input;
  input.where = file->name();
  input.rows = file->size() / row;
  input.columns = width;
  const Shape shape{input.rows, width};
  input.read = [file, shape] { return NpyReader::headerless(file, {}, shape).to_f32(); };
  input.stream = [file, shape](int64_t vertices) {
    require_rows(shape[0], vertices, file->name());
    return mapped_rows({file, 0, 4, shape[0], shape[1]});
  };
  return input;
}

}  // namespace nacre
