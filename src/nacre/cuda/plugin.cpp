// Defines nacre_cuda_plugin(), the only function that the plug-in exports.
#include "nacre/cuda/compiler.h"
#include "nacre/cuda/context.h"
#include "nacre/cuda/cuda_device.h"
#include "nacre/device/abi.h"

namespace nacre::cuda {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Returns the number of devices; if there are none, sets `why` to the reason.
int count_devices(std::string& why) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess) cudaGetLastError();
  if (code == cudaSuccess || code == cudaErrorNoDevice) {
    why = "the driver shows no GPU";
  } else if (version == 0) {
    why = "no NVIDIA driver is installed";
  } else if (code == cudaErrorInsufficientDriver) {
    why = "the driver knows CUDA " + version_text(version) + ", this program needs " + version_text(CUDART_VERSION);
  } else {
    why = describe(code);
  }
  return 0;
}

class Plugin final : public DevicePlugin {
 public:
  std::vector<DeviceInfo> devices() override {
    std::string why;
    const int count = count_devices(why);
    std::vector<DeviceInfo> found;
    found.reserve(count);
    for (int i = 0; i < count; ++i) found.push_back(query_device(i));
    return found;
  }

  std::string why_no_devices() override {
    std::string why;
    count_devices(why);
    return why;
  }

  std::unique_ptr<Device> open(int index, int multiprocessors) override {
    std::string why;
    const int count = count_devices(why);
    if (count == 0) throw UserError("cuda", why, "train with --device cpu; nacre devices lists the devices");
    if (index < 0 || index >= count) {
      throw UserError("cuda:" + std::to_string(index), "there is no such device",
                      "cuda:0 to cuda:" + std::to_string(count - 1) + " exist");
    }
    return open_device(index, multiprocessors);
  }

  std::string compile(const std::string& source, const std::string& name, int arch) override {
    return cuda::compile(source, name, arch);
  }

  std::string compiler() override { return compiler_version(); }
};

}  // namespace
}  // namespace nacre::cuda

extern "C" __attribute__((visibility("default"))) nacre::DevicePlugin* nacre_cuda_plugin(int abi);

nacre::DevicePlugin* nacre_cuda_plugin(int abi) {
  // The object is never destroyed, because devices and exceptions of the plug-in may outlive every
  // static object.
  static auto* plugin = new nacre::cuda::Plugin;
  return abi == nacre::kDeviceAbi ? plugin : nullptr;
}
