// Computes matrix products as device.h defines them, by plain loops.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "nacre/device/device.h"

namespace nacre::emulator {

void multiply(const GemmShape& shape, const GemmArgs& args);

class Products {
 public:
  int prepare(GemmShape shape);
  void release(int handle);
  int64_t workspace(int handle) const;
  // Returns the complete shape of the product. Throws if operands are missing.
  GemmShape shape_for(int handle, const GemmArgs& args, const void* workspace) const;

 private:
  struct Plan {
    GemmShape shape;
    int users = 0;
  };
  const Plan& plan_of(int handle) const;

  mutable std::mutex mutex_;
  std::map<int, Plan> plans_;
  std::map<std::string, int> handles_;
  int next_ = 0;
};

}  // namespace nacre::emulator
