// Values kept between runs: one file per key in a folder. A key is any text. The file's name is the key's 128-bit hash
// in hex; the file holds the key too, and a checksum, so that a file answers only for the key it was written for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nacre {

// Nothing when the file is absent, damaged or another key's.
std::optional<std::string> read_cached(const std::string& folder, std::string_view key);

// Makes the folder when it is not there; the file appears whole. A failure is only a warning. Threads and processes may
// write the same key at the same time: one of their values stays.
void write_cached(const std::string& folder, std::string_view key, std::string_view value);

// Removes the value of a key, for a reader who found that the value cannot be used. Does nothing if there is no value
// or if its file cannot be removed.
void drop_cached(const std::string& folder, std::string_view key);

}  // namespace nacre
