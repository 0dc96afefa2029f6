// A GPU as the engine sees it: memory, compiled kernels, matrix products, sorting, graphs of
// launches. The CUDA plug-in (src/nacre/cuda) implements this interface in a library of its own
// that is opened at run time. So this header needs no CUDA, and the program starts on machines
// without it.
//
// All work except upload_beside() and what is queued within Beside is queued on one stream in the
// order of the calls. Only
// download(), positions_of(), synchronize(), await() and elapsed() wait for queued work. Calls may
// come from any thread, also while one thread records launches (begin_capture()). Failures are
// thrown: UserError for what a user can change (no device, out of memory), InternalError for the
// rest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/cost/device_traits.h"

namespace nacre {

struct DeviceInfo {
  std::string name;
  int64_t memory_bytes = 0;
  int64_t free_bytes = 0;
  int multiprocessors = 0;
  int whole_multiprocessors = 0;  // multiprocessors of the whole GPU, if the device is a part of it
  int arch = 0;                   // compute capability: 90 for 9.0
  int clock_mhz = 0;
  int64_t l2_bytes = 0;
  int64_t shared_bytes = 0;  // the most shared memory one block can have
};

// The operation that a product applies to its result while the result is in registers.
enum class GemmEpilogue : uint8_t { none, bias, relu, relu_bias };

// The product out[m, n] = alpha · op(a) · op(b) + beta · out in row-major order. a is [m, k], or
// [k, m] if transposed; b is [k, n], or [n, k] if transposed. The leading dimensions lda, ldb and
// ldc are the numbers of elements between the beginnings of stored rows. With `batch` > 1, that
// many products lie at fixed strides.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t lda = 0, ldb = 0, ldc = 0;
  float alpha = 1, beta = 0;
  GemmType type = GemmType::f32;
  bool bf16_out = false;                       // store the result as bf16 (GemmType::bf16 only)
  GemmEpilogue epilogue = GemmEpilogue::none;  // the bias has n values of f32
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
};

struct GemmArgs {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
  // The matrix that beta applies to, laid out like c. If `add` is null, beta applies to c itself.
  const void* add = nullptr;
};

struct LaunchShape {
  int64_t blocks = 1;  // number of blocks of a one-dimensional grid
  // threads per block
  int threads = 128;
  int64_t shared_bytes = 0;  // dynamic shared memory per block
};

// The largest number of bytes that upload_few() accepts.
inline constexpr int64_t kFewBytes = 64;

// A function of a loaded image. It stays valid as long as the device.
using DeviceFunction = void*;
// Stands for a recorded sequence of launches.
using LaunchGraph = std::shared_ptr<void>;
// Stands for a point in the stream.
using DeviceEvent = std::shared_ptr<void>;

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // ---- Memory. allocate() takes blocks from a cache of freed blocks, and release() gives them
  // back to the cache.
  virtual void* allocate(int64_t bytes) = 0;
  virtual void release(void* memory) = 0;  // null is allowed and does nothing
  // Return how many bytes are allocated: used_bytes() now, and peak_bytes() at most since the last
  // call of reset_peak().
  virtual int64_t used_bytes() const = 0;
  virtual int64_t peak_bytes() const = 0;
  virtual void reset_peak() = 0;
  // Gives cached free blocks back to the driver.
  virtual void trim() = 0;
  // allocate_pinned() takes page-locked host memory. Copies from and to such memory run while the
  // host works, and kernels may read it where it lies.
  virtual void* allocate_pinned(int64_t bytes) = 0;
  virtual void release_pinned(void* memory) = 0;
  // Copies to the device. Returns when `from` may be changed again; from page-locked memory it
  // returns at once, and `from` must then stay unchanged until synchronize().
  virtual void upload(void* to, const void* from, int64_t bytes) = 0;
  // Copies at most kFewBytes bytes by value: `from` may be changed at once and nobody waits.
  // upload() from memory that is not page-locked may wait for all queued work.
  virtual void upload_few(void* to, const void* from, int64_t bytes) { upload(to, from, bytes); }
  // Copies from page-locked memory. The copy begins after all work queued so far, because that work
  // may still use the memory `to`. Work that is queued later runs at the same time as the copy;
  // work that is queued after wait_for(copied()) sees the bytes.
  virtual void upload_beside(void* to, const void* from, int64_t bytes) = 0;
  // Copies to the host. Returns when the bytes have arrived.
  virtual void download(void* to, const void* from, int64_t bytes) = 0;
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;  // copies within the device
  virtual void fill(void* to, int byte, int64_t bytes) = 0;

  // ---- Kernels.
  // Returns a kernel of a compiled image. Throws RuntimeError if the image is damaged, and
  // InternalError if the image is sound but has no kernel of this name.
  virtual DeviceFunction load(const std::string& image, const std::string& function) = 0;
  // Queues a launch. `args` has a pointer to each argument, as cuLaunchKernel takes them; the
  // arguments are copied before launch() returns.
  virtual void launch(DeviceFunction function, const LaunchShape& shape, const std::vector<void*>& args) = 0;
  // Returns how many blocks of the function one multiprocessor runs at the same time.
  virtual int occupancy(DeviceFunction function, int threads, int64_t shared_bytes) = 0;

  // ---- Matrix products (cuBLASLt). prepare_gemm() chooses the algorithm once: the first that the
  // library recommends or, if `among` is more than 1, the fastest of the first `among`, which it
  // times on operands of its own. run_gemm() only launches. A handle lives as long as the device,
  // or until it has been released as often as it was prepared. Equal shapes share a handle.
  virtual int prepare_gemm(const GemmShape& shape, int among) = 0;
  // Undoes one prepare_gemm(), for shapes that are not needed again.
  virtual void release_gemm(int handle) = 0;
  virtual int64_t gemm_workspace(int handle) const = 0;
  virtual void run_gemm(int handle, const GemmArgs& args, void* workspace) = 0;

  // ---- Device-wide primitives (CUB). Arrays lie in device memory. Temporary memory is taken from
  // allocate().
  // Sorts n pairs by the low `bits` bits of the key, in place and stably.
  virtual void sort_pairs(uint64_t* keys, uint32_t* values, int64_t n, int bits) = 0;
  virtual void sort_pairs(uint32_t* keys, uint32_t* values, int64_t n, int bits) = 0;
  // Computes out[i] = Σ in[0 … i) for i = 0 … n (n + 1 values).
  virtual void exclusive_sum(const uint32_t* in, int64_t* out, int64_t n) = 0;
  // Writes the positions i in [0, n) with flags[i] != 0 in ascending order. Waits, and returns how
  // many there are.
  virtual int64_t positions_of(const uint8_t* flags, uint32_t* out, int64_t n) = 0;

  // ---- Launches as a graph. Between begin_capture() and end_capture(), the caller's launches,
  // products, copies within the device and fills are recorded and not run, and all its other calls
  // throw. Calls of other threads run as usual and are not recorded.
  virtual void begin_capture() = 0;
  virtual LaunchGraph end_capture() = 0;
  virtual void replay(const LaunchGraph& graph) = 0;

  // ---- Points in time.
  virtual DeviceEvent record() = 0;
  virtual DeviceEvent copied() = 0;  // Returns a point behind the copies of upload_beside() so far.
  // Makes all work that the caller queues from now on run after the event.
  virtual void wait_for(const DeviceEvent& event) = 0;
  virtual void await(const DeviceEvent& event) = 0;  // Makes the caller wait for the event.
  // Returns the seconds between the events; waits for `to`.
  virtual double elapsed(const DeviceEvent& from, const DeviceEvent& to) = 0;
  virtual void synchronize() = 0;

  // ---- Work beside the rest. What the calling thread queues between begin_beside() and
  // end_beside() goes to a second stream. Where both streams have work, kernels of the second one
  // come first. The streams wait for each other at events only: record() and wait_for() mean the
  // stream that the caller uses. Launches cannot be recorded meanwhile.
  virtual void begin_beside() = 0;
  virtual void end_beside() = 0;

  // ---- Other devices of the same plug-in. wait_for() accepts their events.
  // Returns whether kernels of this device can read memory that `other` has allocated. Where the
  // hardware allows it, this call gives them access.
  virtual bool reaches(const Device& other) = 0;
};

// While this object lives, the calling thread queues its work on the second stream of the device.
class Beside {
 public:
  explicit Beside(Device& device) : device_(device) { device.begin_beside(); }
  ~Beside() { device_.end_beside(); }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

 private:
  Device& device_;
};

// The plug-in: a factory of devices, and the compiler, which needs no device.
class DevicePlugin {
 public:
  virtual ~DevicePlugin() = default;
  // Returns the physical devices; the list is empty if there are none.
  virtual std::vector<DeviceInfo> devices() = 0;
  // Returns a text for people that says why devices() is empty, or an empty text if it is not.
  virtual std::string why_no_devices() = 0;
  // Opens a physical device. With `multiprocessors` > 0, opens a virtual device: a green context
  // with about that many multiprocessors of the physical one.
  virtual std::unique_ptr<Device> open(int index, int multiprocessors) = 0;
  // Compiles CUDA source to an image of machine code for compute capability `arch`. Throws
  // InternalError with the log of the compiler.
  virtual std::string compile(const std::string& source, const std::string& name, int arch) = 0;
  // Returns name and version of the compiler. Images of another compiler are not taken from the
  // cache.
  virtual std::string compiler() = 0;
};

// Opens the plug-in beside the program, in ../lib, or where NACRE_PLUGIN_PATH says. Returns the
// same object every time. Returns null and puts the reason into *why if the plug-in cannot be used
// (not built, another version, no CUDA libraries).
DevicePlugin* device_plugin(std::string* why = nullptr);

// Calls plugin.compile() unless the cache on disk has an image of the same source, so that a kernel
// is compiled once per machine.
std::string compile_cached(DevicePlugin& plugin, const std::string& source, const std::string& name, int arch);
// Compiles the source even if the cache on disk has an image of it, and replaces that image in the
// cache.
std::string compile_again(DevicePlugin& plugin, const std::string& source, const std::string& name, int arch);

// Loads a kernel from an image that may come from the cache on disk. An image in the cache can be
// unusable although its checksum is right: it may have been cut short before it was stored, or made
// for another GPU. If the image cannot be loaded, loads the image that `compile_again` returns and
// warns once per process. Throws the first error if `compile_again` returns the same image, because
// the device failed then and not the image.
DeviceFunction load_kernel(Device& device, const std::string& image, const std::string& name,
                           FunctionRef<std::string()> compile_again);

}  // namespace nacre
