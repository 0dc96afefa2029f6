#include "nacre/cuda/compiler.h"

#include <nvrtc.h>

#include <array>
#include <memory>

#include "nacre/base/error.h"
#include "nacre/cuda/library.h"

namespace nacre::cuda {
namespace {

struct Nvrtc {
  Nvrtc() : library("libnvrtc.so." + std::to_string(NACRE_CUDA_MAJOR)) {
    library.find(version, "nvrtcVersion");
    library.find(error_string, "nvrtcGetErrorString");
    library.find(create, "nvrtcCreateProgram");
    library.find(destroy, "nvrtcDestroyProgram");
    library.find(compile, "nvrtcCompileProgram");
    library.find(log_size, "nvrtcGetProgramLogSize");
    library.find(log, "nvrtcGetProgramLog");
    library.find(image_size, "nvrtcGetCUBINSize");
    library.find(image, "nvrtcGetCUBIN");
  }

  Library library;
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcGetErrorString) error_string = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) image_size = nullptr;
  decltype(&nvrtcGetCUBIN) image = nullptr;
};

const Nvrtc& nvrtc() {
  static const Nvrtc functions;
  return functions;
}

void check(nvrtcResult result, const std::string& name) {
  NACRE_CHECK(result == NVRTC_SUCCESS, "NVRTC on " + name + ": " + nvrtc().error_string(result));
}

class Program {
 public:
  Program(const std::string& source, const std::string& name) : name_(name) {
    check(nvrtc().create(&program_, source.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr), name);
  }
  ~Program() { nvrtc().destroy(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void compile(int arch) {
    // On compute capability 9.0, products of four warps need the instruction set sm_90a. Code for
    // sm_90a runs on no other compute capability.
    const std::string target = "--gpu-architecture=sm_" + std::to_string(arch) + (arch == 90 ? "a" : "");
    const std::array options = {target.c_str(), "-std=c++17", "--fmad=true", "--generate-line-info"};
    const nvrtcResult result = nvrtc().compile(program_, static_cast<int>(options.size()), options.data());
    if (result == NVRTC_SUCCESS) return;
    throw InternalError(__FILE__, __LINE__,
                        name_ + " does not compile for sm_" + std::to_string(arch) + ": " +
                            nvrtc().error_string(result) + "\n" + log());
  }

  std::string image() {
    size_t size = 0;
    check(nvrtc().image_size(program_, &size), name_);
    std::string bytes(size, '\0');
    check(nvrtc().image(program_, bytes.data()), name_);
    return bytes;
  }

 private:
  std::string log() {
    size_t size = 0;
    if (nvrtc().log_size(program_, &size) != NVRTC_SUCCESS || size <= 1) return "";
    std::string text(size, '\0');
    if (nvrtc().log(program_, text.data()) != NVRTC_SUCCESS) return "";
    text.resize(size - 1);  // ends with a zero byte
    return text;
  }

  std::string name_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

std::string compile(const std::string& source, const std::string& name, int arch) {
  Program program(source, name);
  program.compile(arch);
  return program.image();
}

std::string compiler_version() {
  int major = 0;
  int minor = 0;
  check(nvrtc().version(&major, &minor), "version");
  return "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace nacre::cuda
