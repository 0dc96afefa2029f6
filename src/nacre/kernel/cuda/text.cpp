#include "nacre/kernel/cuda/text.h"

#include <cmath>
#include <cstdio>

#include "nacre/base/error.h"

namespace nacre::cuda {

std::string fill(std::string_view pattern, std::initializer_list<Word> words) {
  std::string out;
  while (true) {
    const size_t at = pattern.find("${");
    out += pattern.substr(0, at);
    if (at == std::string_view::npos) return out;
    const size_t end = pattern.find('}', at);
    NACRE_CHECK(end != std::string_view::npos, "a pattern ends in the middle of a name");
    const std::string_view name = pattern.substr(at + 2, end - at - 2);
    const Word* found = nullptr;
    for (const Word& w : words) {
      if (w.name == name) found = &w;
    }
    NACRE_CHECK(found != nullptr, "a pattern names ${" + std::string(name) + "}, which has no value");
    out += found->value;
    pattern.remove_prefix(end + 1);
  }
}

std::string literal(float x) {
  if (std::isinf(x)) return x > 0 ? "__int_as_float(0x7f800000)" : "__int_as_float(0xff800000)";
  char text[48];
  std::snprintf(text, sizeof text, "%.9e", static_cast<double>(x));
  return std::string(text) + "f";
}

std::string indent(std::string_view text, int levels) {
  std::string out;
  bool fresh = true;
  for (const char c : text) {
    if (fresh && c != '\n' && c != '#') out.append(static_cast<size_t>(levels) * 2, ' ');
    out += c;
    fresh = c == '\n';
  }
  return out;
}

}  // namespace nacre::cuda
