// Labels as text: one class per line, 0/1 columns, or lines of node and class in any order. Classes
// may be words.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/data/mapped_file.h"

namespace nacre {

// Sets labels or targets, num_classes and, if classes are words, class_names. The graph and the
// names of `data` must be complete.
void read_label_text(const std::shared_ptr<const MappedFile>& file, Dataset& data);

// Sets classes that are words. They are numbered in the order of their names, and a note says which
// number each word has. An empty word means no label.
void set_class_words(const std::vector<std::string>& words, Dataset& data);

}  // namespace nacre
