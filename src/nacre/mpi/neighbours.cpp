#include "nacre/mpi/neighbours.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace nacre::mpi {
namespace {

struct ProcessState {
  char state = '?';
  int64_t started = 0;
};

// Returns what the system says of a process, or nothing if there is no such process.
std::optional<ProcessState> state_of(int64_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  // The file has the name of the program in parentheses, and the name may hold anything. The state
  // follows it, and the time of the start is the 19th number after the state.
  std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  ProcessState found;
  std::string skipped;
  rest >> found.state;
  for (int i = 0; i < 18; ++i) rest >> skipped;
  rest >> found.started;
  return found;
}

std::string machine_text() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::array<char, 64> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::error_code ignored;
  // The number of a process is known only within its container. Another container may give it to
  // another process, so ranks in different containers count as ranks on different machines.
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string() + " " + host.data();
}

}  // namespace

ProcessCard own_card() {
  ProcessCard card{};
  const std::string machine = machine_text();
  std::copy_n(machine.begin(), std::min(machine.size(), card.machine.size() - 1), card.machine.begin());
  card.process = getpid();
  if (const auto state = state_of(card.process)) card.started = state->started;
  return card;
}

Neighbours::Neighbours(int rank, std::vector<ProcessCard> cards) : rank_(rank), count_(0), cards_(std::move(cards)) {
  for (int r = 0; r < static_cast<int>(cards_.size()); ++r) {
    if (!is_near(r)) continue;
    ++count_;
    before_ += r < rank_;
  }
}

bool Neighbours::gone(int rank) const {
  if (!is_near(rank)) return false;
  const auto state = state_of(cards_[rank].process);
  // The system lists a process that has ended (as Z or X) until its launcher has asked for its exit
  // code.
  return !state || state->started != cards_[rank].started || state->state == 'Z' || state->state == 'X';
}

bool Neighbours::gone_before() const {
  for (int r = 0; r < rank_; ++r) {
    if (gone(r)) return true;
  }
  return false;
}

int Neighbours::stopped() const {
  for (int r = 0; r < static_cast<int>(cards_.size()); ++r) {
    if (r == rank_ || !is_near(r)) continue;
    const auto state = state_of(cards_[r].process);
    if (state && state->started == cards_[r].started && (state->state == 'T' || state->state == 't')) return r;
  }
  return -1;
}

}  // namespace nacre::mpi
