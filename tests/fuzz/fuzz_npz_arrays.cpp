// Fuzzes the meaning of arrays. The input describes well-formed arrays under the known keys, so
// that mutations are not refused because of a checksum. Each array is key, element type, order and
// rank, two bytes per dimension, elements.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "fuzz/fuzz.h"
#include "nacre/data/npz.h"

namespace {

constexpr const char* kKeys[] = {"edge_index", "src",         "dst",       "x",          "y",
                                 "train_idx",  "val_idx",     "test_idx",  "train_mask", "val_mask",
                                 "test_mask",  "edge_weight", "edge_type", "num_nodes",  "other"};
constexpr const char* kTypes[] = {"<i8", "<f4", "|b1", "<i4", "<u1", "<f2", "<f8", "<u8", ">i4", "<i2", "|i1", "<u4"};

class Input {
 public:
  explicit Input(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  unsigned byte() {
    if (bytes_.empty()) return 0;
    const unsigned value = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::string take(size_t n) {
    std::string text(n, '\0');
    const size_t held = std::min(n, bytes_.size());
    if (held > 0) std::memcpy(text.data(), bytes_.data(), held);
    bytes_ = bytes_.subspan(held);
    return text;
  }

 private:
  std::span<const uint8_t> bytes_;
};

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

std::string array(Input& in) {
  const char* type = kTypes[in.byte() % std::size(kTypes)];
  const unsigned layout = in.byte();
  std::string shape = "(";
  size_t count = 1;
  for (unsigned i = 0; i < (layout >> 1) % 4; ++i) {
    const size_t dimension = in.byte() | ((in.byte() & 3) << 8);
    shape += std::to_string(dimension) + ",";
    count *= dimension;
  }
  if (count > 4096) count = 0;  // shape and size disagree then, which is worth a test, too
  const std::string header = std::string("{'descr': '") + type +
                             "', 'fortran_order': " + ((layout & 1) != 0 ? "True" : "False") + ", 'shape': " + shape +
                             "), }\n";
  std::string out = "\x93NUMPY";
  out += std::string("\x01\0", 2);
  put<uint16_t>(out, static_cast<uint16_t>(header.size()));
  return out + header + in.take(count * static_cast<size_t>(type[2] - '0'));
}

void put_common(std::string& out, const std::string& name, const std::string& bytes) {
  put<uint16_t>(out, 20);
  put<uint16_t>(out, 0);
  put<uint16_t>(out, 0);
  put<uint32_t>(out, 0);
  put<uint32_t>(out, static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size())));
  put<uint32_t>(out, static_cast<uint32_t>(bytes.size()));
  put<uint32_t>(out, static_cast<uint32_t>(bytes.size()));
  put<uint16_t>(out, static_cast<uint16_t>(name.size()));
  put<uint16_t>(out, 0);
}

std::string archive(Input in) {
  std::string out;
  std::string directory;
  uint16_t members = 0;
  for (; !in.empty() && members < 20; ++members) {
    const std::string name = std::string(kKeys[in.byte() % std::size(kKeys)]) + ".npy";
    const std::string bytes = array(in);
    put<uint32_t>(directory, 0x02014b50);
    put<uint16_t>(directory, 20);
    put_common(directory, name, bytes);
    directory += std::string(10, '\0');
    put<uint32_t>(directory, static_cast<uint32_t>(out.size()));
    directory += name;
    put<uint32_t>(out, 0x04034b50);
    put_common(out, name, bytes);
    out += name + bytes;
  }
  const auto offset = static_cast<uint32_t>(out.size());
  out += directory;
  put<uint32_t>(out, 0x06054b50);
  put<uint32_t>(out, 0);
  put<uint16_t>(out, members);
  put<uint16_t>(out, members);
  put<uint32_t>(out, static_cast<uint32_t>(directory.size()));
  put<uint32_t>(out, offset);
  put<uint16_t>(out, 0);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes = archive(Input({data, size}));
  const auto file = nacre::fuzz::file_of({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  nacre::fuzz::run([&] {
    const nacre::Dataset dataset = nacre::read_npz(file, {});
    nacre::validate(dataset, "fuzz");
    dataset.fingerprint();
  });
  return 0;
}
