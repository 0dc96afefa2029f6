// The layouts Nacre reads, one entry each. A new one is a file in this folder with two functions, and a line in
// registry.cpp.
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
  // What speaks for this layout ("holds raw/edge.csv.gz"); empty when nothing does. Looks at names and first bytes
  // only, and must not throw for damaged files.
  std::string (*recognise)(const Place& place);
  // `variant` is what follows the colon in --format NAME:VARIANT, one of several splits, tasks or label sets. Readers
  // that know none get "".
  Dataset (*load)(const Place& place, const std::string& variant, const LoadOptions& options);
  const char* variants = "";  // what a variant chooses; empty: none may be given
  // Layouts that may be larger than memory: what load() would read, with edges and features left in their files.
  // Nothing where this set cannot be read so.
  std::optional<DatasetBuilder> (*open)(const Place& place, const std::string& variant,
                                        const LoadOptions& options) = nullptr;
};

std::span<const Format> formats();
// "nacre, npz, edges, …"
std::string format_names();

// A format and its variant for `place`: the one `asked` for ("ogb", "ogb:time"), or the one recognised. Throws
// UserError listing what was found when none or several fit.
struct Choice {
  const Format* format;
  std::string variant;
};
Choice choose_format(const Place& place, const std::string& asked);

// Says what a file that no format recognises is.
[[noreturn]] void refuse_stranger(const Place& place);

// Whether the first edges of a text file name nodes by words.
bool has_word_ids(const std::shared_ptr<const MappedFile>& file);

// One pair per layout.
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

// One pair per layout that may be larger than memory; loading is opening and finishing.
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
