// Code that fuzz targets share. A target may succeed or throw UserError; anything else is a
// finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nacre/base/error.h"
#include "nacre/data/mapped_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace nacre::fuzz {

inline std::shared_ptr<const MappedFile> file_of(std::span<const uint8_t> bytes) {
  return MappedFile::from_bytes(std::as_bytes(bytes), "fuzz");
}

template <class Body>
void run(const Body& body) {
  try {
    body();
  } catch (const UserError&) {
  }
}

}  // namespace nacre::fuzz
