#include "support/emulator/emulated_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "support/emulator/kernels.h"
#include "support/emulator/memory.h"
#include "support/emulator/products.h"
#include "support/emulator/settings.h"
#include "support/emulator/stream.h"

namespace nacre::emulator {
namespace {

constexpr int kMultiprocessors = 32;

using Recorded = std::vector<Work>;

// Says what a thread records, and for which device.
struct Recording {
  const Device* device = nullptr;
  std::shared_ptr<Recorded> work;
};
thread_local Recording recording;
thread_local const Device* beside = nullptr;  // the device whose second stream the thread uses

// Counts the multiprocessors of all parts of GPUs that are open, as the driver does.
std::atomic<int> taken_multiprocessors{0};

// While a device has a TakenPart, some of the multiprocessors are taken. Like the driver, this
// class gives out groups of eight multiprocessors.
class TakenPart {
 public:
  explicit TakenPart(int multiprocessors) : count_((multiprocessors + 7) / 8 * 8) {
    const int before = taken_multiprocessors.fetch_add(count_);
    if (before + count_ <= kMultiprocessors) return;
    taken_multiprocessors -= count_;
    throw UserError("device",
                    std::to_string(multiprocessors) + " multiprocessors are asked for, but only " +
                        std::to_string(kMultiprocessors - before) + " of this GPU are free",
                    "use fewer or smaller virtual devices");
  }
  ~TakenPart() { taken_multiprocessors -= count_; }
  TakenPart(const TakenPart&) = delete;
  TakenPart& operator=(const TakenPart&) = delete;

 private:
  int count_;
};

class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(int multiprocessors)
      : part_(multiprocessors),
        info_(describe_device()),
        failure_(std::make_shared<Failure>()),
        stream_(failure_),
        beside_(failure_),
        copies_(failure_),
        memory_(stream_) {
    Settings::this_thread_is(Role::opener);
    if (multiprocessors > 0) info_.multiprocessors = multiprocessors;
  }
  ~EmulatedDevice() override {
    copies_.synchronize();
    beside_.synchronize();
    stream_.synchronize();
  }
  EmulatedDevice(const EmulatedDevice&) = delete;
  EmulatedDevice& operator=(const EmulatedDevice&) = delete;

  const DeviceInfo& info() const override { return info_; }

  // ---- The functions below are about memory.
  void* allocate(int64_t bytes) override {
    called("allocate");
    return memory_.allocate(bytes);
  }
  void release(void* memory) override { memory_.release(memory); }
  int64_t used_bytes() const override { return memory_.used_bytes(); }
  int64_t peak_bytes() const override { return memory_.peak_bytes(); }
  void reset_peak() override { memory_.reset_peak(); }
  void trim() override {
    called("trim");
    copies_.synchronize();
    memory_.trim();
  }
  void* allocate_pinned(int64_t bytes) override {
    called("allocate_pinned");
    return emulator::allocate_pinned(bytes);
  }
  void release_pinned(void* memory) override;
  void upload(void* to, const void* from, int64_t bytes) override;
  void upload_few(void* to, const void* from, int64_t bytes) override;
  void upload_beside(void* to, const void* from, int64_t bytes) override;
  void download(void* to, const void* from, int64_t bytes) override;
  void copy(void* to, const void* from, int64_t bytes) override {
    may_record("copy");
    check_place(to, bytes);
    check_place(from, bytes);
    if (bytes > 0) submit([=](BlockRunner&) { std::memmove(to, from, static_cast<size_t>(bytes)); });
  }
  void fill(void* to, int byte, int64_t bytes) override {
    may_record("fill");
    check_place(to, bytes);
    if (bytes > 0) submit([=](BlockRunner&) { std::memset(to, byte, static_cast<size_t>(bytes)); });
  }

  // ---- The functions below load and launch kernels.
  DeviceFunction load(const std::string& image, const std::string& function) override {
    called("load");
    return const_cast<Kernel*>(kernels_.load(image, function));
  }
  void launch(DeviceFunction function, const LaunchShape& shape, const std::vector<void*>& args) override {
    const auto& kernel = *static_cast<const Kernel*>(function);
    may_record("launch of " + kernel.name);
    if (shape.blocks != 0) submit(Launch(kernel, shape, args, info_.shared_bytes));
  }
  int occupancy(DeviceFunction function, int threads, int64_t shared_bytes) override {
    may_record("occupancy");
    NACRE_CHECK(shared_bytes <= info_.shared_bytes, static_cast<const Kernel*>(function)->name + " wants " +
                                                        std::to_string(shared_bytes) + " bytes of shared memory");
    const int64_t by_memory = shared_bytes > 0 ? (info_.shared_bytes + 1024) / shared_bytes : 32;
    return static_cast<int>(std::min<int64_t>({32, 2048 / std::max(threads, 1), std::max<int64_t>(by_memory, 1)}));
  }

  // ---- The functions below compute matrix products.
  int prepare_gemm(const GemmShape& shape, int /*among*/) override {
    called("prepare_gemm");
    return products_.prepare(shape);
  }
  void release_gemm(int handle) override { products_.release(handle); }
  int64_t gemm_workspace(int handle) const override { return products_.workspace(handle); }
  void run_gemm(int handle, const GemmArgs& args, void* workspace) override {
    may_record("run_gemm");
    const GemmShape shape = products_.shape_for(handle, args, workspace);
    submit([=](BlockRunner&) { multiply(shape, args); });
  }

  // ---- The functions below are device-wide primitives.
  void sort_pairs(uint64_t* keys, uint32_t* values, int64_t n, int bits) override { sort(keys, values, n, bits); }
  void sort_pairs(uint32_t* keys, uint32_t* values, int64_t n, int bits) override { sort(keys, values, n, bits); }
  void exclusive_sum(const uint32_t* in, int64_t* out, int64_t n) override;
  int64_t positions_of(const uint8_t* flags, uint32_t* out, int64_t n) override;

  // ---- The functions below are about graphs of launches and about time.
  void begin_capture() override {
    called("begin_capture");
    NACRE_CHECK(recording.device == nullptr, "a thread that records launches already begins to record again");
    recording = {this, std::make_shared<Recorded>()};
    ++recorders_;
    Settings::get().stretch();
  }
  LaunchGraph end_capture() override {
    NACRE_CHECK(recording.device == this, "end_capture() was called without begin_capture()");
    LaunchGraph graph = std::move(recording.work);
    recording = {};
    --recorders_;
    Settings::get().count(Fault::call, "end_capture()");
    return graph;
  }
  void replay(const LaunchGraph& graph) override {
    called("replay");
    stream_.queue([recorded = std::static_pointer_cast<Recorded>(graph)](BlockRunner& runner) {
      for (const Work& work : *recorded) work(runner);
    });
  }
  DeviceEvent record() override {
    called("record");
    return current().record();
  }
  DeviceEvent copied() override {
    called("record");
    return copies_.record();
  }
  void wait_for(const DeviceEvent& event) override {
    called("wait_for");
    current().wait_for(std::static_pointer_cast<Event>(event));
  }
  void begin_beside() override {
    forbid_in_capture("begin_beside");
    NACRE_CHECK(beside == nullptr, "a thread that queues work beside begins to do so again");
    beside = this;
  }
  void end_beside() override { beside = nullptr; }
  void await(const DeviceEvent& event) override {
    called("await");
    std::static_pointer_cast<Event>(event)->await();
    failure_->check();
  }
  double elapsed(const DeviceEvent& from, const DeviceEvent& to) override {
    called("elapsed");
    const double end = std::static_pointer_cast<Event>(to)->seconds();
    return end - std::static_pointer_cast<Event>(from)->seconds();
  }
  void synchronize() override {
    called("synchronize");
    stream_.synchronize();
    failure_->check();
  }
  // Returns whether this device can read the memory of `other`. Any device could, because all
  // memory is that of the process, but with NACRE_EMULATOR_PEERS=0 devices say that they cannot.
  bool reaches(const Device& other) override { return &other == this || Settings::get().peers(); }

 private:
  // Functions that a thread may not call while it records launches call this one first. It throws
  // if the thread records.
  void called(const std::string& call) {
    forbid_in_capture(call);
    may_record(call);
  }
  void forbid_in_capture(const std::string& call) const {
    const bool others = Settings::get().forbids_others() && recorders_ > 0;
    NACRE_CHECK(recording.device != this && !others, call + "() while launches are recorded");
  }
  void may_record(const std::string& call) {
    Settings::get().pause();
    Settings::get().count(Fault::call, call + "()");
    failure_->check();
  }
  // Checks that the memory of a copy belongs to the device. Arguments of kernels are not checked,
  // because pointers among them cannot be told apart from numbers.
  static void check_place(const void* memory, int64_t bytes) {
    NACRE_CHECK(bytes == 0 || is_device_memory(memory, bytes) || is_pinned(memory),
                "a copy of " + std::to_string(bytes) + " bytes from or to what is not memory of the device");
  }
  void submit(Work work) {
    if (recording.device == this) {
      recording.work->push_back(std::move(work));
    } else {
      current().queue(std::move(work));
    }
  }
  Stream& current() { return beside == this ? beside_ : stream_; }
  template <class Key>
  void sort(Key* keys, uint32_t* values, int64_t n, int bits);

  TakenPart part_;
  DeviceInfo info_;
  std::shared_ptr<Failure> failure_;
  Stream stream_, beside_, copies_;
  Memory memory_;
  Kernels kernels_;
  Products products_;
  std::atomic<int> recorders_{0};
};

// Gives page-locked memory back. Destructors call this function, so it does not throw if it fails;
// then the memory is lost.
void EmulatedDevice::release_pinned(void* memory) {
  if (memory == nullptr) return;
  forbid_in_capture("release_pinned");
  try {
    may_record("release_pinned");
    // Like the CUDA driver, this waits for copies from page-locked memory before the memory is
    // freed.
    copies_.synchronize();
    stream_.synchronize();
    emulator::release_pinned(memory);
  } catch (const std::exception& error) {
    log_verbose(std::string("page-locked memory was not given back: ") + error.what());
  }
}

// Copies bytes to the device. Page-locked memory is read when the stream comes to the copy. Other
// memory is read during the call, so that the caller may free it afterwards.
void EmulatedDevice::upload(void* to, const void* from, int64_t bytes) {
  called("upload");
  if (bytes == 0) return;
  check_place(to, bytes);
  if (is_pinned(from)) {
    stream_.queue([=](BlockRunner&) { std::memcpy(to, from, static_cast<size_t>(bytes)); });
    return;
  }
  const auto* first = static_cast<const char*>(from);
  stream_.queue([to, kept = std::vector<char>(first, first + bytes)](BlockRunner&) {
    std::memcpy(to, kept.data(), kept.size());
  });
}

void EmulatedDevice::upload_few(void* to, const void* from, int64_t bytes) {
  called("upload_few");
  NACRE_CHECK(bytes >= 0 && bytes <= kFewBytes,
              "upload_few() was given " + std::to_string(bytes) + " bytes, which is too many");
  check_place(to, bytes);
  const auto* first = static_cast<const char*>(from);
  stream_.queue([to, kept = std::vector<char>(first, first + bytes)](BlockRunner&) {
    if (!kept.empty()) std::memcpy(to, kept.data(), kept.size());
  });
}

void EmulatedDevice::upload_beside(void* to, const void* from, int64_t bytes) {
  called("upload_beside");
  if (bytes == 0) return;
  check_place(to, bytes);
  NACRE_CHECK(is_pinned(from), "upload_beside() from memory that is not page-locked");
  copies_.wait_for(stream_.record());
  copies_.queue([=](BlockRunner&) { std::memcpy(to, from, static_cast<size_t>(bytes)); });
}

void EmulatedDevice::download(void* to, const void* from, int64_t bytes) {
  called("download");
  check_place(from, bytes);
  if (bytes > 0) stream_.queue([=](BlockRunner&) { std::memcpy(to, from, static_cast<size_t>(bytes)); });
  stream_.synchronize();
  failure_->check();
}

template <class Key>
void EmulatedDevice::sort(Key* keys, uint32_t* values, int64_t n, int bits) {
  called("sort_pairs");
  NACRE_CHECK(bits >= 0 && bits <= static_cast<int>(8 * sizeof(Key)),
              "a sort was asked for by more bits than a key has");
  if (n <= 1 || bits == 0) return;
  void* room = memory_.allocate(n * static_cast<int64_t>(sizeof(Key) + sizeof(uint32_t)));
  stream_.queue([=](BlockRunner&) {
    const Key mask = bits == static_cast<int>(8 * sizeof(Key)) ? static_cast<Key>(-1) : (Key{1} << bits) - 1;
    std::vector<size_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return (keys[a] & mask) < (keys[b] & mask); });
    const std::vector<Key> old_keys(keys, keys + n);
    const std::vector<uint32_t> old_values(values, values + n);
    for (size_t i = 0; i < order.size(); ++i) {
      keys[i] = old_keys[order[i]];
      values[i] = old_values[order[i]];
    }
  });
  memory_.release(room);
}

void EmulatedDevice::exclusive_sum(const uint32_t* in, int64_t* out, int64_t n) {
  called("exclusive_sum");
  stream_.queue([=](BlockRunner&) {
    int64_t sum = 0;
    out[0] = 0;
    for (int64_t i = 0; i < n; ++i) out[i + 1] = sum += in[i];
  });
}

int64_t EmulatedDevice::positions_of(const uint8_t* flags, uint32_t* out, int64_t n) {
  called("positions_of");
  NACRE_CHECK(n <= int64_t{1} << 32, "positions_of() was given more than 2^32 flags");
  int64_t found = 0;
  stream_.queue([=, &found](BlockRunner&) {
    for (int64_t i = 0; i < n; ++i) {
      if (flags[i] != 0) out[found++] = static_cast<uint32_t>(i);
    }
  });
  stream_.synchronize();
  failure_->check();
  return found;
}

}  // namespace

DeviceInfo describe_device() {
  const Settings& settings = Settings::get();
  DeviceInfo info;
  info.name = "emulated GPU";
  info.memory_bytes = settings.memory_bytes();
  info.free_bytes = std::max<int64_t>(settings.memory_bytes() - Memory::taken_bytes(), 0);
  info.multiprocessors = info.whole_multiprocessors = kMultiprocessors;
  info.arch = settings.arch();
  info.clock_mhz = 1000;
  info.l2_bytes = 4 << 20;
  info.shared_bytes = (settings.arch() >= 90 ? 227 : 163) << 10;
  return info;
}

std::unique_ptr<Device> open_device(int multiprocessors) { return std::make_unique<EmulatedDevice>(multiprocessors); }

}  // namespace nacre::emulator
