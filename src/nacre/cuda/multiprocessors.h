// Hands out the multiprocessors of GPUs to virtual devices.
//
// The driver divides a GPU once, into equal groups and a rest, and none of these can be divided
// again. Only groups of one division may be joined. So a GPU is divided into the smallest groups (8
// multiprocessors from sm_90 on), and a virtual device takes as many of them as it needs.
#pragma once

#include <vector>

#include "nacre/cuda/driver.h"

namespace nacre::cuda {

// Holds the multiprocessors of one virtual device.
struct MultiprocessorShare {
  std::vector<CUdevResource> resources;
  std::vector<size_t> groups;  // their numbers in the division of the device

  int multiprocessors() const {
    unsigned sum = 0;
    for (const CUdevResource& resource : resources) sum += resource.sm.smCount;
    return static_cast<int>(sum);
  }
};

// Takes at least `multiprocessors` multiprocessors that no other share has, as few as possible.
// Throws UserError if there are not so many left.
MultiprocessorShare take_multiprocessors(int device, int multiprocessors);
void give_multiprocessors(int device, const MultiprocessorShare& share);

}  // namespace nacre::cuda
