// Writing source from patterns: "${NAME}" is replaced by its value.
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

std::string fill(std::string_view pattern, std::initializer_list<Word> words);
// A float that reads back exactly.
std::string literal(float x);
// Every line two spaces further in, `levels` times.
std::string indent(std::string_view text, int levels);

}  // namespace nacre::cuda
