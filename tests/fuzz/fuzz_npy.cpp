// Fuzzes one .npy array, read in every possible way.
#include "fuzz/fuzz.h"
#include "nacre/data/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = nacre::fuzz::file_of({data, size});
  nacre::fuzz::run([&] { nacre::NpyReader(file).to_f32(); });
  nacre::fuzz::run([&] { nacre::NpyReader(file).to_i64(nacre::NanAs::minus_one); });
  nacre::fuzz::run([&] { nacre::NpyReader(file).scalar_i64(); });
  return 0;
}
