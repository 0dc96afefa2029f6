// Devices that plans are made for in tests.
#pragma once

#include "nacre/cost/nominal.h"

namespace nacre::test {

inline DeviceTraits large_gpu(GemmType products) {
  DeviceTraits d;
  d.gpu = true;
  d.arch = 90;
  d.multiprocessors = 132;
  d.shared_bytes = 227 << 10;
  d.l2_bytes = 50 << 20;
  d.memory_bytes = int64_t{80} << 30;
  d.products = products;
  d.rates = nominal_gpu().rates;
  return d;
}

}  // namespace nacre::test
