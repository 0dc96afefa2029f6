#include "nacre/data/npz_write_arrays.h"

#include <fmt/format.h>
#include <zlib.h>

namespace nacre {
namespace {

void put(std::string& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

constexpr uint32_t kSeeZip64 = 0xFFFFFFFF;
constexpr int kVersion = 45;  // the first version of ZIP with ZIP64

}  // namespace

std::string npy_header(std::string_view descr, const Shape& shape) {
  std::string dims;
  for (const int64_t d : shape) dims += std::to_string(d) + ",";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
  text.resize((text.size() + 1 + 10 + 63) / 64 * 64 - 10 - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  put(header, text.size(), 2);
  return header + text;
}

// Returns the local or the central header of a member. The extra field of a local header holds the
// uncompressed and compressed sizes; that of a central header also holds the offset.
std::string NpzWriter::header_of(const Member& m, bool central) {
  std::string h;
  put(h, central ? 0x02014b50 : 0x04034b50, 4);
  if (central) put(h, kVersion, 2);
  put(h, kVersion, 2);
  put(h, 0, 2 + 2 + 2);     // flags, method stored, time
  put(h, (1 << 5) + 1, 2);  // 1980-01-01, so that the bytes do not depend on the time of writing
  put(h, m.crc, 4);
  put(h, kSeeZip64, 4);
  put(h, kSeeZip64, 4);
  put(h, m.name.size(), 2);
  put(h, central ? 28 : 20, 2);
  if (central) {
    h.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
    put(h, kSeeZip64, 4);
  }
  h += m.name;
  put(h, 1, 2);
  put(h, central ? 24 : 16, 2);
  put(h, static_cast<uint64_t>(m.size), 8);
  put(h, static_cast<uint64_t>(m.size), 8);
  if (central) put(h, static_cast<uint64_t>(m.offset), 8);
  return h;
}

void NpzWriter::begin(const std::string& key, const std::string& header) {
  members_.push_back({key + ".npy", 0, end_, 0});
  end_ += static_cast<int64_t>(header_of(members_.back(), false).size());
  append(header);
}

void NpzWriter::append(std::string_view bytes) {
  Member& m = members_.back();
  m.crc = static_cast<uint32_t>(crc32_z(m.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  m.size += static_cast<int64_t>(bytes.size());
  file_.write_at(end_, bytes.data(), static_cast<int64_t>(bytes.size()));
  end_ += static_cast<int64_t>(bytes.size());
}

void NpzWriter::end() {
  const Member& m = members_.back();
  const std::string header = header_of(m, false);
  file_.write_at(m.offset, header.data(), static_cast<int64_t>(header.size()));
}

void NpzWriter::add_word(const std::string& key, std::string_view word) {
  begin(key, npy_header("|S" + std::to_string(word.size()), {}));
  append(word);
  end();
}

void NpzWriter::add_words(const std::string& key, const std::vector<std::string>& words) {
  size_t width = 1;
  for (const std::string& word : words) width = std::max(width, word.size());
  begin(key, npy_header("|S" + std::to_string(width), {static_cast<int64_t>(words.size())}));
  for (std::string word : words) {
    word.resize(width, '\0');
    append(word);
  }
  end();
}

void NpzWriter::finish() {
  std::string tail;
  for (const Member& m : members_) tail += header_of(m, true);
  const uint64_t directory = tail.size();
  const auto directory_at = static_cast<uint64_t>(end_);
  put(tail, 0x06064b50, 4);  // end of the central directory of ZIP64
  put(tail, 44, 8);
  put(tail, kVersion, 2);
  put(tail, kVersion, 2);
  put(tail, 0, 4 + 4);
  put(tail, members_.size(), 8);
  put(tail, members_.size(), 8);
  put(tail, directory, 8);
  put(tail, directory_at, 8);
  put(tail, 0x07064b50, 4);  // locator of that record
  put(tail, 0, 4);
  put(tail, directory_at + directory, 8);
  put(tail, 1, 4);
  put(tail, 0x06054b50, 4);  // end of the central directory
  put(tail, 0, 2 + 2);
  put(tail, 0xFFFF, 2);
  put(tail, 0xFFFF, 2);
  put(tail, kSeeZip64, 4);
  put(tail, kSeeZip64, 4);
  put(tail, 0, 2);
  file_.write_at(end_, tail.data(), static_cast<int64_t>(tail.size()));
  file_.commit();
}

}  // namespace nacre
