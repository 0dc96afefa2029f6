// The plug-in exports one function, nacre_link_plugin().
//
// No call of NCCL waits: communicators are made with blocking = 0, so that a call which needs other
// ranks returns at once, and this file asks again until the call has ended or the timeout is over.
// So a rank that is dead or stopped blocks nobody longer than the timeout.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/device/link_abi.h"

namespace nacre::nccl {
namespace {

constexpr double kCloseLimit = 5;  // seconds that the end of a connection may take
constexpr auto kAskAgain = std::chrono::microseconds(50);
constexpr const char* kClosed =
    "this process closed its connection between GPUs, because a rank or NCCL itself had failed; the first error "
    "message of the run names the cause";

// The functions of NCCL that this file calls, found in libnccl.so.2 at run time.
struct Functions {
  decltype(&ncclGetVersion) version = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetUniqueId) unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
};

template <class Function>
void find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr)
    throw UserError("NCCL", std::string("libnccl.so.2 has no ") + name, "install NCCL 2.18 or later");
}

Functions open_functions() {
  void* library = nullptr;
  for (const char* file : {"libnccl.so.2", "/usr/local/cuda/lib/libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"}) {
    if (library == nullptr) library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr)
    throw UserError("NCCL", "libnccl.so.2 was not found", "install NCCL, and set LD_LIBRARY_PATH to where it is");
  Functions all;
  find(library, all.version, "ncclGetVersion");
  find(library, all.error_string, "ncclGetErrorString");
  find(library, all.unique_id, "ncclGetUniqueId");
  find(library, all.init, "ncclCommInitRankConfig");
  find(library, all.async_error, "ncclCommGetAsyncError");
  find(library, all.finalize, "ncclCommFinalize");
  find(library, all.destroy, "ncclCommDestroy");
  find(library, all.abort, "ncclCommAbort");
  find(library, all.group_start, "ncclGroupStart");
  find(library, all.group_end, "ncclGroupEnd");
  find(library, all.send, "ncclSend");
  find(library, all.receive, "ncclRecv");
  return all;
}

const Functions& functions() {
  static const Functions all = open_functions();
  return all;
}

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();
  throw RuntimeError("NCCL", fmt::format("{}: {}", call, cudaGetErrorString(code)));
}

void check(ncclResult_t code, const char* call) {
  if (code != ncclSuccess && code != ncclInProgress)
    throw RuntimeError("NCCL", fmt::format("{}: {}", call, functions().error_string(code)));
}

// The stream and the events of a link, which belong to the primary context of its GPU.
class LinkStream {
 public:
  explicit LinkStream(int device) : device_(device) {
    use();
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "cudaStreamCreateWithPriority");
  }
  ~LinkStream() {
    cudaSetDevice(device_);
    cudaStreamDestroy(stream_);
  }
  LinkStream(const LinkStream&) = delete;
  LinkStream& operator=(const LinkStream&) = delete;

  // Makes the link's GPU the current device of the calling thread.
  void use() const { check(cudaSetDevice(device_), "cudaSetDevice"); }
  cudaStream_t get() const { return stream_; }
  void wait_for(const DeviceEvent& event) const {
    check(cudaStreamWaitEvent(stream_, static_cast<cudaEvent_t>(event.get()), 0), "cudaStreamWaitEvent");
  }
  DeviceEvent record() const {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    DeviceEvent owner(event, [](void* p) { cudaEventDestroy(static_cast<cudaEvent_t>(p)); });
    check(cudaEventRecord(event, stream_), "cudaEventRecord");
    return owner;
  }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

class NcclLink final : public DeviceLink {
 public:
  explicit NcclLink(const LinkPlace& place) : timeout_(place.timeout), stream_(place.device) {
    ncclUniqueId id;
    NACRE_CHECK(place.id.size() == sizeof id, "the name of a connection must have the size of an ncclUniqueId");
    std::memcpy(&id, place.id.data(), sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    try {
      settle(functions().init(&comm_, place.size, id, place.rank, &config), "ncclCommInitRankConfig", timeout_);
    } catch (...) {
      abort();
      throw;
    }
  }
  ~NcclLink() override;
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  DeviceEvent exchange(const std::vector<LinkMessage>& sends, const std::vector<LinkMessage>& receives,
                       const DeviceEvent& ready) override {
    const std::lock_guard lock(mutex_);
    if (given_up_ || comm_ == nullptr) throw RuntimeError("NCCL", kClosed);
    stream_.use();
    stream_.wait_for(ready);
    check(functions().group_start(), "ncclGroupStart");
    ncclResult_t code = ncclSuccess;
    for (const LinkMessage& m : sends) {
      if (code == ncclSuccess || code == ncclInProgress)
        code = functions().send(m.memory, static_cast<size_t>(m.bytes), ncclInt8, m.peer, comm_, stream_.get());
    }
    for (const LinkMessage& m : receives) {
      if (code == ncclSuccess || code == ncclInProgress)
        code = functions().receive(m.memory, static_cast<size_t>(m.bytes), ncclInt8, m.peer, comm_, stream_.get());
    }
    const ncclResult_t ended = functions().group_end();
    check(code, "ncclSend or ncclRecv");
    settle(ended, "ncclGroupEnd", timeout_);
    under_way_.push_back({ready, stream_.record(), 0});
    return under_way_.back().end;
  }

  std::string error() override {
    const std::lock_guard lock(mutex_);
    ncclResult_t code = ncclSuccess;
    if (comm_ != nullptr) functions().async_error(comm_, &code);
    if (code != ncclSuccess && code != ncclInProgress) return functions().error_string(code);
    while (!under_way_.empty() && passed(under_way_.front().end)) under_way_.pop_front();
    if (under_way_.empty() || !passed(under_way_.front().ready)) return "";
    double& since = under_way_.front().since;
    if (since == 0) since = now_seconds();
    if (now_seconds() - since <= timeout_) return "";
    return fmt::format("its GPU waits for messages of other ranks for more than {} s", timeout_);
  }

  void abort() override {
    given_up_ = true;  // tells a thread that waits with the lock to release it
    const std::lock_guard lock(mutex_);
    if (comm_ != nullptr) functions().abort(comm_);
    comm_ = nullptr;
  }

 private:
  // Waits until the NCCL call that has returned `code` has ended. Throws RuntimeError if it fails
  // or takes longer than `seconds`.
  void settle(ncclResult_t code, const char* call, double seconds) {
    const double until = now_seconds() + seconds;
    while (code == ncclInProgress) {
      if (given_up_) throw RuntimeError("NCCL", kClosed);
      if (now_seconds() > until)
        throw RuntimeError("NCCL", fmt::format("{}: other ranks do not answer for more than {} s", call, seconds));
      std::this_thread::sleep_for(kAskAgain);
      check(functions().async_error(comm_, &code), "ncclCommGetAsyncError");
    }
    check(code, call);
  }

  static bool passed(const DeviceEvent& event) {
    const bool yes = cudaEventQuery(static_cast<cudaEvent_t>(event.get())) == cudaSuccess;
    if (!yes) cudaGetLastError();
    return yes;
  }

  // The messages of one call of exchange(). `since` is the time from which they have waited for
  // other ranks; 0 as long as the device has not reached `ready`.
  struct UnderWay {
    DeviceEvent ready, end;
    double since;
  };

  double timeout_;
  std::mutex mutex_;  // guards comm_ and under_way_
  std::deque<UnderWay> under_way_;
  std::atomic<bool> given_up_{false};
  LinkStream stream_;
  ncclComm_t comm_ = nullptr;
};

NcclLink::~NcclLink() {
  if (!given_up_ && comm_ != nullptr) {
    try {
      const std::lock_guard lock(mutex_);
      settle(functions().finalize(comm_), "ncclCommFinalize", kCloseLimit);
      functions().destroy(comm_);
      comm_ = nullptr;
    } catch (const std::exception& failed) {
      log_verbose(std::string("NCCL did not end in good order: ") + failed.what());
    }
  }
  abort();
}

class Plugin final : public LinkPlugin {
 public:
  std::string version() override {
    int code = 0;
    check(functions().version(&code), "ncclGetVersion");
    return fmt::format("{}.{}.{}", code / 10000, code % 10000 / 100, code % 100);
  }
  std::string uuid(int device) override {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    std::string text;
    for (const char byte : properties.uuid.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return text;
  }
  std::string new_id() override {
    ncclUniqueId id;
    check(functions().unique_id(&id), "ncclGetUniqueId");
    return {reinterpret_cast<const char*>(&id), sizeof id};
  }
  std::unique_ptr<DeviceLink> connect(const LinkPlace& place) override { return std::make_unique<NcclLink>(place); }
};

}  // namespace
}  // namespace nacre::nccl

extern "C" __attribute__((visibility("default"))) nacre::LinkPlugin* nacre_link_plugin(int abi);

nacre::LinkPlugin* nacre_link_plugin(int abi) {
  if (abi != nacre::kLinkAbi) return nullptr;
  nacre::nccl::functions();  // throws UserError if there is no NCCL
  // The plug-in is never destroyed, because links may still exist when static objects are
  // destroyed.
  static auto* plugin = new nacre::nccl::Plugin;
  return plugin;
}
