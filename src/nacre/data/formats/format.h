// The layouts that Nacre reads. A file NAME.cpp of this folder that reads layouts defines
// `std::vector<Format> formats_in_NAME()`, and its name stands in the list `formats` of the room's
// CMakeLists.txt (docs/add_a_format.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/data/formats/builder.h"
#include "nacre/data/formats/data_source.h"
#include "nacre/data/load.h"

namespace nacre {

struct Format {
  const char* name;
  const char* about;
  // Returns the evidence that `source` has this layout ("holds raw/edge.csv.gz"), or an empty text
  // if there is none. Looks only at names and first bytes, and must not throw for damaged files.
  std::string (*recognise)(const DataSource& source);
  // `variant` is what follows the colon in --format NAME:VARIANT; it chooses one of several splits,
  // tasks or label sets. Readers without variants get "".
  Dataset (*load)(const DataSource& source, const std::string& variant, const LoadOptions& options);
  const char* variants = "";  // what a variant chooses; empty if the layout has no variants
  // For layouts that may be larger than memory: returns what load() would read, with edges and
  // features left in their files. Returns nothing if this data set cannot be read in that way.
  std::optional<DatasetBuilder> (*open)(const DataSource& source, const std::string& variant,
                                        const LoadOptions& options) = nullptr;
  // Whether the format recognises any file of some kind, for example any text. Such a format is
  // used only if no other format recognises the source.
  bool general = false;
};

std::span<const Format> formats();
std::vector<Format> all_formats();  // made by the build from the functions formats_in_NAME()
// Returns "nacre, npz, edges, …".
std::string format_names();

// Returns the format and variant for `source`: those `asked` for ("ogb", "ogb:time"), or those
// recognised. Throws UserError that lists what was found if no format fits, or several do.
struct Choice {
  const Format* format;
  std::string variant;
};
Choice choose_format(const DataSource& source, const std::string& asked);
// Returns whether the data lie in a .nacre file, which is mapped and validated when it is opened.
bool is_own_file(const Choice& choice);

// Throws UserError that says what kind of file `source` is, for files that no format recognises.
[[noreturn]] void refuse_stranger(const DataSource& source);

// Returns whether the first edges of a text file name nodes by words.
bool has_word_ids(const std::shared_ptr<const MappedFile>& file);

// Reads an edge list whose ids are words. The reader of plain edge lists calls this function for
// such lists.
Dataset load_names(const DataSource& source, const std::string& variant, const LoadOptions& options);

// These two functions are Format::load and Format::open of a layout whose reader is a function
// `open` that always opens the set. To load the set is to open and finish it.
template <DatasetBuilder (*open)(const DataSource&, const std::string&, const LoadOptions&)>
Dataset load_opened(const DataSource& source, const std::string& variant, const LoadOptions& options) {
  return open(source, variant, options).finish();
}
template <DatasetBuilder (*open)(const DataSource&, const std::string&, const LoadOptions&)>
std::optional<DatasetBuilder> opened(const DataSource& source, const std::string& variant, const LoadOptions& options) {
  return open(source, variant, options);
}

}  // namespace nacre
