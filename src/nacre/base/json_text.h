// All JSON from outside is read through these functions. Files may be nested without limit, and
// most code that handles a JSON value is recursive, so text nested deeper than kMaxJsonDepth is
// refused before it is parsed. The functions are templates so that only files that name the type of
// the JSON library include it.
#pragma once

#include <string>
#include <string_view>

#include "nacre/base/error.h"

namespace nacre {

constexpr int kMaxJsonDepth = 64;

// Returns whether objects and lists in `text` are nested more than kMaxJsonDepth deep. `text` need
// not be valid.
bool json_too_deep(std::string_view text);
// Returns the message of the JSON library without the library's name and error number at its
// beginning.
std::string json_error_text(std::string_view what);

// Returns the parsed value. Throws UserError naming `where` if `text` is not valid JSON or is
// nested too deeply.
template <class Json>
Json parse_json(std::string_view text, const std::string& where) {
  if (json_too_deep(text)) throw UserError(where, "is JSON nested too deeply");
  try {
    return Json::parse(text);
  } catch (const typename Json::exception& error) {
    throw UserError(where, "is not valid JSON: " + json_error_text(error.what()));
  }
}

// Returns the parsed value. If `text` is invalid or nested too deeply, returns a discarded value,
// which is of no JSON type at all.
template <class Json>
Json parse_json_or_discard(std::string_view text) {
  return Json::parse(json_too_deep(text) ? std::string_view() : text, nullptr, false);
}

}  // namespace nacre
