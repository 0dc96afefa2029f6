// Fuzzes an archive as it is: container, compression, checksums; then the data set in it.
#include <algorithm>
#include <vector>

#include "fuzz/fuzz.h"
#include "nacre/data/npz.h"
#include "nacre/data/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = nacre::fuzz::file_of({data, size});
  nacre::fuzz::run([&] {
    const nacre::ZipArchive archive(file);
    std::vector<char> buffer(4096);
    for (const nacre::ZipEntry& entry : archive.entries()) {
      nacre::fuzz::run([&] {
        const auto stream = archive.open(entry);
        while (stream->read(buffer.data(), static_cast<int64_t>(buffer.size())) > 0) {
        }
      });
    }
  });
  nacre::fuzz::run([&] {
    const nacre::Dataset dataset = nacre::read_npz(file, {});
    nacre::validate(dataset, "fuzz");
    dataset.fingerprint();
  });
  return 0;
}
