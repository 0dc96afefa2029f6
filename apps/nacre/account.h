// The memory of a command that runs a model: refused before the data are read where it cannot fit,
// refused again when plans are made and the bill is whole, shown to people in both cases.
#pragma once

#include <string>

#include "nacre/train/bill.h"

namespace nacre::cli {

class MemoryAccount {
 public:
  // Counts the program as part of config.memory_limit. Throws UserError when what is certain
  // already does not fit.
  MemoryAccount(RunConfig& config, bool trains);

  // The bill of a session that was made, for planned().
  void reckon(const HostMemory& session);
  // Shows that bill, and refuses it where it does not fit.
  void present(const HostMemory& session);

  // Of the whole process, at the most.
  int64_t planned() const { return bill_.bytes(); }
  // {"reading": MiB, …}
  std::string phases_json() const;
  // "memory: … planned, … at the peak of the process"
  std::string closing_line() const;

 private:
  RunConfig config_;
  Bill bill_;
  int64_t mapped_ = 0;
};

// Prints the bill of a run that is estimated from the headers of its data. Throws UserError where
// these do not tell.
void show_estimate(const RunConfig& config);

}  // namespace nacre::cli
