#include "data/fixtures.h"

#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>

namespace nacre::test {
namespace {

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

std::string pack_with(const std::string& bytes, int window_bits) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&z, bytes.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  return out;
}

struct Placed {
  const Member* member;
  std::string packed;
  uint32_t crc;
  uint64_t size;
  uint64_t offset;
  uint16_t method;
  uint16_t flags;
};

std::string zip64_extra(const Placed& p) {
  std::string extra;
  put<uint16_t>(extra, 1);
  put<uint16_t>(extra, 24);
  put<uint64_t>(extra, p.size);
  put<uint64_t>(extra, p.packed.size());
  put<uint64_t>(extra, p.offset);
  return extra;
}

void put_local(std::string& out, const Placed& p) {
  const bool zip64 = p.member->zip64;
  const bool later = p.member->data_descriptor;
  put<uint32_t>(out, 0x04034b50);
  put<uint16_t>(out, zip64 ? 45 : 20);
  put<uint16_t>(out, p.flags);
  put<uint16_t>(out, p.method);
  put<uint32_t>(out, 0x00210000);
  put<uint32_t>(out, later ? 0 : p.crc);
  put<uint32_t>(out, later ? 0 : zip64 ? 0xFFFFFFFF : static_cast<uint32_t>(p.packed.size()));
  put<uint32_t>(out, later ? 0 : zip64 ? 0xFFFFFFFF : static_cast<uint32_t>(p.size));
  put<uint16_t>(out, static_cast<uint16_t>(p.member->name.size()));
  put<uint16_t>(out, zip64 ? 20 : 0);
  out += p.member->name;
  if (zip64) {
    put<uint16_t>(out, 1);
    put<uint16_t>(out, 16);
    put<uint64_t>(out, p.size);
    put<uint64_t>(out, p.packed.size());
  }
  out += p.packed;
  if (later) {
    put<uint32_t>(out, 0x08074b50);
    put<uint32_t>(out, p.crc);
    put<uint32_t>(out, static_cast<uint32_t>(p.packed.size()));
    put<uint32_t>(out, static_cast<uint32_t>(p.size));
  }
}

void put_central(std::string& out, const Placed& p) {
  const bool zip64 = p.member->zip64;
  const std::string extra = zip64 ? zip64_extra(p) : "";
  put<uint32_t>(out, 0x02014b50);
  put<uint16_t>(out, 20);
  put<uint16_t>(out, zip64 ? 45 : 20);
  put<uint16_t>(out, p.flags);
  put<uint16_t>(out, p.method);
  put<uint32_t>(out, 0x00210000);
  put<uint32_t>(out, p.crc);
  put<uint32_t>(out, zip64 ? 0xFFFFFFFF : static_cast<uint32_t>(p.packed.size()));
  put<uint32_t>(out, zip64 ? 0xFFFFFFFF : static_cast<uint32_t>(p.size));
  put<uint16_t>(out, static_cast<uint16_t>(p.member->name.size()));
  put<uint16_t>(out, static_cast<uint16_t>(extra.size()));
  put<uint16_t>(out, 0);
  put<uint16_t>(out, 0);
  put<uint16_t>(out, 0);
  put<uint32_t>(out, 0);
  put<uint32_t>(out, zip64 ? 0xFFFFFFFF : static_cast<uint32_t>(p.offset));
  out += p.member->name + extra;
}

}  // namespace

std::shared_ptr<const MappedFile> in_memory(const std::string& bytes, const std::string& name) {
  return MappedFile::from_bytes(std::as_bytes(std::span(bytes.data(), bytes.size())), name);
}

std::string npy_with_header(const std::string& header, const std::string& payload, int version) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  if (version == 1) {
    put<uint16_t>(out, static_cast<uint16_t>(header.size()));
  } else {
    put<uint32_t>(out, static_cast<uint32_t>(header.size()));
  }
  return out + header + payload;
}

std::string npy(const NpyText& h, const std::string& payload) {
  std::string text = "{'descr': '" + h.descr + "', 'fortran_order': " + (h.fortran ? "True" : "False") +
                     ", 'shape': " + h.shape + ", }";
  const size_t prefix = h.version == 1 ? 10 : 12;
  while ((prefix + text.size() + 1) % 64 != 0) text += ' ';
  return npy_with_header(text + "\n", payload, h.version);
}

// Returns a shape of one dimension as Python writes it. The text is appended piece by piece,
// because GCC 12 gives a wrong warning about "(" + std::to_string(…).
std::string line_shape(size_t count) {
  std::string text = "(";
  text += std::to_string(count);
  return text + ",)";
}

std::string npy_i64(const std::vector<int64_t>& values, const std::string& shape) {
  return npy({"<i8", shape.empty() ? line_shape(values.size()) : shape}, raw(values));
}

std::string npy_f32(const std::vector<float>& values, const std::string& shape) {
  return npy({"<f4", shape.empty() ? line_shape(values.size()) : shape}, raw(values));
}

std::string deflate_raw(const std::string& bytes) { return pack_with(bytes, -15); }
std::string gzip(const std::string& bytes) { return pack_with(bytes, 15 + 16); }

// Computes the CRC bit by bit from the polynomial, without zlib.
uint32_t crc_of(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

std::string zip(const std::vector<Member>& members, const ZipText& text) {
  std::string out;
  std::string directory;
  for (const Member& m : members) {
    Placed p{&m,
             m.pack == Pack::deflated ? deflate_raw(m.bytes) : m.bytes,
             crc_of(m.bytes) ^ m.crc_change,
             m.bytes.size(),
             out.size(),
             static_cast<uint16_t>(m.pack == Pack::deflated ? 8 : 0),
             m.flags};
    if (m.claimed_size >= 0) p.size = static_cast<uint64_t>(m.claimed_size);
    if (m.method != 0xFFFF) p.method = m.method;
    if (m.data_descriptor) p.flags |= 8;
    put_local(out, p);
    put_central(directory, p);
  }
  const uint64_t offset = out.size();
  out += directory;
  if (text.zip64) {
    const uint64_t end64 = out.size();
    put<uint32_t>(out, 0x06064b50);
    put<uint64_t>(out, 44);
    put<uint16_t>(out, 45);
    put<uint16_t>(out, 45);
    put<uint32_t>(out, 0);
    put<uint32_t>(out, 0);
    put<uint64_t>(out, members.size());
    put<uint64_t>(out, members.size());
    put<uint64_t>(out, directory.size());
    put<uint64_t>(out, offset);
    put<uint32_t>(out, 0x07064b50);
    put<uint32_t>(out, 0);
    put<uint64_t>(out, end64);
    put<uint32_t>(out, 1);
  }
  put<uint32_t>(out, 0x06054b50);
  put<uint16_t>(out, 0);
  put<uint16_t>(out, 0);
  put<uint16_t>(out, text.zip64 ? 0xFFFF : static_cast<uint16_t>(members.size()));
  put<uint16_t>(out, text.zip64 ? 0xFFFF : static_cast<uint16_t>(members.size()));
  put<uint32_t>(out, text.zip64 ? 0xFFFFFFFF : static_cast<uint32_t>(directory.size()));
  put<uint32_t>(out, text.zip64 ? 0xFFFFFFFF : static_cast<uint32_t>(offset));
  put<uint16_t>(out, static_cast<uint16_t>(text.comment.size()));
  return out + text.comment;
}

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "nacre-test-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TempDir::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
  return path(name);
}

std::vector<std::string> TempDir::files() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
MemoryLimit::MemoryLimit() = default;
MemoryLimit::~MemoryLimit() = default;
#else
MemoryLimit::MemoryLimit() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  before_ = limit.rlim_cur;
  limit.rlim_cur = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + (256u << 20);
  setrlimit(RLIMIT_AS, &limit);
}
MemoryLimit::~MemoryLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = before_;
  setrlimit(RLIMIT_AS, &limit);
}
#endif

std::string user_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "not a UserError: " << e.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

bool survives(const std::function<void()>& body, const std::string& what) {
  try {
    body();
    return true;
  } catch (const UserError&) {
    return false;
  } catch (const std::exception& e) {
    ADD_FAILURE() << what << ": not a UserError: " << e.what();
    return false;
  }
}

void for_each_truncation(const std::string& bytes, const std::function<void(const std::string&, size_t)>& read) {
  for (size_t n = 0; n < bytes.size(); ++n) read(bytes.substr(0, n), n);
}

void for_each_flip(const std::string& bytes, const std::function<void(const std::string&, size_t)>& read) {
  constexpr std::array<unsigned char, 4> masks = {0x01, 0x20, 0x80, 0xFF};
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const unsigned char mask : masks) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(static_cast<unsigned char>(damaged[i]) ^ mask);
      read(damaged, i);
    }
  }
}

}  // namespace nacre::test
