// Puts a data set together from parts by kind of vertex: kinds first, then what belongs to them. Vertices are named by
// their id within their kind; here they get their ids in the space all kinds share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"

namespace nacre {

class DatasetBuilder {
 public:
  explicit DatasetBuilder(std::string where) : where_(std::move(where)) {}

  // Returns its index. Kinds cannot be added once edges have been.
  int add_type(const std::string& name, int64_t count);
  int find_type(const std::string& name) const;  // -1: unknown
  int type(const std::string& name, const std::string& where) const;
  int64_t count(int type) const {
    return offsets_[static_cast<size_t>(type) + 1] - offsets_[static_cast<size_t>(type)];
  }
  int64_t offset(int type) const { return offsets_[static_cast<size_t>(type)]; }
  int64_t num_nodes() const { return offsets_.back(); }

  // `edges` hold ids within the two kinds; types and num_nodes in it are not looked at. `where` is the file they are
  // from. A relation that was added before gets more edges.
  void add_edges(const Relation& relation, EdgeList edges, const std::string& where);
  void set_features(int type, Tensor features);
  // One class per vertex of the kind, -1 = none; or 0/1 per class. One kind only may have them.
  void set_labels(int type, std::vector<int32_t> labels, int64_t num_classes);
  void set_targets(int type, const Tensor& targets);
  // Takes over what labels_from() and the like have read into `part`.
  void set_labels(int type, const Dataset& part);
  // `ids` within the kind; `where` names their file.
  Array<NodeId> split(int type, const std::vector<int64_t>& ids, const std::string& where) const;

  // The set so far, for what has no setter here: splits, notes, names.
  Dataset data;

  // One kind and one relation make a plain graph without either.
  Dataset finish();

 private:
  std::string where_;
  std::vector<std::string> types_;
  std::vector<int64_t> offsets_ = {0};
  std::vector<Relation> relations_;
  std::vector<Tensor> features_;
  EdgeList edges_;
  int labelled_ = -1;
};

// For every relation between two kinds a reverse one, rev_NAME; relations within a kind are made undirected in
// themselves, without duplicates.
Dataset add_reverse_relations(Dataset data);

}  // namespace nacre
