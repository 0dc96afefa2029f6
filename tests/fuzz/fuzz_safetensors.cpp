// Fuzzes a safetensors file, through the descriptor of a file in memory, because the reader takes
// paths.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "fuzz/fuzz.h"
#include "nacre/train/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) return 0;
  nacre::fuzz::run([] {
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    nacre::read_safetensors_header(path);
    nacre::read_safetensors(path);
  });
  return 0;
}
