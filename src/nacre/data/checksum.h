// The 64-bit checksum of Nacre's own files and of data set fingerprints.
//
// The bytes are cut into chunks of 1 MiB, hashed in parallel and combined in order. Within a chunk eight lanes take
// turns on 8-byte little-endian words: lane = rotl((lane ^ word) * K, 29). Every step is a bijection of the lane for a
// given word and of the word for a given lane, so no single damaged word goes unnoticed. Not a cryptographic hash.
#pragma once

#include <cstdint>

namespace nacre {

uint64_t checksum64(const void* data, int64_t bytes);

}  // namespace nacre
