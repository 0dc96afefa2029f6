// Fuzzes a file of torch.save. The input is its pickle. The storages around it are fixed, so that
// mutations reach the tensors and not the checksums of the archive.
#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

#include "fuzz/fuzz.h"
#include "nacre/data/formats/torch_file.h"

namespace {

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value & 255);
}

std::string archive(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string body;
  std::string directory;
  for (const auto& [name, content] : members) {
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    // The part that both headers hold: version, flags, method, time, CRC, sizes, length of the
    // name.
    std::string common;
    put(common, 20, 2);
    put(common, 0, 8);
    put(common, crc, 4);
    put(common, content.size(), 4);
    put(common, content.size(), 4);
    put(common, name.size(), 2);
    put(common, 0, 2);
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 10);
    put(directory, body.size(), 4);
    directory += name;
    put(body, 0x04034b50, 4);
    body += common + name + content;
  }
  std::string end;
  put(end, 0x06054b50, 4);
  put(end, 0, 4);
  put(end, members.size(), 2);
  put(end, members.size(), 2);
  put(end, directory.size(), 4);
  put(end, body.size(), 4);
  put(end, 0, 2);
  return body + directory + end;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string pickle(reinterpret_cast<const char*>(data), size);
  const std::string bytes =
      archive({{"archive/data.pkl", pickle}, {"archive/data/0", std::string(64, '\1')}, {"archive/data/1", ""}});
  nacre::fuzz::run([&] {
    const nacre::TorchFile file(nacre::MappedFile::from_bytes(std::as_bytes(std::span(bytes)), "fuzz"));
    for (const char* key : {"", "train", "valid"}) nacre::fuzz::run([&] { file.numbers(key); });
    nacre::fuzz::run([&] { file.integer("paper"); });
  });
  return 0;
}
