// A GPU as the engine sees it: memory, compiled kernels, matrix products, sorting, graphs of launches. The CUDA plug-in
// (src/nacre/cuda) implements it in a library of its own that is opened at run time, so this header knows no CUDA and
// the program starts where there is none.
//
// Everything but upload_beside() is queued on one stream in call order; only download(), synchronize(), await() and
// elapsed() wait. Calls may come from any thread, also while one thread records launches (begin_capture).
// Failures are thrown: UserError for what a user can change (no device, out of memory), InternalError for the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/base/function_ref.h"

namespace nacre {

struct DeviceInfo {
  std::string name;
  int64_t memory_bytes = 0;
  int64_t free_bytes = 0;
  int multiprocessors = 0;
  int arch = 0;  // compute capability: 90 for 9.0
  int clock_mhz = 0;
  int64_t l2_bytes = 0;
  int64_t shared_bytes = 0;  // the most shared memory one block can have
};

// How matrix products treat f32 operands: as they are, rounded to tf32, or stored as bf16. Sums are always f32.
enum class GemmType : uint8_t { f32, tf32, bf16 };

// What a product does to its result while it is in registers. Masks of relu are one bit an element.
enum class GemmEpilogue : uint8_t { none, bias, relu, relu_bias };

// out[m, n] = alpha · op(a) · op(b) + beta · out, row-major: a is [m, k] (transposed: [k, m]), b [k, n] (transposed:
// [n, k]); the leading dimensions count elements between rows as stored. `batch` > 1: that many products at fixed
// strides.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t lda = 0, ldb = 0, ldc = 0;
  float alpha = 1, beta = 0;
  GemmType type = GemmType::f32;
  bool bf16_out = false;                       // bf16 only: the result is stored as bf16
  GemmEpilogue epilogue = GemmEpilogue::none;  // bias: n values of f32
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
};

struct GemmArgs {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
  const void* add = nullptr;  // what beta applies to, laid out like c; null: c itself
};

struct LaunchShape {
  int64_t blocks = 1;  // 1-D grids
  int threads = 128;
  int64_t shared_bytes = 0;  // dynamic
};

// The most that upload_few() takes.
inline constexpr int64_t kFewBytes = 64;

// A function of a loaded image. Stays valid as long as the device.
using DeviceFunction = void*;
// A captured sequence of launches; a point in the stream.
using LaunchGraph = std::shared_ptr<void>;
using DeviceEvent = std::shared_ptr<void>;

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // ---- memory. allocate() comes from a cache of freed blocks; release() gives back to it.
  virtual void* allocate(int64_t bytes) = 0;
  virtual void release(void* memory) = 0;  // null: nothing
  // Bytes taken from the device now and at most since the last call of reset_peak().
  virtual int64_t used_bytes() const = 0;
  virtual int64_t peak_bytes() const = 0;
  virtual void reset_peak() = 0;
  // Gives cached free blocks back to the driver.
  virtual void trim() = 0;
  // Page-locked host memory: copies from and to it run beside the host, and kernels may read it where it lies.
  virtual void* allocate_pinned(int64_t bytes) = 0;
  virtual void release_pinned(void* memory) = 0;
  // Returns when `from` may be changed again (at once for page-locked memory: keep it unchanged until synchronize()).
  virtual void upload(void* to, const void* from, int64_t bytes) = 0;
  // A few bytes (kFewBytes at most) by value: `from` may be changed at once and nobody waits, where upload() from
  // memory that is not page-locked may wait for all that is queued.
  virtual void upload_few(void* to, const void* from, int64_t bytes) { upload(to, from, bytes); }
  // From page-locked memory, beside what is queued later, but after all that is queued now: the memory may have been
  // somebody else's. Seen by what is queued after wait_for(copied()).
  virtual void upload_beside(void* to, const void* from, int64_t bytes) = 0;
  virtual void download(void* to, const void* from, int64_t bytes) = 0;  // returns when the bytes are there
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;      // inside the device
  virtual void fill(void* to, int byte, int64_t bytes) = 0;

  // ---- kernels
  virtual DeviceFunction load(const std::string& image, const std::string& function) = 0;
  // args: a pointer to each argument, as cuLaunchKernel takes them; copied before this returns.
  virtual void launch(DeviceFunction function, const LaunchShape& shape, const std::vector<void*>& args) = 0;
  // Blocks of the function that one multiprocessor runs at the same time.
  virtual int occupancy(DeviceFunction function, int threads, int64_t shared_bytes) = 0;

  // ---- matrix products (cuBLASLt). prepare_gemm chooses the algorithm once, by timing the library's candidates on
  // operands of its own where `tune`; run_gemm only launches. The handle lives as long as the device, or until it
  // was released as often as prepared; equal shapes share.
  virtual int prepare_gemm(const GemmShape& shape, bool tune) = 0;
  // Undoes one prepare_gemm(), for shapes that do not come again.
  virtual void release_gemm(int handle) = 0;
  virtual int64_t gemm_workspace(int handle) const = 0;
  virtual void run_gemm(int handle, const GemmArgs& args, void* workspace) = 0;

  // ---- device-wide primitives (CUB). Arrays lie in device memory; temporary memory is taken from allocate().
  // Stable; sorts n pairs by the low `bits` bits of the key, in place.
  virtual void sort_pairs(uint64_t* keys, uint32_t* values, int64_t n, int bits) = 0;
  virtual void sort_pairs(uint32_t* keys, uint32_t* values, int64_t n, int bits) = 0;
  // out[i] = Σ in[0 … i), i = 0 … n (n + 1 values).
  virtual void exclusive_sum(const uint32_t* in, int64_t* out, int64_t n) = 0;
  // Writes the positions i in [0, n) with flags[i] != 0, ascending; returns how many (waits).
  virtual int64_t positions_of(const uint8_t* flags, uint32_t* out, int64_t n) = 0;

  // ---- launches as a graph. Between the two calls, the caller's launches, products, copies inside the device and
  // fills are recorded, not run, and its other calls throw; calls of other threads run as usual and are not recorded.
  virtual void begin_capture() = 0;
  virtual LaunchGraph end_capture() = 0;
  virtual void replay(const LaunchGraph& graph) = 0;

  // ---- points in time
  virtual DeviceEvent record() = 0;
  virtual DeviceEvent copied() = 0;                     // behind the copies of upload_beside() so far
  virtual void wait_for(const DeviceEvent& event) = 0;  // what is queued from now on comes after it
  virtual void await(const DeviceEvent& event) = 0;     // the caller waits
  virtual double elapsed(const DeviceEvent& from, const DeviceEvent& to) = 0;  // seconds; waits for `to`
  virtual void synchronize() = 0;
};

// The plug-in: a factory of devices and the compiler, which needs no device.
class DevicePlugin {
 public:
  virtual ~DevicePlugin() = default;
  // Physical devices; empty where there are none.
  virtual std::vector<DeviceInfo> devices() = 0;
  // Why devices() is empty, for people; empty where it is not.
  virtual std::string why_no_devices() = 0;
  // `multiprocessors` > 0: a virtual device, a green context with about that many multiprocessors of the physical one.
  virtual std::unique_ptr<Device> open(int index, int multiprocessors) = 0;
  // CUDA source to a machine-code image for compute capability `arch`. Throws InternalError with the compiler's log.
  virtual std::string compile(const std::string& source, const std::string& name, int arch) = 0;
  // Name and version of the compiler: images of another one are not taken from the cache.
  virtual std::string compiler() = 0;
};

// Opens the plug-in beside the program, in ../lib, or where NACRE_PLUGIN_PATH says; null, with the reason in *why,
// where it cannot be used (not built, other version, no CUDA libraries). The same object every time.
DevicePlugin* device_plugin(std::string* why = nullptr);

// plugin.compile() through the cache on disk, by content: a kernel is compiled once per machine.
std::string compile_cached(DevicePlugin& plugin, const std::string& source, const std::string& name, int arch);
// Compiles the source even if the cache on disk has an image of it, and puts the new image in the place of the old one.
std::string compile_again(DevicePlugin& plugin, const std::string& source, const std::string& name, int arch);

// Loads a kernel from an image that may come from the cache on disk. An image in the cache can be unusable although its
// checksum is right: cut short before it was kept, or made for another GPU. If the image cannot be loaded, loads what
// `compile_again` returns and warns, once per process. Throws the first error if the image compiled again is the same:
// then the device failed and not the image.
DeviceFunction load_kernel(Device& device, const std::string& image, const std::string& name,
                           FunctionRef<std::string()> compile_again);

}  // namespace nacre
