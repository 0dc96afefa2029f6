// What both layouts of OGB share.
#pragma once

#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/data/formats/builder.h"
#include "nacre/data/formats/place.h"

namespace nacre {

// The folder of the split: the only one, or `variant`. Empty when there is none.
std::string ogb_split_folder(const Place& place, const std::string& variant);
// Reads {train,valid,test}.csv of `folder` as ids of the kind `type`; where there are none, PyTorch's files: those of
// the same names, or split_dict.pt.
void ogb_read_splits(const Place& place, const std::string& folder, int type, DatasetBuilder& builder);
// split_dict.pt of a set of several kinds: of the first it names. False when there is no such file.
bool ogb_read_split_dict(const Place& place, const std::string& folder, DatasetBuilder& builder);
// The one number in `inside`; several would be several graphs.
int64_t ogb_count(const Place& place, const std::string& inside);
// A note of the files in `folder` that nothing reads: those whose names are not in `known` (without .gz).
void ogb_note_unused(const Place& place, const std::string& folder, const std::vector<std::string>& known,
                     std::vector<std::string>& notes);

}  // namespace nacre
