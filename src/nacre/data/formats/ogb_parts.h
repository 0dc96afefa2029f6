// Declares what the readers of both OGB layouts share.
#pragma once

#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/data/formats/builder.h"
#include "nacre/data/formats/data_source.h"

namespace nacre {

// Returns the folder of the split: the only one, or `variant`. Returns an empty text if there is
// none.
std::string ogb_split_folder(const DataSource& source, const std::string& variant);
// Reads {train,valid,test}.csv of `folder` as ids of the kind `type`. If there are none, reads the
// files of PyTorch: {train,valid,test}.pt, or split_dict.pt.
void ogb_read_splits(const DataSource& source, const std::string& folder, int type, DatasetBuilder& builder);
// Reads split_dict.pt of a set of several kinds, for the first kind it names. Returns false if
// there is no such file.
bool ogb_read_split_dict(const DataSource& source, const std::string& folder, DatasetBuilder& builder);
// Returns the only number in the file `inside`. Throws UserError if there are several, which would
// mean several graphs.
int64_t ogb_count(const DataSource& source, const std::string& inside);
// Adds a note about files in `folder` that nothing reads: those whose names (without .gz) are not
// in `known`.
void ogb_note_unused(const DataSource& source, const std::string& folder, const std::vector<std::string>& known,
                     std::vector<std::string>& notes);

}  // namespace nacre
