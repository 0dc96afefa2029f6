// Sets the number of threads for a part of a test.
#pragma once

#include "nacre/base/parallel.h"

namespace nacre::test {

// While the object lives, loops and background tasks have this many threads.
class Threads {
 public:
  explicit Threads(int threads) : before_(num_threads()) { set_num_threads(threads); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace nacre::test
