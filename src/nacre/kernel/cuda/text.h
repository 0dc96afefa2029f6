// Helpers that write source text from patterns.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace nacre::cuda {

struct Word {
  std::string_view name;
  std::string value;
  Word(std::string_view n, std::string v) : name(n), value(std::move(v)) {}
  Word(std::string_view n, int64_t v) : name(n), value(std::to_string(v)) {}
};

// Returns the pattern with each ${NAME} replaced by its value. Throws if a name has no value.
std::string fill(std::string_view pattern, std::initializer_list<Word> words);
// Returns x as a CUDA literal of exactly the same value.
std::string literal(float x);
// Returns the text with every line indented by 2 · levels spaces.
std::string indent(std::string_view text, int levels);

}  // namespace nacre::cuda
