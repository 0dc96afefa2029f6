// Fixtures that the tests of the device layer share: the plug-in, and a device if there is one.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/device/device.h"

namespace nacre::test {

// A test that needs the plug-in, but no GPU. If the plug-in was built, it must open.
class PluginTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    plugin_ = device_plugin(&why);
#ifdef NACRE_CUDA_BUILT
    ASSERT_NE(plugin_, nullptr) << why;
#else
    if (plugin_ == nullptr) GTEST_SKIP() << why;
#endif
  }

  DevicePlugin* plugin_ = nullptr;
};

// A test that needs a GPU and opens it itself. It is skipped if there is none.
class OnGpu : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    if (plugin_ != nullptr && plugin_->devices().empty()) GTEST_SKIP() << "no GPU: " << plugin_->why_no_devices();
  }
};

// A test that needs a GPU. All tests of a program share one device.
class GpuTest : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (plugin_ == nullptr || IsSkipped()) return;
    static const std::unique_ptr<Device>* opened = new std::unique_ptr<Device>(plugin_->open(0, 0));
    device_ = opened->get();
  }

  DeviceFunction function(Device& device, const std::string& source, const std::string& name) {
    return device.load(plugin_->compile(source, name, device.info().arch), name);
  }

  Device* device_ = nullptr;
};

// An array in device memory.
template <class T>
class DeviceArray {
 public:
  DeviceArray(Device& device, int64_t n) : device_(device), n_(n), memory_(device.allocate(n * sizeof(T))) {}
  DeviceArray(Device& device, const std::vector<T>& values) : DeviceArray(device, static_cast<int64_t>(values.size())) {
    device.upload(memory_, values.data(), n_ * sizeof(T));
  }
  ~DeviceArray() { device_.release(memory_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return static_cast<T*>(memory_); }
  std::vector<T> values() const {
    std::vector<T> values(static_cast<size_t>(n_));
    device_.download(values.data(), memory_, n_ * sizeof(T));
    return values;
  }

 private:
  Device& device_;
  int64_t n_;
  void* memory_;
};

}  // namespace nacre::test
