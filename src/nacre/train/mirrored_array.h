// MirroredArray: an array in host memory, and the memory in which the kernels of a back end find
// it. On the host both are one; a device has an array of its own, which is sent and fetched as a
// whole.
#pragma once

#include <cstdint>
#include <memory>

#include "nacre/engine/backend.h"

namespace nacre {

class MirroredArray {
 public:
  // Makes an array that is not used: data() is null.
  MirroredArray() = default;
  // `host` must stay where it is; if it is null, the array is not used. The device's array has no
  // defined values until send() is called.
  MirroredArray(std::shared_ptr<Backend> backend, float* host, int64_t bytes)
      : backend_(std::move(backend)), host_(host), bytes_(bytes) {
    if (host_ != nullptr && !backend_->on_host()) device_ = backend_->allocate(bytes_);
  }

  // Returns the address at which kernels find the array.
  float* data() const { return device_ ? static_cast<float*>(device_.get()) : host_; }
  // Brings the host's values to the device.
  void send() const {
    if (device_) backend_->write(device_.get(), host_, bytes_);
  }
  // Brings the device's values to the host; waits for the steps before it.
  void fetch() const {
    if (device_) backend_->read(host_, device_.get(), bytes_);
  }

 private:
  std::shared_ptr<Backend> backend_;
  float* host_ = nullptr;
  int64_t bytes_ = 0;
  std::shared_ptr<void> device_;
};

}  // namespace nacre
