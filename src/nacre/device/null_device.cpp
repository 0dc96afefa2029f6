#include "nacre/device/null_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace nacre {
namespace {

class NullDevice : public Device {
 public:
  explicit NullDevice(const DeviceInfo& info) : info_(info) {}
  const DeviceInfo& info() const override { return info_; }

  void* allocate(int64_t bytes) override {
    used_ += bytes;
    next_ += (bytes + 511) / 512 * 512;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): there is no memory behind it
    return reinterpret_cast<void*>(next_ - (bytes + 511) / 512 * 512);
  }
  void release(void*) override {}
  int64_t used_bytes() const override { return used_; }
  int64_t peak_bytes() const override { return used_; }
  void reset_peak() override {}
  void trim() override {}
  // The host writes to it.
  void* allocate_pinned(int64_t bytes) override {
    return std::malloc(static_cast<size_t>(std::max<int64_t>(1, bytes)));
  }
  void release_pinned(void* memory) override { std::free(memory); }
  void upload(void*, const void*, int64_t) override {}
  void upload_beside(void*, const void*, int64_t) override {}
  // Zeros: numbers that a host step may read.
  void download(void* to, const void*, int64_t bytes) override { std::memset(to, 0, static_cast<size_t>(bytes)); }
  void copy(void*, const void*, int64_t) override {}
  void fill(void*, int, int64_t) override {}

  DeviceFunction load(const std::string&, const std::string&) override { return this; }
  void launch(DeviceFunction, const LaunchShape&, const std::vector<void*>&) override {}
  int occupancy(DeviceFunction, int, int64_t) override { return 1; }

  int prepare_gemm(const GemmShape&, bool) override { return 0; }
  void release_gemm(int) override {}
  int64_t gemm_workspace(int) const override { return 0; }
  void run_gemm(int, const GemmArgs&, void*) override {}

  void sort_pairs(uint64_t*, uint32_t*, int64_t, int) override {}
  void sort_pairs(uint32_t*, uint32_t*, int64_t, int) override {}
  void exclusive_sum(const uint32_t*, int64_t*, int64_t) override {}
  int64_t positions_of(const uint8_t*, uint32_t*, int64_t) override { return 0; }

  void begin_capture() override {}
  LaunchGraph end_capture() override { return std::make_shared<int>(0); }
  void replay(const LaunchGraph&) override {}
  DeviceEvent record() override { return std::make_shared<int>(0); }
  DeviceEvent copied() override { return record(); }
  void wait_for(const DeviceEvent&) override {}
  void await(const DeviceEvent&) override {}
  double elapsed(const DeviceEvent&, const DeviceEvent&) override { return 0; }
  void synchronize() override {}

 private:
  DeviceInfo info_;
  int64_t used_ = 0;
  int64_t next_ = int64_t{1} << 40;  // far from any memory of the host
};

}  // namespace

std::unique_ptr<Device> make_null_device(const DeviceInfo& info) { return std::make_unique<NullDevice>(info); }

DeviceInfo typical_gpu() {
  DeviceInfo info;
  info.name = "a typical GPU";
  info.memory_bytes = info.free_bytes = int64_t{80} << 30;
  info.multiprocessors = 132;
  info.arch = 90;
  info.clock_mhz = 1800;
  info.l2_bytes = 50 << 20;
  info.shared_bytes = 227 << 10;
  return info;
}

}  // namespace nacre
