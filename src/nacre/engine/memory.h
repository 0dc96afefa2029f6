// plan_arena() plans memory exactly: every buffer that a step needs gets a place in one arena
// before anything is allocated. Buffers whose lifetimes do not overlap share bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nacre {

struct BufferRequest {
  int64_t bytes = 0;
  int first = 0;  // first and last step (kernel number) at which the buffer must hold its value
  int last = 0;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // one for each request
  int64_t bytes = 0;             // size of the arena
  // Largest sum of live buffers at any step; no placement can need less.
  int64_t floor_bytes = 0;
};

// Returns a place for every request. Large buffers are placed first, each at the lowest offset
// where it overlaps nothing that is alive at the same time.
ArenaPlan plan_arena(const std::vector<BufferRequest>& requests);

// Holds one line of the bill that is shown before a run.
struct MemoryItem {
  std::string what;
  int64_t bytes = 0;
};
int64_t total_bytes(const std::vector<MemoryItem>& items);
std::string memory_text(const std::vector<MemoryItem>& items);

// Throws UserError with remedies (the usual ones, or `remedy`) if `items` do not fit in `limit`
// bytes.
void require_fit(const std::vector<MemoryItem>& items, int64_t limit, const std::string& remedy = "");

}  // namespace nacre
