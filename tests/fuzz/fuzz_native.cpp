// Fuzzes Nacre's own format: as it is, and with a corrected checksum of the header, so that
// mutations reach the rest.
#include <cstddef>
#include <cstring>
#include <vector>

#include "fuzz/fuzz.h"
#include "nacre/data/native.h"
#include "nacre/data/native_layout.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  for (const bool sealed : {false, true}) {
    if (sealed) {
      if (size < static_cast<size_t>(nacre::native::kPage)) return 0;
      const uint64_t length = size;
      std::memcpy(bytes.data() + offsetof(nacre::native::FileHeader, file_bytes), &length, 8);
      const uint64_t sum = nacre::native::header_checksum(bytes.data());
      std::memcpy(bytes.data() + offsetof(nacre::native::FileHeader, checksum), &sum, 8);
    }
    const auto file = nacre::fuzz::file_of(bytes);
    nacre::fuzz::run([&] { nacre::read_native(file, true); });
    nacre::fuzz::run([&] {
      const nacre::Dataset dataset = nacre::read_native(file, false);
      nacre::validate(dataset, "fuzz");
      dataset.fingerprint();
    });
  }
  return 0;
}
