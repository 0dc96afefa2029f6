// Links emulated GPUs of several processes of one machine, in the place of NCCL. Messages go
// through sockets, between memories that are all host memory. Work waits for other ranks as NCCL's
// kernels do: it runs in a stream, in order.
#include "nacre/device/link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/device/link_abi.h"
#include "support/emulator/stream.h"

namespace nacre::emulator {
namespace {

constexpr int kPollMilliseconds = 20;

[[noreturn]] void fail(const std::string& what) { throw RuntimeError("NCCL", "emulated: " + what); }

sockaddr_un address_of(const std::string& folder, int rank) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder + "/" + std::to_string(rank);
  NACRE_CHECK(path.size() < sizeof address.sun_path, "the folder of a link has too long a name");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Owns a file descriptor, which the destructor closes.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int file) : file_(file) {
    if (file < 0) fail("there is no socket");
  }
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Socket() {
    if (file_ >= 0) close(file_);
  }
  int get() const { return file_; }

 private:
  int file_ = -1;
};

// Names the bytes of a message that have not been moved yet.
struct Rest {
  int peer;
  std::byte* at;
  int64_t left;
};

std::vector<Rest> rest_of(const std::vector<LinkMessage>& messages) {
  std::vector<Rest> all;
  for (const LinkMessage& m : messages) all.push_back({m.peer, static_cast<std::byte*>(m.memory), m.bytes});
  return all;
}

class EmulatedLink final : public DeviceLink {
 public:
  explicit EmulatedLink(const LinkPlace& place)
      : rank_(place.rank),
        timeout_(place.timeout),
        folder_(place.id),
        sockets_(place.size),
        stream_(std::make_shared<Failure>()) {
    const Socket listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un own = address_of(place.id, rank_);
    if (bind(listener.get(), reinterpret_cast<sockaddr*>(&own), sizeof own) != 0 || listen(listener.get(), 64) != 0)
      fail("a rank cannot listen");
    const double until = now_seconds() + place.timeout;
    for (int peer = 0; peer < rank_; ++peer) sockets_[peer] = call(place.id, peer, until);
    for (int i = rank_ + 1; i < place.size; ++i) answer(listener, until);
    for (const Socket& each : sockets_) {
      if (each.get() >= 0) fcntl(each.get(), F_SETFL, O_NONBLOCK);
    }
  }
  ~EmulatedLink() override {
    if (!given_up_) stream_.synchronize();
    std::error_code ignored;
    if (rank_ == 0) std::filesystem::remove_all(folder_, ignored);
  }
  EmulatedLink(const EmulatedLink&) = delete;
  EmulatedLink& operator=(const EmulatedLink&) = delete;

  DeviceEvent exchange(const std::vector<LinkMessage>& sends, const std::vector<LinkMessage>& receives,
                       const DeviceEvent& ready) override {
    if (given_up_) fail("this process closed its connection between GPUs, because a rank had failed");
    stream_.wait_for(std::static_pointer_cast<Event>(ready));
    stream_.queue([this, out = rest_of(sends), in = rest_of(receives)](BlockRunner&) mutable { move(out, in); });
    return stream_.record();
  }
  std::string error() override {
    if (late_) return "its GPU waits for messages of other ranks for more than the timeout";
    return broken_ ? "a peer has closed its socket" : "";
  }
  void abort() override { given_up_ = true; }

 private:
  Socket call(const std::string& folder, int peer, double until) const {
    sockaddr_un address = address_of(folder, peer);
    while (now_seconds() < until) {
      Socket made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (connect(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
        if (write(made.get(), &rank_, sizeof rank_) != sizeof rank_) fail("a peer does not listen");
        return made;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    fail("rank " + std::to_string(peer) + " does not answer");
  }
  void answer(const Socket& listener, double until) {
    pollfd look{listener.get(), POLLIN, 0};
    if (poll(&look, 1, static_cast<int>(1000 * std::max(0.0, until - now_seconds()))) <= 0)
      fail("a rank does not call");
    Socket made(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    int peer = -1;
    if (read(made.get(), &peer, sizeof peer) != sizeof peer || peer <= rank_ ||
        peer >= static_cast<int>(sockets_.size()))
      fail("a rank says nothing");
    sockets_[peer] = std::move(made);
  }

  // Sends and receives what the sockets allow, until all messages have been moved, or the link is
  // given up or broken.
  void move(std::vector<Rest>& out, std::vector<Rest>& in) {
    for (Rest& own : out) {
      if (own.peer != rank_) continue;
      for (Rest& to : in) {
        if (to.peer == rank_) std::memmove(to.at, own.at, static_cast<size_t>(own.left));
        if (to.peer == rank_) to.left = 0;
      }
      own.left = 0;
    }
    const double since = now_seconds();
    while (!given_up_ && !broken_) {
      if (now_seconds() - since > timeout_) late_ = true;
      std::vector<pollfd> looks;
      const auto look = [&](const std::vector<Rest>& rests, int16_t what) {
        for (const Rest& rest : rests) {
          if (rest.left > 0) looks.push_back({sockets_[rest.peer].get(), what, 0});
        }
      };
      look(out, POLLOUT);
      look(in, POLLIN);
      if (looks.empty()) return;
      poll(looks.data(), looks.size(), kPollMilliseconds);
      for (Rest& rest : out) {
        if (rest.left > 0)
          step(rest, send(sockets_[rest.peer].get(), rest.at, static_cast<size_t>(rest.left), MSG_NOSIGNAL));
      }
      for (Rest& rest : in) {
        if (rest.left > 0) step(rest, recv(sockets_[rest.peer].get(), rest.at, static_cast<size_t>(rest.left), 0));
      }
    }
  }
  void step(Rest& rest, ssize_t moved) {
    if (moved > 0) {
      rest.at += moved;
      rest.left -= moved;
    } else if (moved == 0 || (errno != EAGAIN && errno != EINTR)) {
      broken_ = true;
    }
  }

  int rank_;
  double timeout_;
  std::string folder_;
  std::vector<Socket> sockets_;  // the socket of each peer
  std::atomic<bool> given_up_{false}, broken_{false}, late_{false};
  Stream stream_;  // the last member, because its work uses the other members
};

class Links final : public LinkPlugin {
 public:
  std::string version() override { return "emulated"; }
  std::string uuid(int device) override { return std::to_string(getpid()) + "-" + std::to_string(device); }
  std::string new_id() override {
    std::string folder = std::filesystem::temp_directory_path() / "nacre-link-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) fail("there is no folder for sockets");
    return folder;
  }
  std::unique_ptr<DeviceLink> connect(const LinkPlace& place) override { return std::make_unique<EmulatedLink>(place); }
};

}  // namespace
}  // namespace nacre::emulator

extern "C" __attribute__((visibility("default"))) nacre::LinkPlugin* nacre_link_plugin(int abi);

nacre::LinkPlugin* nacre_link_plugin(int abi) {
  static auto* links = new nacre::emulator::Links;
  return abi == nacre::kLinkAbi ? links : nullptr;
}
