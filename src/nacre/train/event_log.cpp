// This file writes event files of TensorBoard. A file is a series of records; each is an Event, a
// message of protocol buffers (tensorflow/core/util/event.proto), framed with its length and
// checksums.
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "nacre/base/error.h"
#include "nacre/train/epoch_log.h"

namespace nacre {
namespace {

// Returns the CRC-32C of the bytes. The constant below is its polynomial 0x1EDC6F41 with the bits
// in reversed order.
uint32_t crc32c(const std::string& bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> all{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82F63B78u : 0);
      all[i] = c;
    }
    return all;
  }();
  uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<uint8_t>(byte)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

// Returns the form in which the format stores a checksum. A plain checksum inside data that has a
// checksum itself would be weak.
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xA282EAD8u; }

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

// These are wire types of protocol buffers.
enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value % 128 + 128);
  return bytes + static_cast<char>(value);
}
std::string key(int field, Wire type) { return varint(static_cast<uint64_t>(field) * 8 + static_cast<uint64_t>(type)); }
std::string number(int field, uint64_t value) { return key(field, Wire::varint) + varint(value); }
std::string real(int field, double value) {
  return key(field, Wire::fixed64) + little_endian(std::bit_cast<uint64_t>(value));
}
std::string real(int field, float value) {
  return key(field, Wire::fixed32) + little_endian(std::bit_cast<uint32_t>(value));
}
std::string bytes(int field, const std::string& value) {
  return key(field, Wire::bytes) + varint(value.size()) + value;
}

// These are the numbers of the fields of the messages.
namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace summary {
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2;
}
namespace session_log {
constexpr int kStatus = 1, kStart = 1;
}

double wall_time() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string file_name() {
  // This number keeps names apart if a process starts several runs in a second.
  static std::atomic<int> number{0};
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {'h', 'o', 's', 't'};
  return "events.out.tfevents." + std::to_string(std::time(nullptr)) + "." + host.data() + "." +
         std::to_string(getpid()) + "." + std::to_string(number++);
}

class EventLog : public EpochLog {
 public:
  explicit EventLog(const EpochLogPlace& place) : metric_(place.metric) {
    const std::string folder = place.folder + "/tensorboard";
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw UserError(folder, "cannot be created: " + error.message());
    path_ = folder + "/" + file_name();
    file_ = std::fopen(path_.c_str(), "wbe");
    if (file_ == nullptr) throw UserError(path_, "cannot be written");
    write(bytes(event::kFileVersion, "brain.Event:2"), 0);
    if (place.resumed_epoch > 0) start_again(place);
  }
  ~EventLog() override { std::fclose(file_); }
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void add(const EpochReport& r) override {
    std::string values;
    const auto scalar = [&](const std::string& tag, double value) {
      if (std::isfinite(value))
        values +=
            bytes(summary::kValue, bytes(summary::kTag, tag) + real(summary::kSimpleValue, static_cast<float>(value)));
    };
    scalar("loss/train", r.loss);
    scalar("loss/val", r.scores.val_loss);
    scalar(metric_ + "/train", r.scores.train);
    scalar(metric_ + "/val", r.scores.val);
    scalar(metric_ + "/test", r.scores.test);
    scalar("lr", r.lr);
    scalar("seconds", r.seconds);
    write(bytes(event::kSummary, values), r.epoch);
  }

 private:
  // Continues the log of a resumed run in this file. Earlier files may lack the last epoch, because
  // it could not be written there. If the metrics of the run have that epoch, it is written again.
  void start_again(const EpochLogPlace& place) {
    const std::map<int, EpochReport> known = epochs_in_metrics(place);
    const auto last = known.find(place.resumed_epoch);
    const int first = place.resumed_epoch + (last == known.end() ? 1 : 0);
    // With this event, TensorBoard drops what earlier files say of the steps from `first` on.
    write(bytes(event::kSessionLog, number(session_log::kStatus, session_log::kStart)), first);
    if (last != known.end()) add(last->second);
  }

  void write(const std::string& what, int step) {
    const std::string data =
        real(event::kWallTime, wall_time()) + number(event::kStep, static_cast<uint64_t>(step)) + what;
    const std::string length = little_endian(static_cast<uint64_t>(data.size()));
    const std::string record =
        length + little_endian(masked(crc32c(length))) + data + little_endian(masked(crc32c(data)));
    if (std::fwrite(record.data(), 1, record.size(), file_) != record.size() || std::fflush(file_) != 0)
      throw RuntimeError(path_, "cannot be written");
  }

  std::string metric_;
  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace

std::unique_ptr<EpochLog> open_event_log(const EpochLogPlace& place) { return std::make_unique<EventLog>(place); }

}  // namespace nacre
