#include "nacre/train/row_reads.h"

#include <fmt/format.h>

namespace nacre {

RowReads& RowReads::operator+=(const RowReads& other) {
  batches += other.batches;
  local += other.local;
  peer += other.peer;
  host += other.host;
  disk += other.disk;
  return *this;
}

RowReads RowReads::operator-(const RowReads& other) const {
  return {batches - other.batches, local - other.local, peer - other.peer, host - other.host, disk - other.disk};
}

std::string RowReads::json() const {
  return fmt::format(R"({{"batches":{},"local":{},"peer":{},"host":{},"disk":{}}})", batches, local, peer, host, disk);
}

}  // namespace nacre
