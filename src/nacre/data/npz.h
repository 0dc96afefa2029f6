// .npz archives: named NumPy arrays, and the data set that they may make up together.
//
//   edge_index  [2, E] source row, destination row ([E, 2] is understood too); or src and dst [E]
//   x           [N, F] features
//   y           [N] classes (negative or NaN: none), or [N, C] of 0/1
//   train_idx, val_idx, test_idx  ids; or train_mask, val_mask, test_mask  [N] of 0/1
//   edge_weight [E], edge_type [E], num_nodes: optional
// A set of several kinds of vertices, whose ids follow one after the other, also has
//   node_types  [K] words, node_offsets [K + 1]
//   x_KIND      features of a kind, instead of x
//   relation_name [R] words, relation_src [R], relation_dst [R]: the edge types, and the kinds that
//               they lead from and to
// Edges may be held out: val_edge_index, test_edge_index [2, E], val_edge_type, test_edge_type [E].
// Instead of edges, there may be the pairs of a recommender: train_user, train_item, test_user,
// test_item, num_users, num_items.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/data/load.h"
#include "nacre/data/mapped_file.h"
#include "nacre/data/npy.h"
#include "nacre/data/zip.h"

namespace nacre {

class NpzFile {
 public:
  explicit NpzFile(const std::shared_ptr<const MappedFile>& file) : archive_(file) {}

  const std::string& name() const { return archive_.file()->name(); }
  int64_t directory_offset() const { return archive_.directory_offset(); }
  bool has(const std::string& key) const { return archive_.find(key + ".npy") != nullptr; }
  // Returns the names of the arrays without ".npy". Members that are not arrays keep their whole
  // name.
  std::vector<std::string> keys() const;
  std::string key_list() const;  // returns for example "edge_index, x, y"
  // Opens the array `key`. Throws UserError that lists the keys if `key` is missing.
  NpyReader open(const std::string& key) const;
  // Returns the bytes of a member, including its header.
  std::unique_ptr<ByteStream> bytes(const std::string& key) const;
  // Returns a single short string, which NumPy stores with four bytes or one byte per character.
  std::string text(const std::string& key) const;
  // Returns the strings of an array of short byte strings.
  std::vector<std::string> words(const std::string& key) const;

 private:
  ZipArchive archive_;
};

// Returns the key under which the features of a kind of vertices are stored.
std::string kind_key(const std::string& kind);

Dataset read_npz(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options);
// Opens a set with edges and features left in the archive. Returns nothing if edges have weights,
// types or kinds.
class DatasetBuilder;
std::optional<DatasetBuilder> open_npz_parts(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options);

}  // namespace nacre
