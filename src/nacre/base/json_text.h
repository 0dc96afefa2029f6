// The door through which JSON from outside comes in. Files may be nested without end, and most of what one does with a
// JSON value is recursive: text that goes deeper than kMaxJsonDepth is refused before it is parsed. The JSON library is
// seen only by the files that name its type.
#pragma once

#include <string>
#include <string_view>

#include "nacre/base/error.h"

namespace nacre {

constexpr int kMaxJsonDepth = 64;

// Whether objects and lists in `text` lie more than kMaxJsonDepth deep. The text need not be valid.
bool json_too_deep(std::string_view text);
// The library's message without its own name and number in front.
std::string json_error_text(std::string_view what);

// Throws UserError naming `where` when `text` is not valid JSON or too deep.
template <class Json>
Json parse_json(std::string_view text, const std::string& where) {
  if (json_too_deep(text)) throw UserError(where, "is JSON nested too deeply");
  try {
    return Json::parse(text);
  } catch (const typename Json::exception& error) {
    throw UserError(where, "is not valid JSON: " + json_error_text(error.what()));
  }
}

// A discarded value, which is neither an object nor a list nor anything else, when `text` is invalid or too deep.
template <class Json>
Json parse_json_or_discard(std::string_view text) {
  return Json::parse(json_too_deep(text) ? std::string_view() : text, nullptr, false);
}

}  // namespace nacre
