// The safetensors format: 8 bytes little-endian header length, a JSON header {name: {dtype, shape, data_offsets}}, then
// the values. Files are written whole to a temporary name, synced, then renamed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nacre/tensor/tensor.h"

namespace nacre {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using Metadata = std::vector<std::pair<std::string, std::string>>;

// Serialised bytes are a function of the arguments alone. Throws RuntimeError when the disk refuses.
void write_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata);
// f32, f64, i32, i64, u8 and bf16 tensors; only those whose names begin with `prefix`. Throws
// UserError for anything that is not a whole, valid file.
NamedTensors read_safetensors(const std::string& path, const std::string& prefix = "");
// The metadata, and the bytes of the tensors whose names begin with `prefix`; no tensor is read.
// Throws UserError as read_safetensors() does.
struct SafetensorsHeader {
  Metadata metadata;
  int64_t bytes = 0;
};
SafetensorsHeader read_safetensors_header(const std::string& path, const std::string& prefix = "");

}  // namespace nacre
