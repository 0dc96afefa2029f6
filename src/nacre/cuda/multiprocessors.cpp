#include "nacre/cuda/multiprocessors.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

namespace nacre::cuda {
namespace {

constexpr unsigned kSmallestGroup = 8;

// A division of a device, and which of its groups are in use.
struct Division {
  std::vector<CUdevResource> groups;  // groups of equal size; the rest comes last
  std::vector<bool> taken;

  bool in_use() const { return std::find(taken.begin(), taken.end(), true) != taken.end(); }
};

std::mutex divisions_mutex;
// Returns the division of each device, by its number.
std::map<int, Division>& divisions() {
  static std::map<int, Division> all;
  return all;
}

Division divide(int device, unsigned size) {
  CUdevResource whole{}, rest{};
  NACRE_CUDA(driver().device_resource(device, &whole, CU_DEV_RESOURCE_TYPE_SM));
  Division made;
  if (size >= whole.sm.smCount) {
    made.groups = {whole};
  } else {
    unsigned count = 0;
    NACRE_CUDA(driver().split_resource(nullptr, &count, &whole, nullptr, 0, size));
    made.groups.resize(count);
    NACRE_CUDA(driver().split_resource(made.groups.data(), &count, &whole, &rest, 0, size));
    made.groups.resize(count);
    if (rest.type == CU_DEV_RESOURCE_TYPE_SM && rest.sm.smCount > 0) made.groups.push_back(rest);
  }
  made.taken.assign(made.groups.size(), false);
  return made;
}

// Returns free groups with at least `wanted` multiprocessors together; nothing if there are none.
// The rest is the last group, so it is taken only if the others do not suffice.
MultiprocessorShare choose(const Division& division, int wanted) {
  MultiprocessorShare share;
  for (size_t g = 0; g < division.groups.size() && share.multiprocessors() < wanted; ++g) {
    if (division.taken[g]) continue;
    share.groups.push_back(g);
    share.resources.push_back(division.groups[g]);
  }
  return share.multiprocessors() < wanted ? MultiprocessorShare{} : share;
}

int free_multiprocessors(const Division& division) {
  MultiprocessorShare all;
  for (size_t g = 0; g < division.groups.size(); ++g) {
    if (!division.taken[g]) all.resources.push_back(division.groups[g]);
  }
  return all.multiprocessors();
}

// Returns a division of a device of which nothing is in use. The groups have the smallest size,
// unless one group of the wanted size is a better fit.
Division divide_for(int device, int wanted) {
  Division small = divide(device, kSmallestGroup);
  const int joined = choose(small, wanted).multiprocessors();
  if (joined != 0 && joined < wanted + static_cast<int>(kSmallestGroup) &&
      choose(small, wanted).groups.back() + 1 < small.groups.size()) {
    return small;
  }
  Division large = divide(device, static_cast<unsigned>(wanted));
  const int whole = choose(large, wanted).multiprocessors();
  return whole != 0 && (joined == 0 || whole < joined) ? large : small;
}

}  // namespace

MultiprocessorShare take_multiprocessors(int device, int multiprocessors) {
  const std::lock_guard lock(divisions_mutex);
  Division& division = divisions()[device];
  if (!division.in_use()) division = divide_for(device, multiprocessors);
  MultiprocessorShare share = choose(division, multiprocessors);
  if (share.groups.empty()) {
    throw UserError("device",
                    std::to_string(multiprocessors) + " multiprocessors are asked for, but only " +
                        std::to_string(free_multiprocessors(division)) + " of this GPU are free",
                    "use fewer or smaller virtual devices");
  }
  for (const size_t g : share.groups) division.taken[g] = true;
  return share;
}

void give_multiprocessors(int device, const MultiprocessorShare& share) {
  const std::lock_guard lock(divisions_mutex);
  Division& division = divisions()[device];
  for (const size_t g : share.groups) division.taken[g] = false;
}

}  // namespace nacre::cuda
