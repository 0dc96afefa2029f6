// Fuzzes text: edge lists, tables of numbers, words. The reader itself recognises gzip, so this
// serves both text targets.
#include "fuzz/fuzz.h"
#include "nacre/data/edge_list.h"
#include "nacre/data/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = nacre::fuzz::file_of({data, size});
  nacre::fuzz::run([&] { nacre::read_edge_list(file, {}).fingerprint(); });
  nacre::fuzz::run([&] { nacre::read_text_matrix(file, nacre::NanAs::error); });
  nacre::fuzz::run([&] { nacre::read_text_matrix(file, nacre::NanAs::minus_one); });
  nacre::fuzz::run([&] { nacre::for_each_word(file, [](std::string_view, int64_t) {}); });
  return 0;
}
