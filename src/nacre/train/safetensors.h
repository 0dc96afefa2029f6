// This file reads and writes the safetensors format: 8 bytes with the length of the header
// (little-endian), a JSON header {name: {dtype, shape, data_offsets}}, then the values. Files are
// written whole under a temporary name, synced, and renamed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nacre/tensor/tensor.h"

namespace nacre {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using Metadata = std::vector<std::pair<std::string, std::string>>;

// Writes a file whose bytes depend only on the arguments. Throws RuntimeError if it cannot be
// written.
void write_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata);
// Reads the tensors of f32, f64, i32, i64, u8 and bf16 whose names begin with `prefix`. Throws
// UserError if the file is not whole and valid.
NamedTensors read_safetensors(const std::string& path, const std::string& prefix = "");
// Reads the metadata and counts the bytes of the tensors whose names begin with `prefix`; reads no
// tensor. Throws UserError as read_safetensors() does.
struct SafetensorsHeader {
  Metadata metadata;
  int64_t bytes = 0;
};
SafetensorsHeader read_safetensors_header(const std::string& path, const std::string& prefix = "");

}  // namespace nacre
