// The layouts that Nacre reads, one entry each. A new layout is a file in this folder with two
// functions, and a line in registry.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "nacre/data/dataset.h"
#include "nacre/data/formats/builder.h"
#include "nacre/data/formats/place.h"
#include "nacre/data/load.h"

namespace nacre {

struct Format {
  const char* name;
  const char* about;
  // Returns what speaks for this layout ("holds raw/edge.csv.gz"), or an empty text if nothing
  // does. Looks only at names and first bytes, and must not throw for damaged files.
  std::string (*recognise)(const Place& place);
  // `variant` is what follows the colon in --format NAME:VARIANT; it chooses one of several splits,
  // tasks or label sets. Readers without variants get "".
  Dataset (*load)(const Place& place, const std::string& variant, const LoadOptions& options);
  const char* variants = "";  // what a variant chooses; empty if the layout has no variants
  // For layouts that may be larger than memory: returns what load() would read, with edges and
  // features left in their files. Returns nothing if this data set cannot be read in that way.
  std::optional<DatasetBuilder> (*open)(const Place& place, const std::string& variant,
                                        const LoadOptions& options) = nullptr;
};

std::span<const Format> formats();
// Returns "nacre, npz, edges, …".
std::string format_names();

// Returns the format and variant for `place`: those `asked` for ("ogb", "ogb:time"), or those
// recognised. Throws UserError that lists what was found if no format fits, or several do.
struct Choice {
  const Format* format;
  std::string variant;
};
Choice choose_format(const Place& place, const std::string& asked);

// Throws UserError that says what kind of file `place` is, for files that no format recognises.
[[noreturn]] void refuse_stranger(const Place& place);

// Returns whether the first edges of a text file name nodes by words.
bool has_word_ids(const std::shared_ptr<const MappedFile>& file);

// Each layout has a pair of functions.
#define NACRE_FORMAT(name)                          \
  std::string recognise_##name(const Place& place); \
  Dataset load_##name(const Place& place, const std::string& variant, const LoadOptions& options)
NACRE_FORMAT(nacre);
NACRE_FORMAT(npz);
std::optional<DatasetBuilder> open_npz(const Place& place, const std::string& variant, const LoadOptions& options);
NACRE_FORMAT(edges);
NACRE_FORMAT(snap);
NACRE_FORMAT(names);
NACRE_FORMAT(matrix_market);
NACRE_FORMAT(saint);
NACRE_FORMAT(dgl_reddit);
NACRE_FORMAT(shchur);
NACRE_FORMAT(geom_gcn);
NACRE_FORMAT(planetoid);
NACRE_FORMAT(linqs);
NACRE_FORMAT(dgl_csv);
NACRE_FORMAT(triples);
NACRE_FORMAT(lightgcn);
#undef NACRE_FORMAT

// Each layout that may be larger than memory has this pair. Its load() opens the set and finishes
// it.
#define NACRE_LARGE_FORMAT(name)                    \
  std::string recognise_##name(const Place& place); \
  DatasetBuilder open_##name(const Place& place, const std::string& variant, const LoadOptions& options)
NACRE_LARGE_FORMAT(ogb);
NACRE_LARGE_FORMAT(ogb_hetero);
NACRE_LARGE_FORMAT(mag240m);
NACRE_LARGE_FORMAT(igb);
NACRE_LARGE_FORMAT(graphbolt);
#undef NACRE_LARGE_FORMAT

}  // namespace nacre
