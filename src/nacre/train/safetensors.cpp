#include "nacre/train/safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/pending_file.h"

namespace nacre {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kMaxHeader = 16 << 20;
constexpr uint64_t kMaxDim = std::numeric_limits<int64_t>::max();

struct TypeName {
  DType dtype;
  const char* name;
};
constexpr TypeName kTypes[] = {{DType::f32, "F32"}, {DType::f64, "F64"}, {DType::bf16, "BF16"},
                               {DType::u8, "U8"},   {DType::i32, "I32"}, {DType::i64, "I64"}};

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw UserError(path, "is not a valid safetensors file: " + what);
}

// Describes one entry of the header, with its place in the data.
struct Entry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

Entry parse_entry(const std::string& path, const std::string& name, const ordered_json& entry, uint64_t data_bytes) {
  const bool shaped = entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() &&
                      entry.contains("shape") && entry["shape"].is_array() && entry.contains("data_offsets") &&
                      entry["data_offsets"].is_array() && entry["data_offsets"].size() == 2;
  if (!shaped) bad(path, "entry '" + name + "' is malformed");
  const auto type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return entry["dtype"] == t.name; });
  if (type == std::end(kTypes)) bad(path, "entry '" + name + "' has an element type this program does not know");
  Shape shape;
  uint64_t bytes = static_cast<uint64_t>(dtype_size(type->dtype));
  for (const auto& d : entry["shape"]) {
    if (!d.is_number_unsigned()) bad(path, "entry '" + name + "' has a bad shape");
    const auto dim = d.get<uint64_t>();
    if (dim > kMaxDim || (dim != 0 && bytes > data_bytes / dim))
      bad(path, "entry '" + name + "' is larger than the file");
    bytes *= dim;
    shape.push_back(static_cast<int64_t>(dim));
  }
  for (const auto& o : entry["data_offsets"]) {
    if (!o.is_number_unsigned()) bad(path, "entry '" + name + "' has bad offsets");
  }
  const auto begin = entry["data_offsets"][0].get<uint64_t>();
  const auto end = entry["data_offsets"][1].get<uint64_t>();
  if (begin > end || end > data_bytes || end - begin != bytes) bad(path, "entry '" + name + "' has bad offsets");
  return {name, type->dtype, std::move(shape), begin, end};
}

// Throws UserError unless the values of all entries fill the data without gap or overlap, as the
// format requires.
void check_places(const std::string& path, const std::vector<Entry>& entries, uint64_t data_bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> places;
  places.reserve(entries.size());
  for (const Entry& e : entries) places.emplace_back(e.begin, e.end);
  std::sort(places.begin(), places.end());
  uint64_t filled = 0;
  for (const auto& [begin, end] : places) {
    if (begin != filled) bad(path, "values overlap or leave a gap");
    filled = end;
  }
  if (filled != data_bytes) bad(path, "it does not end where its values do");
}

ordered_json read_header(const std::string& path, std::ifstream& file, uint64_t size) {
  uint64_t length = 0;
  if (!file.read(reinterpret_cast<char*>(&length), sizeof length)) bad(path, "it is cut short");
  if (length > kMaxHeader || length > size - sizeof length) bad(path, "the header is too long");
  std::string text(static_cast<size_t>(length), '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) bad(path, "it is cut short");
  ordered_json header = parse_json_or_discard<ordered_json>(text);
  if (!header.is_object()) bad(path, "the header is not JSON");
  return header;
}

// Holds a file whose header has been read and checked.
struct Opened {
  std::ifstream file;
  uint64_t data_begin = 0;
  Metadata metadata;
  std::vector<Entry> entries;
};

Opened open_safetensors(const std::string& path) {
  std::error_code error;
  const auto size = static_cast<uint64_t>(std::filesystem::file_size(path, error));
  Opened opened;
  opened.file.open(path, std::ios::binary);
  if (error || !opened.file) throw UserError(path, "cannot be read");
  const ordered_json header = read_header(path, opened.file, size);
  opened.data_begin = static_cast<uint64_t>(opened.file.tellg());
  const uint64_t data_bytes = size - opened.data_begin;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      opened.entries.push_back(parse_entry(path, name, entry, data_bytes));
      continue;
    }
    if (!entry.is_object()) continue;
    for (const auto& [key, value] : entry.items()) {
      if (value.is_string()) opened.metadata.emplace_back(key, value.get<std::string>());
    }
  }
  check_places(path, opened.entries, data_bytes);
  return opened;
}

}  // namespace

void write_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata) {
  ordered_json header;
  for (const auto& [key, value] : metadata) header["__metadata__"][key] = value;
  int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const DType dtype = tensor.dtype();
    const auto type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return t.dtype == dtype; });
    header[name] = {
        {"dtype", type->name}, {"shape", tensor.shape()}, {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = header.is_null() ? "{}" : header.dump();
  // The header of a safetensors file may end in blanks. They make the values begin at a multiple of
  // 8 bytes.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  PendingFile file(path);
  const auto length = static_cast<uint64_t>(text.size());
  file.append(&length, sizeof length);
  file.append(text);
  for (const auto& [name, tensor] : tensors) file.append(tensor.raw(), tensor.bytes());
  file.commit();
}

NamedTensors read_safetensors(const std::string& path, const std::string& prefix) {
  Opened opened = open_safetensors(path);
  NamedTensors tensors;
  for (const Entry& e : opened.entries) {
    if (!e.name.starts_with(prefix)) continue;
    Tensor tensor(e.dtype, e.shape);
    opened.file.seekg(static_cast<std::streamoff>(opened.data_begin + e.begin));
    if (e.end > e.begin &&
        !opened.file.read(static_cast<char*>(tensor.raw()), static_cast<std::streamsize>(e.end - e.begin))) {
      bad(path, "it is cut short");
    }
    tensors.emplace_back(e.name, std::move(tensor));
  }
  return tensors;
}

SafetensorsHeader read_safetensors_header(const std::string& path, const std::string& prefix) {
  Opened opened = open_safetensors(path);
  SafetensorsHeader header{std::move(opened.metadata), 0};
  for (const Entry& e : opened.entries) {
    if (e.name.starts_with(prefix)) header.bytes += static_cast<int64_t>(e.end - e.begin);
  }
  return header;
}

}  // namespace nacre
