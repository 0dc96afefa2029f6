// Nacre tells three kinds of failure apart: UserError (bad input or wrong usage; exit code 2),
// RuntimeError (the machine fails, for example its disk is full; exit code 1) and InternalError (an
// invariant of Nacre is broken; exit code 1). A UserError says what is wrong, where, and what to
// do.
#pragma once

#include <stdexcept>
#include <string>

namespace nacre {

class UserError : public std::runtime_error {
 public:
  // The message is one line: "WHERE: WHAT (REMEDY)". `where` names a file, an option or an
  // operation; `remedy` may be empty.
  UserError(const std::string& where, const std::string& what, const std::string& remedy = "");
};

// A failure of the machine at run time, for example a full disk or a lost device. The exit code is
// 1.
class RuntimeError : public std::runtime_error {
 public:
  RuntimeError(const std::string& where, const std::string& what);
};

class InternalError : public std::logic_error {
 public:
  InternalError(const char* file, int line, const std::string& what);
};

// Throws InternalError unless `condition` holds. `message` is evaluated only if it does not hold.
#define NACRE_CHECK(condition, message)                                            \
  do {                                                                             \
    if (!(condition)) throw ::nacre::InternalError(__FILE__, __LINE__, (message)); \
  } while (0)

}  // namespace nacre
