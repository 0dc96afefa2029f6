#include "nacre/cuda/cuda_device.h"

#include <cstring>

#include "nacre/base/log.h"
#include "nacre/cuda/allocator.h"
#include "nacre/cuda/context.h"
#include "nacre/cuda/gemm.h"
#include "nacre/cuda/kernels.h"
#include "nacre/cuda/primitives.h"

namespace nacre::cuda {
namespace {

class CudaDevice final : public Device {
 public:
  CudaDevice(int index, int multiprocessors)
      : context_(std::make_shared<Context>(index, multiprocessors)),
        allocator_(*context_),
        kernels_(*context_),
        gemm_(*context_, allocator_) {}

  const DeviceInfo& info() const override { return context_->info(); }

  // ---- memory
  void* allocate(int64_t bytes) override {
    forbid_in_capture("allocate");
    return allocator_.allocate(bytes);
  }
  void release(void* memory) override { allocator_.release(memory); }
  int64_t used_bytes() const override { return allocator_.used_bytes(); }
  int64_t peak_bytes() const override { return allocator_.peak_bytes(); }
  void reset_peak() override { allocator_.reset_peak(); }
  void trim() override {
    forbid_in_capture("trim");
    allocator_.trim();
  }
  void* allocate_pinned(int64_t bytes) override;
  void release_pinned(void* memory) override;
  void upload(void* to, const void* from, int64_t bytes) override;
  void upload_few(void* to, const void* from, int64_t bytes) override;
  void upload_beside(void* to, const void* from, int64_t bytes) override;
  void download(void* to, const void* from, int64_t bytes) override;
  void copy(void* to, const void* from, int64_t bytes) override;
  void fill(void* to, int byte, int64_t bytes) override;

  // ---- kernels
  DeviceFunction load(const std::string& image, const std::string& function) override {
    forbid_in_capture("load");
    return kernels_.load(image, function);
  }
  void launch(DeviceFunction function, const LaunchShape& shape, const std::vector<void*>& args) override {
    kernels_.launch(function, shape, args);
  }
  int occupancy(DeviceFunction function, int threads, int64_t shared_bytes) override {
    return kernels_.occupancy(function, threads, shared_bytes);
  }

  // ---- matrix products
  int prepare_gemm(const GemmShape& shape, int among) override {
    forbid_in_capture("prepare_gemm");
    return gemm_.prepare(shape, among);
  }
  void release_gemm(int handle) override { gemm_.release(handle); }
  int64_t gemm_workspace(int handle) const override { return gemm_.workspace(handle); }
  void run_gemm(int handle, const GemmArgs& args, void* workspace) override { gemm_.run(handle, args, workspace); }

  // ---- device-wide primitives
  void sort_pairs(uint64_t* keys, uint32_t* values, int64_t n, int bits) override { sort(keys, values, n, bits); }
  void sort_pairs(uint32_t* keys, uint32_t* values, int64_t n, int bits) override { sort(keys, values, n, bits); }
  void exclusive_sum(const uint32_t* in, int64_t* out, int64_t n) override;
  int64_t positions_of(const uint8_t* flags, uint32_t* out, int64_t n) override;

  // ---- graphs and time
  void begin_capture() override;
  LaunchGraph end_capture() override;
  void replay(const LaunchGraph& graph) override;
  DeviceEvent record() override { return record_on(context_->stream(), true); }
  DeviceEvent copied() override { return record_on(context_->copy_stream(), false); }
  void wait_for(const DeviceEvent& event) override;
  void await(const DeviceEvent& event) override;
  double elapsed(const DeviceEvent& from, const DeviceEvent& to) override;
  void begin_beside() override {
    forbid_in_capture("begin_beside");
    context_->set_beside(true);
  }
  void end_beside() override { context_->set_beside(false); }
  bool reaches(const Device& other) override;
  void synchronize() override {
    forbid_in_capture("synchronize");
    const Current current(*context_);
    NACRE_CUDA(cudaStreamSynchronize(context_->stream()));
  }

 private:
  DeviceEvent record_on(cudaStream_t stream, bool timed);
  // Throws if the calling thread records launches. Other threads may call anything at that time.
  void forbid_in_capture(const char* call) const {
    NACRE_CHECK(Recording::of(*context_) == nullptr, std::string(call) + "() while launches are recorded");
  }
  void copy_bytes(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return;
    NACRE_CUDA(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, context_->stream()));
  }
  // Asks a CUB algorithm how much temporary memory it needs, then runs it.
  template <class Algorithm>
  void with_temporary(const Algorithm& algorithm) {
    TemporaryMemory memory;
    NACRE_CUDA(algorithm(memory));
    const Temporary block(allocator_, static_cast<int64_t>(memory.bytes));
    memory.memory = block.get();
    NACRE_CUDA(algorithm(memory));
  }
  template <class Key>
  void sort(Key* keys, uint32_t* values, int64_t n, int bits);

  std::shared_ptr<Context> context_;  // shared with graphs and events
  Allocator allocator_;
  Kernels kernels_;
  Gemm gemm_;
};

void* CudaDevice::allocate_pinned(int64_t bytes) {
  forbid_in_capture("allocate_pinned");
  const Current current(context_->primary());
  void* memory = nullptr;
  // The memory is mapped, so that kernels can read it over the bus at the same address.
  const cudaError_t code =
      cudaHostAlloc(&memory, static_cast<size_t>(bytes > 0 ? bytes : 1), cudaHostAllocPortable | cudaHostAllocMapped);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw UserError("host memory", std::to_string(bytes) + " bytes of page-locked memory are not available",
                    "end other programs or raise the limit of locked memory (ulimit -l)");
  }
  NACRE_CUDA(code);
  return memory;
}

void CudaDevice::release_pinned(void* memory) {
  if (memory == nullptr) return;
  forbid_in_capture("release_pinned");
  const Current current(context_->primary());
  // Destructors call this function, so it throws nothing. If the device has failed, those who wait
  // for its work are told.
  const cudaError_t code = cudaFreeHost(memory);
  if (code == cudaSuccess) return;
  cudaGetLastError();
  log_verbose("page-locked memory was not given back: " + describe(code));
}

void CudaDevice::upload(void* to, const void* from, int64_t bytes) {
  forbid_in_capture("upload");
  const Current current(*context_);
  // If the memory is pageable, the call returns when the bytes are in a buffer of the driver.
  copy_bytes(to, from, bytes, cudaMemcpyHostToDevice);
}

void CudaDevice::upload_few(void* to, const void* from, int64_t bytes) {
  forbid_in_capture("upload_few");  // every replay would write the same bytes again
  FewBytes few;
  static_assert(sizeof few.value == kFewBytes);
  NACRE_CHECK(bytes >= 0 && bytes <= kFewBytes,
              "upload_few() was given " + std::to_string(bytes) + " bytes, which is too many");
  if (bytes == 0) return;
  std::memcpy(few.value, from, static_cast<size_t>(bytes));
  few.count = static_cast<int>(bytes);
  const Current current(*context_);
  NACRE_CUDA(write_few(to, few, context_->stream()));
}

void CudaDevice::upload_beside(void* to, const void* from, int64_t bytes) {
  forbid_in_capture("upload_beside");
  if (bytes == 0) return;
  const Current current(*context_);
  const DeviceEvent now = record_on(context_->stream(), false);
  NACRE_CUDA(cudaStreamWaitEvent(context_->copy_stream(), static_cast<cudaEvent_t>(now.get()), 0));
  NACRE_CUDA(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, context_->copy_stream()));
}

void CudaDevice::download(void* to, const void* from, int64_t bytes) {
  forbid_in_capture("download");
  const Current current(*context_);
  copy_bytes(to, from, bytes, cudaMemcpyDeviceToHost);
  NACRE_CUDA(cudaStreamSynchronize(context_->stream()));
}

void CudaDevice::copy(void* to, const void* from, int64_t bytes) {
  const Current current(*context_);
  copy_bytes(to, from, bytes, cudaMemcpyDeviceToDevice);
}

void CudaDevice::fill(void* to, int byte, int64_t bytes) {
  if (bytes == 0) return;
  const Current current(*context_);
  NACRE_CUDA(cudaMemsetAsync(to, byte, static_cast<size_t>(bytes), context_->stream()));
}

template <class Key>
void CudaDevice::sort(Key* keys, uint32_t* values, int64_t n, int bits) {
  forbid_in_capture("sort_pairs");
  NACRE_CHECK(bits >= 0 && bits <= static_cast<int>(8 * sizeof(Key)),
              "a sort was asked for by more bits than a key has");
  if (n <= 1 || bits == 0) return;
  const Current current(*context_);
  const Temporary other_keys(allocator_, n * static_cast<int64_t>(sizeof(Key)));
  const Temporary other_values(allocator_, n * static_cast<int64_t>(sizeof(uint32_t)));
  SortBuffers<Key> buffers{{keys, other_keys.as<Key>()}, {values, other_values.as<uint32_t>()}};
  with_temporary(
      [&](TemporaryMemory& memory) { return cuda::sort_pairs(memory, buffers, n, bits, context_->stream()); });
  if (buffers.in_first) return;
  copy_bytes(keys, other_keys.get(), n * static_cast<int64_t>(sizeof(Key)), cudaMemcpyDeviceToDevice);
  copy_bytes(values, other_values.get(), n * static_cast<int64_t>(sizeof(uint32_t)), cudaMemcpyDeviceToDevice);
}

void CudaDevice::exclusive_sum(const uint32_t* in, int64_t* out, int64_t n) {
  forbid_in_capture("exclusive_sum");
  const Current current(*context_);
  NACRE_CUDA(cudaMemsetAsync(out, 0, sizeof(int64_t), context_->stream()));
  if (n == 0) return;
  with_temporary([&](TemporaryMemory& memory) { return inclusive_sum(memory, in, out + 1, n, context_->stream()); });
}

int64_t CudaDevice::positions_of(const uint8_t* flags, uint32_t* out, int64_t n) {
  forbid_in_capture("positions_of");
  NACRE_CHECK(n <= int64_t{1} << 32, "positions_of() was given more than 2^32 flags");
  if (n == 0) return 0;
  const Current current(*context_);
  const Temporary count(allocator_, sizeof(int64_t));
  with_temporary([&](TemporaryMemory& memory) {
    return cuda::positions_of(memory, flags, out, count.as<int64_t>(), n, context_->stream());
  });
  int64_t found = 0;
  copy_bytes(&found, count.get(), sizeof found, cudaMemcpyDeviceToHost);
  NACRE_CUDA(cudaStreamSynchronize(context_->stream()));
  return found;
}

void CudaDevice::begin_capture() {
  forbid_in_capture("begin_capture");
  const Current current(*context_);
  auto recording = std::make_unique<Recording>(*context_);
  static_cast<void>(recording.release());  // end_capture() finds the recording of its thread
}

LaunchGraph CudaDevice::end_capture() {
  const std::unique_ptr<Recording> recording(Recording::of(*context_));
  NACRE_CHECK(recording != nullptr, "end_capture() was called without begin_capture()");
  const Current current(*context_);
  return {recording->finish(), [keep = context_](void* p) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(p)); }};
}

void CudaDevice::replay(const LaunchGraph& graph) {
  forbid_in_capture("replay");
  const Current current(*context_);
  NACRE_CUDA(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph.get()), context_->stream()));
}

DeviceEvent CudaDevice::record_on(cudaStream_t stream, bool timed) {
  forbid_in_capture("record");
  const Current current(*context_);
  DeviceEvent event(context_->take_event(timed),
                    [context = context_, timed](void* p) { context->give_event(static_cast<cudaEvent_t>(p), timed); });
  NACRE_CUDA(cudaEventRecord(static_cast<cudaEvent_t>(event.get()), stream));
  return event;
}

void CudaDevice::wait_for(const DeviceEvent& event) {
  forbid_in_capture("wait_for");
  const Current current(*context_);
  NACRE_CUDA(cudaStreamWaitEvent(context_->stream(), static_cast<cudaEvent_t>(event.get()), 0));
}

void CudaDevice::await(const DeviceEvent& event) {
  forbid_in_capture("await");
  const Current current(context_->primary());
  NACRE_CUDA(cudaEventSynchronize(static_cast<cudaEvent_t>(event.get())));
}

double CudaDevice::elapsed(const DeviceEvent& from, const DeviceEvent& to) {
  forbid_in_capture("elapsed");
  const Current current(*context_);
  NACRE_CUDA(cudaEventSynchronize(static_cast<cudaEvent_t>(to.get())));
  float milliseconds = 0;
  NACRE_CUDA(
      cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(from.get()), static_cast<cudaEvent_t>(to.get())));
  return milliseconds / 1e3;
}

bool CudaDevice::reaches(const Device& other) {
  const int peer = static_cast<const CudaDevice&>(other).context_->index();
  // All contexts of one GPU share its memory, so there is no access to give.
  if (peer == context_->index()) return true;
  int can = 0;
  NACRE_CUDA(cudaDeviceCanAccessPeer(&can, context_->index(), peer));
  if (can == 0) return false;
  const Current current(context_->primary());
  const cudaError_t code = cudaDeviceEnablePeerAccess(peer, 0);
  cudaGetLastError();
  return code == cudaSuccess || code == cudaErrorPeerAccessAlreadyEnabled;
}

}  // namespace

std::unique_ptr<Device> open_device(int index, int multiprocessors) {
  return std::make_unique<CudaDevice>(index, multiprocessors);
}

}  // namespace nacre::cuda
