// Writes a data set as an .npz that NumPy reads, and so every Python program: edge_index i64 [2,E],
// x f32 [N,F], y i64 [N] or u8 [N,C], train_idx, val_idx, test_idx i64, edge_weight f32, edge_type
// i64. Members are stored, not compressed.
#pragma once

#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

void write_npz(const Dataset& dataset, const std::string& path);

}  // namespace nacre
