// Writes folders that other programs read: exactly the data that Nacre trains on, in their layout.
// A folder appears under its name only when it is complete.
#pragma once

#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

// Writes OGB's binary layout (as ogbn-papers100M has it): raw/data.npz, raw/node-label.npz,
// split/nacre/{train,valid,test}.csv.gz.
void write_ogb(const Dataset& data, const std::string& path);
// Writes GraphSAINT's layout: adj_full.npz, adj_train.npz (SciPy CSR), feats.npy, class_map.json,
// role.json.
void write_saint(const Dataset& data, const std::string& path);

}  // namespace nacre
