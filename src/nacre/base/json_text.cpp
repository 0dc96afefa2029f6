#include "nacre/base/json_text.h"

namespace nacre {

bool json_too_deep(std::string_view text) {
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;  // the character after a backslash does not end the string
      if (c == '"') in_text = false;
      continue;
    }
    if (c == '"') in_text = true;
    if ((c == '{' || c == '[') && ++depth > kMaxJsonDepth) return true;
    if (c == '}' || c == ']') --depth;
  }
  return false;
}

std::string json_error_text(std::string_view what) {
  // The library's messages look like "[json.exception.parse_error.101] parse error at line 3,
  // column 7: …".
  const size_t start = what.find("] ");
  return std::string(what.starts_with('[') && start != std::string_view::npos ? what.substr(start + 2) : what);
}

}  // namespace nacre
