// Two kinds of failure, never mixed: the user's (bad input, wrong usage: says what, where and what to do; exit code 2)
// and ours (a broken invariant; exit code 1).
#pragma once

#include <stdexcept>
#include <string>

namespace nacre {

class UserError : public std::runtime_error {
 public:
  // One line: "WHERE: WHAT (REMEDY)". `where` is a file, an option or an operation; `remedy` may be empty.
  UserError(const std::string& where, const std::string& what, const std::string& remedy = "");
};

// A failure of the machine at run time (disk full, a device gone): exit code 1.
class RuntimeError : public std::runtime_error {
 public:
  RuntimeError(const std::string& where, const std::string& what);
};

class InternalError : public std::logic_error {
 public:
  InternalError(const char* file, int line, const std::string& what);
};

// Throws InternalError unless `condition` holds. `message` is only evaluated on failure.
#define NACRE_CHECK(condition, message)                                            \
  do {                                                                             \
    if (!(condition)) throw ::nacre::InternalError(__FILE__, __LINE__, (message)); \
  } while (0)

}  // namespace nacre
