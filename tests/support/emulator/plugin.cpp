// The emulated device as a plug-in, which is opened instead of the CUDA one if NACRE_PLUGIN_PATH
// says so.
#include "nacre/base/error.h"
#include "nacre/device/abi.h"
#include "support/emulator/compiler.h"
#include "support/emulator/emulated_device.h"
#include "support/emulator/settings.h"

namespace nacre::emulator {
namespace {

class Plugin final : public DevicePlugin {
 public:
  std::vector<DeviceInfo> devices() override {
    return std::vector<DeviceInfo>(static_cast<size_t>(Settings::get().devices()), describe_device());
  }
  std::string why_no_devices() override { return ""; }
  std::unique_ptr<Device> open(int index, int multiprocessors) override {
    const int count = Settings::get().devices();
    if (index < 0 || index >= count) {
      throw UserError("cuda:" + std::to_string(index), "there is no such device",
                      "cuda:0 to cuda:" + std::to_string(count - 1) + " exist");
    }
    return open_device(multiprocessors);
  }
  std::string compile(const std::string& source, const std::string& name, int arch) override {
    return emulator::compile(source, name, arch);
  }
  std::string compiler() override { return compiler_version(); }
};

}  // namespace
}  // namespace nacre::emulator

extern "C" __attribute__((visibility("default"))) nacre::DevicePlugin* nacre_cuda_plugin(int abi);

nacre::DevicePlugin* nacre_cuda_plugin(int abi) {
  static auto* plugin = new nacre::emulator::Plugin;
  return abi == nacre::kDeviceAbi ? plugin : nullptr;
}

// Tests that change the environment within one process call this function, so that the settings are
// read again.
extern "C" __attribute__((visibility("default"))) void nacre_emulator_reread();
void nacre_emulator_reread() { nacre::emulator::Settings::get().reread(); }
