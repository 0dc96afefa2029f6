// This file accounts for the memory of a command that runs a model. The command refuses before the
// data are read what cannot fit, and checks the whole bill again when the plans are made. In both
// cases it shows the bill.
#pragma once

#include <string>

#include "nacre/train/bill.h"

namespace nacre::cli {

class MemoryAccount {
 public:
  // Counts the program itself as part of config.memory_limit, and sets config.embedded. If features
  // stay on disk, turns off the check of their bytes when the file is read (config.load.verify). If
  // the data are still to be read, throws UserError if the part of the bill that is already certain
  // does not fit into the memory of the host or of the GPU.
  MemoryAccount(RunConfig& config, const RunPurpose& purpose);

  // Makes the bill of a session that has been made the bill of the command; planned() then returns
  // its largest phase.
  void reckon(HostMemory session);
  // Shows the bill of the session; throws UserError if it does not fit.
  void present(const HostMemory& session);

  // Returns the largest number of bytes that the whole process is planned to hold.
  int64_t planned() const { return bill_.bytes(); }
  // Returns the phases as JSON: {"reading": MiB, …}.
  std::string phases_json() const;
  // Returns all parts of the phases as JSON: [{"phase": NAME, "items": {WHAT: BYTES}}, …].
  std::string bill_json() const;
  // Returns the line "memory: … planned, … at the peak of the process".
  std::string closing_line() const;

 private:
  RunConfig config_;
  RunPurpose purpose_;
  Bill bill_;
  int64_t mapped_ = 0;
};

// Throws UserError if the data do not fit into memory while they are read. Pages of mapped files do
// not count, because the system can drop them.
void require_room_to_read(const RunConfig& config);

// Returns the parts of a bill as JSON: {WHAT: BYTES, …}.
std::string items_json(const std::vector<MemoryItem>& items);

// Prints the bill of a run, estimated from the headers of its data, as text or as JSON. Throws
// UserError if the headers do not give the sizes.
void show_estimate(const RunConfig& config, bool json);

}  // namespace nacre::cli
