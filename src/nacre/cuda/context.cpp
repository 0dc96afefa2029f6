#include "nacre/cuda/context.h"

namespace nacre::cuda {
namespace {

int attribute(int index, cudaDeviceAttr name) {
  int value = 0;
  NACRE_CUDA(cudaDeviceGetAttribute(&value, name, index));
  return value;
}

thread_local Recording* recording_of_this_thread = nullptr;
thread_local const Context* beside_of_this_thread = nullptr;

}  // namespace

DeviceInfo query_device(int index) {
  cudaDeviceProp properties{};
  NACRE_CUDA(cudaGetDeviceProperties(&properties, index));
  NACRE_CUDA(cudaSetDevice(index));
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  NACRE_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  DeviceInfo info;
  info.name = properties.name;
  info.memory_bytes = static_cast<int64_t>(total_bytes);
  info.free_bytes = static_cast<int64_t>(free_bytes);
  info.multiprocessors = info.whole_multiprocessors = properties.multiProcessorCount;
  info.arch = properties.major * 10 + properties.minor;
  info.clock_mhz = attribute(index, cudaDevAttrClockRate) / 1000;
  info.l2_bytes = properties.l2CacheSize;
  info.shared_bytes = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
  return info;
}

Context::Context(int index, int multiprocessors) : index_(index), info_(query_device(index)) {
  // query_device() has made the primary context current.
  NACRE_CUDA(driver().context_current(&primary_));
  if (multiprocessors > 0) {
    open_green(multiprocessors);
    return;
  }
  context_ = primary_;
  const Current current(*this);
  make_streams();
}

cudaStream_t Context::make_stream(int priority) const {
  if (green_ != nullptr) {
    CUstream made = nullptr;
    NACRE_CUDA(driver().green_stream(&made, green_, CU_STREAM_NON_BLOCKING, priority));
    return made;
  }
  cudaStream_t made = nullptr;
  NACRE_CUDA(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, priority));
  return made;
}

void Context::make_streams() {
  int least = 0, greatest = 0;
  NACRE_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  stream_ = make_stream();
  beside_stream_ = make_stream(greatest);
  copy_stream_ = make_stream();
}

cudaStream_t Context::stream() const {
  if (const Recording* recording = Recording::of(*this)) return recording->stream_;
  return beside_of_this_thread == this ? beside_stream_ : stream_;
}

void Context::set_beside(bool beside) const {
  NACRE_CHECK(!beside || beside_of_this_thread == nullptr, "a thread called begin_beside() again before end_beside()");
  beside_of_this_thread = beside ? this : nullptr;
}

void Context::open_green(int multiprocessors) {
  if (driver().green_stream == nullptr) {
    throw UserError("device", "this driver cannot divide a GPU into virtual devices", "install a newer driver");
  }
  if (multiprocessors > info_.multiprocessors) {
    throw UserError("device", std::to_string(multiprocessors) + " multiprocessors are asked for, but the GPU has " +
                                  std::to_string(info_.multiprocessors));
  }
  share_ = take_multiprocessors(index_, multiprocessors);
  try {
    CUdevResourceDesc description{};
    NACRE_CUDA(driver().describe_resource(&description, share_.resources.data(),
                                          static_cast<unsigned>(share_.resources.size())));
    NACRE_CUDA(driver().green_create(&green_, description, index_, CU_GREEN_CTX_DEFAULT_STREAM));
    NACRE_CUDA(driver().green_context(&context_, green_));
    const Current current(*this);
    make_streams();
  } catch (...) {
    close_green();
    throw;
  }
  info_.multiprocessors = share_.multiprocessors();
}

void Context::close_green() {
  if (green_ != nullptr) driver().green_destroy(green_);
  give_multiprocessors(index_, share_);
}

cudaEvent_t Context::take_event(bool timed) {
  {
    const std::lock_guard lock(events_mutex_);
    std::vector<cudaEvent_t>& free = events_[timed ? 1 : 0];
    if (!free.empty()) {
      const cudaEvent_t event = free.back();
      free.pop_back();
      return event;
    }
  }
  cudaEvent_t made = nullptr;
  NACRE_CUDA(cudaEventCreateWithFlags(&made, timed ? cudaEventDefault : cudaEventDisableTiming));
  return made;
}

void Context::give_event(cudaEvent_t event, bool timed) {
  const std::lock_guard lock(events_mutex_);
  events_[timed ? 1 : 0].push_back(event);
}

Context::~Context() {
  try {
    const Current current(*this);
    for (const std::vector<cudaEvent_t>& free : events_) {
      for (const cudaEvent_t event : free) cudaEventDestroy(event);
    }
    for (const cudaStream_t stream : {copy_stream_, beside_stream_, stream_}) {
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    }
  } catch (const std::exception&) {
    // The calls throw if the process ends and the driver is already gone. Nothing is left to
    // destroy.
    return;
  }
  if (green_ != nullptr) close_green();
}

Recording::Recording(const Context& context) : context_(context), stream_(nullptr) {
  NACRE_CHECK(recording_of_this_thread == nullptr, "a thread that records launches already begins to record again");
  stream_ = context.make_stream();
  const cudaError_t code = cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
  if (code != cudaSuccess) {
    cudaStreamDestroy(stream_);
    NACRE_CUDA(code);
  }
  recording_of_this_thread = this;
}

Recording::~Recording() {
  // A destructor cannot report an error, so errors are ignored. The recording is dropped in any
  // case.
  if (recording_of_this_thread == this) {
    recording_of_this_thread = nullptr;
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  cudaStreamDestroy(stream_);
}

Recording* Recording::of(const Context& context) {
  Recording* recording = recording_of_this_thread;
  return recording != nullptr && &recording->context_ == &context ? recording : nullptr;
}

cudaGraphExec_t Recording::finish() {
  NACRE_CHECK(recording_of_this_thread == this, "a recording is finished by another thread or twice");
  recording_of_this_thread = nullptr;
  cudaGraph_t graph = nullptr;
  NACRE_CUDA(cudaStreamEndCapture(stream_, &graph));
  cudaGraphExec_t made = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&made, graph, 0);
  cudaGraphDestroy(graph);
  NACRE_CHECK(code == cudaSuccess, "cudaGraphInstantiate: " + describe(code));
  return made;
}

}  // namespace nacre::cuda
