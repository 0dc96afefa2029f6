// Shared libraries of the CUDA toolkit, opened when something of them is first needed: each is wanted by a part of the
// plug-in only, and some are hundreds of megabytes.
#pragma once

#include <string>

namespace nacre::cuda {

class Library {
 public:
  // `file` with its major version, as the loader knows it ("libnvrtc.so.13"). Looks where the loader looks, then in
  // CUDA_HOME, CUDA_PATH and the usual folder of the toolkit. Throws UserError where it is not found.
  explicit Library(const std::string& file);

  // Throws InternalError where the library has no such function.
  template <class Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(address(name));
  }

 private:
  void* address(const char* name) const;

  std::string file_;
  void* handle_ = nullptr;  // never closed
};

}  // namespace nacre::cuda
