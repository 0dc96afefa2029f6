// Opens plug-ins: libraries beside the program, which the program opens only if it needs them.
#pragma once

#include <string>

namespace nacre {

struct PluginFunction {
  void* address = nullptr;  // the function; null if it could not be loaded
  std::string path;         // path of the library; empty if no library was found
  std::string why;          // why the library that was found cannot be used; otherwise empty
};

// Opens the library `file` and returns its function `name`. If `only_place` is not empty, it names
// the library itself or the folder that the library lies in. If it is empty, the library is looked
// for beside the program (in a build folder or a bundle), above it (in a wheel), where an
// installation puts libraries, and beside the library that this code is part of, if it is part of
// one. The library is never closed, because its exceptions and objects may live until the process
// ends.
PluginFunction open_plugin_function(const std::string& file, const char* name, const std::string& only_place = "");

}  // namespace nacre
