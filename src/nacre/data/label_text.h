// Labels as text: one class a line, 0/1 columns, or lines of node and class in any order. Classes may be words.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/data/mapped_file.h"

namespace nacre {

// Sets labels or targets, num_classes and, where classes are words, class_names. `data` holds its graph and names.
void read_label_text(const std::shared_ptr<const MappedFile>& file, Dataset& data);

// Classes that are words, numbered in the order of their names; an empty word is no label. Says in a note which is
// which.
void set_class_words(const std::vector<std::string>& words, Dataset& data);

}  // namespace nacre
