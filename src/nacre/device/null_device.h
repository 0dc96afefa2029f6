// A device without hardware. Plans can be bound to it, so that their kernels can be written out,
// compiled and counted on any machine. Its memory consists of addresses without bytes behind them,
// and nothing runs.
#pragma once

#include <memory>

#include "nacre/device/device.h"

namespace nacre {

// Pretends to be a device with the figures of `info`; launches and copies do nothing. To observe
// what a device is asked to do, derive a class from this one.
class NullDevice : public Device {
 public:
  explicit NullDevice(const DeviceInfo& info) : info_(info) {}
  const DeviceInfo& info() const override { return info_; }

  void* allocate(int64_t bytes) override;
  void release(void*) override {}
  int64_t used_bytes() const override { return used_; }
  int64_t peak_bytes() const override { return used_; }
  void reset_peak() override {}
  void trim() override {}
  // Page-locked memory is real, because the host writes to it.
  void* allocate_pinned(int64_t bytes) override;
  void release_pinned(void* memory) override;
  void upload(void*, const void*, int64_t) override {}
  void upload_beside(void*, const void*, int64_t) override {}
  // Fills `to` with zeros, because the host may use what it has downloaded.
  void download(void* to, const void*, int64_t bytes) override;
  void copy(void*, const void*, int64_t) override {}
  void fill(void*, int, int64_t) override {}

  DeviceFunction load(const std::string&, const std::string&) override { return this; }
  void launch(DeviceFunction, const LaunchShape&, const std::vector<void*>&) override {}
  int occupancy(DeviceFunction, int, int64_t) override { return 1; }

  int prepare_gemm(const GemmShape&, int /*among*/) override { return 0; }
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
  void begin_beside() override {}
  void end_beside() override {}
  bool reaches(const Device&) override { return true; }

 private:
  DeviceInfo info_;
  int64_t used_ = 0;
  int64_t next_ = int64_t{1} << 40;  // far from any address of host memory
};

std::unique_ptr<Device> make_null_device(const DeviceInfo& info);
// Returns the figures of a large data-centre GPU, for plans that are made for no particular device.
DeviceInfo typical_gpu();

}  // namespace nacre
