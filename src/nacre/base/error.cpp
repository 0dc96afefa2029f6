#include "nacre/base/error.h"

#include <cstring>

namespace nacre {
namespace {

std::string one_line(const std::string& where, const std::string& what, const std::string& remedy) {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!remedy.empty()) text += " (" + remedy + ")";
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
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
