// Settings: what the environment asks of the emulated device (docs/dev/emulator.md lists the
// variables), random delays, and calls that fail on purpose.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>

namespace nacre::emulator {

// Names the kinds of failure that the environment can ask for. `work` is what a stream does later,
// so a later call reports its failure.
enum class Fault : uint8_t { call, allocation, compile, work };

// Names the roles that a thread of the host can play for a device. Every seed makes the threads of
// one role far slower than the others, so that over all seeds each role falls behind each other
// one.
enum class Role : uint8_t { opener, stream, other };

class Settings {
 public:
  // Returns the settings of this process. The environment is read at the first call, and again by
  // reread().
  static Settings& get();
  void reread();

  int arch() const { return arch_; }
  int64_t memory_bytes() const { return memory_bytes_; }
  // Returns how many devices there are. All of them share one memory.
  int devices() const { return devices_; }
  // Returns whether devices can read each other's memory.
  bool peers() const { return peers_; }
  // Returns whether no thread may call the device while one records launches, as an earlier version
  // of the CUDA device had it. Tests of races use this to show that they find what follows from it.
  bool forbids_others() const { return forbids_others_; }
  // Returns whether kernels are watched for races in shared memory.
  bool finds_races() const { return finds_races_; }
  static void this_thread_is(Role role);
  // If delays are on, sleeps at some of the calls, for up to `longest` times the greatest delay.
  void pause(double longest = 1);
  // If delays are on, makes work last longer that other threads should not disturb.
  void stretch() const;
  // Returns a number that determines the order in which blocks and threads run.
  uint64_t order();

  // Counts a call or a piece of work of this kind. Throws if it is the one that shall fail:
  // UserError for allocations, InternalError for other kinds. `what` is the call or the kernel.
  void count(Fault kind, const std::string& what);

 private:
  Settings() { reread(); }
  bool fails(Fault kind);

  std::mutex mutex_;  // guards the random numbers
  std::mt19937_64 random_;
  int arch_ = 90;
  int64_t memory_bytes_ = 0;
  int devices_ = 1;
  bool peers_ = true;
  double delay_us_ = 0;
  Role slow_ = Role::other;
  bool shuffled_ = false;
  bool forbids_others_ = false;
  bool finds_races_ = false;
  Fault fault_ = Fault::call;
  int64_t fault_at_ = 0;  // number of the call that fails; 0: none
  bool fault_stays_ = false;
  std::atomic<int64_t> counted_{0};
};

}  // namespace nacre::emulator
