#include "nacre/device/null_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace nacre {

void* NullDevice::allocate(int64_t bytes) {
  used_ += bytes;
  next_ += (bytes + 511) / 512 * 512;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): there is no memory behind the address
  return reinterpret_cast<void*>(next_ - (bytes + 511) / 512 * 512);
}

void* NullDevice::allocate_pinned(int64_t bytes) {
  return std::malloc(static_cast<size_t>(std::max<int64_t>(1, bytes)));
}

void NullDevice::release_pinned(void* memory) { std::free(memory); }

void NullDevice::download(void* to, const void*, int64_t bytes) { std::memset(to, 0, static_cast<size_t>(bytes)); }

std::unique_ptr<Device> make_null_device(const DeviceInfo& info) { return std::make_unique<NullDevice>(info); }

DeviceInfo typical_gpu() {
  DeviceInfo info;
  info.name = "a typical GPU";
  info.memory_bytes = info.free_bytes = int64_t{80} << 30;
  info.multiprocessors = info.whole_multiprocessors = 132;
  info.arch = 90;
  info.clock_mhz = 1800;
  info.l2_bytes = 50 << 20;
  info.shared_bytes = 227 << 10;
  return info;
}

}  // namespace nacre
