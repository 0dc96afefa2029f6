// Defines nacre_mpi_transport(), the only function that the plug-in exports.
//
// All calls of MPI are made by one thread at a time (MPI_THREAD_SERIALIZED), and apart from the
// start and the end of MPI none of them waits. So ranks that share cores do not spin while others
// have work to do, and a rank that is dead or stopped blocks nobody.
#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nacre/cluster/end_timer.h"
#include "nacre/cluster/mpi_abi.h"
#include "nacre/mpi/neighbours.h"

namespace nacre::mpi {
namespace {

constexpr int kTag = 1;
constexpr int kReceivesAtOnce = 32;
// Seconds that MPI may take to start, in addition to the timeout of the ranks, and seconds that it
// may take to end. The processes of a busy machine may be slow to end.
constexpr double kStartLimit = 8;
constexpr double kCloseLimit = 30;
// Seconds that MPI may take to end while another process of this machine is seen to be stopped.
// This is shorter than EndTimer::kStopped, so that a message can name the stopped rank before its
// process is killed.
constexpr double kStoppedLimit = 4;
// Seconds between two looks at the other processes of this machine while MPI ends.
constexpr double kLookStep = 0.25;
// Seconds between the moments at which two ranks end that have waited too long for the start or the
// end of MPI. The first one prints a message, and the launcher ends the others.
constexpr double kBetweenRanks = 0.3;

// Throws TransportError if a call of MPI has failed. `peer` is the rank that the call was about, or
// -1.
void check(int code, int peer, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw TransportError(peer, std::string(call) + " failed: " + text);
}

// Calls `look` again and again, with the seconds since the watchdog was made, until the watchdog is
// destroyed. `look` may end the process. A watchdog is needed because MPI waits for ever for a
// process that is stopped, or that dies at the wrong moment.
class Watchdog {
 public:
  // Calls `look` for the first time after `first` seconds, and then every kLookStep seconds.
  Watchdog(double first, std::function<void(double)> look)
      : thread_([this, first, look = std::move(look)] {
          const auto began = std::chrono::steady_clock::now();
          std::unique_lock lock(mutex_);
          for (double pause = first; !over_after(lock, pause); pause = kLookStep)
            look(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  bool over_after(std::unique_lock<std::mutex>& lock, double seconds) {
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return over_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

// A packet that MPI reads or writes. Its memory belongs to the transport until MPI is done, even if
// the call that it belongs to has been given up.
struct Transfer {
  Packet packet;
  MPI_Request request = MPI_REQUEST_NULL;

  bool done(int peer, const char* call) {
    int flag = 0;
    check(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), peer, call);
    return flag != 0;
  }
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm comm, LastWords last_words) : comm_(comm), last_words_(last_words) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    outgoing_.resize(size_);
    incoming_.resize(size_);
    ProcessCard own = own_card();
    std::vector<ProcessCard> cards(size_);
    check(MPI_Allgather(&own, sizeof own, MPI_BYTE, cards.data(), sizeof own, MPI_BYTE, comm_), -1, "MPI_Allgather");
    neighbours_ = Neighbours(rank_, std::move(cards));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_size() const override { return neighbours_.count(); }
  int local_rank() const override { return neighbours_.before(); }
  int unsent(int to) const override { return static_cast<int>(outgoing_[to].size()); }
  bool gone(int rank) override { return neighbours_.gone(rank); }

  void send(int to, Packet packet) override {
    if (packet.size > static_cast<size_t>(std::numeric_limits<int>::max())) {
      throw TransportError(rank_, "it sends a text of more than two gigabytes");
    }
    Transfer& transfer = outgoing_[to].emplace_back();
    transfer.packet = std::move(packet);
    check(MPI_Isend(transfer.packet.bytes.get(), static_cast<int>(transfer.packet.size), MPI_BYTE, to, kTag, comm_,
                    &transfer.request),
          to, "MPI_Isend");
  }

  bool poll(FunctionRef<void(int, Packet)> receive) override {
    bool any = match();
    for (int peer = 0; peer < size_; ++peer) {
      any = finish(outgoing_[peer], peer, "MPI_Isend", [](Packet) {}) || any;
      any =
          finish(incoming_[peer], peer, "MPI_Imrecv", [&](Packet packet) { receive(peer, std::move(packet)); }) || any;
    }
    return any;
  }

  void close(double exits_within) override;
  [[noreturn]] void end_all(int code) override;

 private:
  // Begins to receive the messages that have been announced. Returns whether there were any.
  bool match() {
    bool any = false;
    for (int i = 0; i < kReceivesAtOnce; ++i) {
      int flag = 0, bytes = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      check(MPI_Improbe(MPI_ANY_SOURCE, kTag, comm_, &flag, &message, &status), -1, "MPI_Improbe");
      if (flag == 0) break;
      any = true;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      Transfer& transfer = incoming_[status.MPI_SOURCE].emplace_back();
      transfer.packet = {std::make_unique_for_overwrite<std::byte[]>(bytes), static_cast<size_t>(bytes)};
      check(MPI_Imrecv(transfer.packet.bytes.get(), bytes, MPI_BYTE, &message, &transfer.request), status.MPI_SOURCE,
            "MPI_Imrecv");
    }
    return any;
  }

  // Passes the packets of the first transfers of a queue to `use`, in order, up to the first
  // transfer that is not done. Returns whether there were any.
  template <class Use>
  static bool finish(std::deque<Transfer>& queue, int peer, const char* call, const Use& use) {
    bool any = false;
    while (!queue.empty() && queue.front().done(peer, call)) {
      Packet packet = std::move(queue.front().packet);
      queue.pop_front();
      use(std::move(packet));
      any = true;
    }
    return any;
  }

  MPI_Comm comm_;
  LastWords last_words_;
  int rank_ = 0, size_ = 1;
  Neighbours neighbours_;
  std::vector<std::deque<Transfer>> outgoing_, incoming_;  // transfers of each peer, in order
};

// Ends MPI. If another rank is stopped, the watchdog ends this process. If this process itself is
// stopped while MPI ends or afterwards, the other processes may have ended already and cannot help,
// so the timer kills it.
void MpiTransport::close(double exits_within) {
  const double later = kBetweenRanks * rank_;
  EndTimer timer(kCloseLimit + later + 1);
  std::optional<Watchdog> watchdog;
  watchdog.emplace(kLookStep, [this, later, seen = -1, since = 0.0](double now) mutable {
    const int stopped = neighbours_.stopped();
    if (stopped != seen) since = now;
    seen = stopped;
    const bool too_long = seen >= 0 && now - since > kStoppedLimit + later;
    if (!too_long && now < kCloseLimit + later) return;
    // If a rank with a lower number on this machine has ended, it has printed the message already,
    // or MPI ended there as it should. In both cases the launcher or the system ends the other
    // processes.
    if (too_long && neighbours_.gone_before()) return;
    last_words_(fmt::format("{} has not ended within {:g} s after the end of the run",
                            too_long ? fmt::format("rank {}: it", seen) : "MPI: one of the processes",
                            too_long ? kStoppedLimit : kCloseLimit));
    end_all(1);
  });
  MPI_Comm_free(&comm_);
  MPI_Finalize();
  watchdog.reset();
  if (exits_within > 0) timer.keep(exits_within);
}

void MpiTransport::end_all(int code) {
  std::fflush(nullptr);
  // mpirun ends all other processes when one ends with a code other than 0. Other launchers need a
  // call of MPI_Abort(). It may hang, so a thread ends this process after two seconds.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) {
    std::thread([code] {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      _exit(code);
    }).detach();
    MPI_Abort(MPI_COMM_WORLD, code);
  }
  _exit(code);
}

}  // namespace

Transport* start(double timeout, LastWords last_words) {
  // The components of Open MPI are libraries of their own, which look for the symbols of Open MPI
  // in the whole process. So its symbols are made visible to them.
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &info) != 0) {
    dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  }
  // The first variable keeps MPI from spinning while it starts and ends. The second one keeps it
  // from reading the memory of other processes: some containers forbid that, and the memory of a
  // process that has been killed cannot be read. Users may set both variables themselves.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const double limit = timeout + kStartLimit;
  const double later = rank != nullptr ? kBetweenRanks * std::atoi(rank) : 0;
  const Watchdog watchdog(limit + later, [limit, last_words](double) {
    last_words(fmt::format("MPI: the processes have not met within {:g} s; one of them does not answer", limit));
    _exit(1);
  });
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), -1, "MPI_Init_thread");
  if (provided < MPI_THREAD_SERIALIZED) throw TransportError(-1, "this MPI cannot be called from several threads");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), -1, "MPI_Comm_dup");
  return new MpiTransport(comm, last_words);
}

}  // namespace nacre::mpi

extern "C" __attribute__((visibility("default"))) nacre::Transport* nacre_mpi_transport(int abi, double timeout,
                                                                                        nacre::LastWords last_words);

nacre::Transport* nacre_mpi_transport(int abi, double timeout, nacre::LastWords last_words) {
  return abi == nacre::kMpiAbi ? nacre::mpi::start(timeout, last_words) : nullptr;
}
