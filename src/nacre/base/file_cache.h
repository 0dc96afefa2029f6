// Keeps values between runs, in a folder with one file per key. A key is any text. The name of the
// file is the 128-bit hash of the key in hex. The file also holds the key and a checksum, so a file
// is read only for the key it was written for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nacre {

// Returns the value of `key`, or nothing if the file is absent, damaged or written for another key.
std::optional<std::string> read_cached(const std::string& folder, std::string_view key);

// Stores `value` under `key`. Creates the folder if it does not exist. The file appears only when
// it is complete. A failure is only a warning. Threads and processes may write the same key at the
// same time; one of their values remains.
void write_cached(const std::string& folder, std::string_view key, std::string_view value);

// Removes the value of a key, for a reader who found that the value cannot be used. Does nothing if
// there is no value or if its file cannot be removed.
void drop_cached(const std::string& folder, std::string_view key);

}  // namespace nacre
