// Fuzzes a pickle and every array in it.
#include "fuzz/fuzz.h"
#include "nacre/data/formats/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = nacre::fuzz::file_of({data, size});
  nacre::fuzz::run([&] {
    const nacre::Pickle pickle(file);
    int arrays = 0;
    for (nacre::Pickle::Id id = 0; id < pickle.count() && arrays < 20; ++id) {
      nacre::fuzz::run([&] { pickle.find(id, "_shape"); });
      if (!pickle.is_array(id)) continue;
      ++arrays;
      nacre::fuzz::run([&] { pickle.array(id).to_f32(); });
      nacre::fuzz::run([&] { pickle.array(id).to_i64(nacre::NanAs::minus_one); });
    }
  });
  return 0;
}
