#include "nacre/base/error.h"

#include <algorithm>
#include <cstring>

#include "nacre/base/printable.h"

namespace nacre {
namespace {

std::string one_line(const std::string& where, const std::string& what, const std::string& remedy) {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!remedy.empty()) text += " (" + remedy + ")";
  // A remedy may be written in several lines, so line breaks become blanks here. printable() would
  // show them as \n.
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return printable(text);
}

}  // namespace

UserError::UserError(const std::string& where, const std::string& what, const std::string& remedy)
    : std::runtime_error(one_line(where, what, remedy)) {}

RuntimeError::RuntimeError(const std::string& where, const std::string& what)
    : std::runtime_error(one_line(where, what, "")) {}

InternalError::InternalError(const char* file, int line, const std::string& what)
    : std::logic_error(std::string("internal error at ") +
                       (std::strrchr(file, '/') ? std::strrchr(file, '/') + 1 : file) + ":" + std::to_string(line) +
                       ": " + what) {}

}  // namespace nacre
