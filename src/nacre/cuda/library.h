// Shared libraries of the CUDA toolkit. Each is opened when it is first needed, because only a part
// of the plug-in uses it, and some have hundreds of megabytes.
#pragma once

#include <string>

namespace nacre::cuda {

class Library {
 public:
  // Opens the library `file`, a name with the major version, for example "libnvrtc.so.13". The
  // library is searched for where the dynamic loader looks, then in CUDA_HOME, CUDA_PATH and the
  // usual folder of the toolkit. Throws UserError if it is not found.
  explicit Library(const std::string& file);

  // Sets `function` to the function of this name. Throws InternalError if the library has none.
  template <class Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(address(name));
  }

 private:
  void* address(const char* name) const;

  std::string file_;
  void* handle_ = nullptr;  // the library is never closed
};

}  // namespace nacre::cuda
