// This file hands the command line over to the Python package, which can run models that are
// written in Python.
#pragma once

#include <string>
#include <vector>

namespace nacre::cli {

// Replaces this process by `python3 -m nacre` with these arguments; NACRE_PYTHON names another
// interpreter. `file` is the model file that needs Python. The package must have the version of
// this program. The function never returns; it throws UserError if Python cannot be started.
[[noreturn]] void run_in_python(const std::vector<std::string>& arguments, const std::string& file);

}  // namespace nacre::cli
