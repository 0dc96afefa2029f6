// Puts a data set together from parts by kind of vertex: kinds first, then what belongs to them. Vertices are named by
// their id within their kind; here they get their ids in the space all kinds share.
//
// Edges and features may be given as inputs, which are read when the set is finished, or never: a conversion takes them
// from here and streams them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/data/formats/inputs.h"

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

  // A relation that was added before gets more edges. `edges` hold ids within the two kinds; types and num_nodes in it
  // are not looked at. `where` is the file they are from.
  void add_edges(const Relation& relation, EdgeList edges, const std::string& where);
  void add_edges(const Relation& relation, EdgeInput edges);
  void set_features(int type, Tensor features, Origin origin);
  void set_features(int type, FeatureInput features);
  // One class per vertex of the kind, -1 = none; or 0/1 per class. One kind only may have them.
  void set_labels(int type, std::vector<int32_t> labels, int64_t num_classes, Origin origin);
  void set_targets(int type, const Tensor& targets, Origin origin);
  // Takes over what labels_from() and the like have read into `part`.
  void set_labels(int type, const Dataset& part);

  enum class Part { train, val, test };
  // `ids` within the kind, at the places of `origin`.
  Array<NodeId> split(int type, const std::vector<int64_t>& ids, const Origin& origin) const;
  void set_split(Part part, int type, const std::vector<int64_t>& ids, const Origin& origin);

  // What is not needed before the edges, labels and splits of a kind: called once, by finish() or finish_rest().
  void later(int labelled, std::function<void(DatasetBuilder&)> rest) {
    later_ = std::move(rest);
    // Labels as they are read, by kind and by vertex, and ids of splits.
    later_bytes_ = 16 * count(labelled) + 4 * num_nodes();
  }
  int64_t later_bytes() const { return later_bytes_; }  // of memory it takes, about

  // The set so far, for what has no setter here: splits, notes, names.
  Dataset data;

  // Reads the inputs. One kind and one relation make a plain graph without either.
  Dataset finish();

  // For those who stream the inputs.
  struct TypedInput {
    size_t relation;
    EdgeInput edges;
  };
  const std::vector<TypedInput>& edge_inputs() const { return edge_inputs_; }
  const std::vector<std::optional<FeatureInput>>& feature_inputs() const { return feature_inputs_; }
  const std::vector<Relation>& relations() const { return relations_; }
  const std::string& type_name(int type) const { return types_[static_cast<size_t>(type)]; }
  int num_types() const { return static_cast<int>(types_.size()); }
  bool plain() const { return types_.size() == 1 && relations_.size() <= 1; }
  // All but the graph and what the inputs hold.
  Dataset finish_rest();

 private:
  size_t relation_id(const Relation& relation, const std::string& where);
  void read_inputs();
  void name_kinds();

  std::string where_;
  std::vector<std::string> types_;
  std::vector<int64_t> offsets_ = {0};
  std::vector<Relation> relations_;
  std::vector<Tensor> features_;
  std::vector<Origin> feature_origins_;
  EdgeList edges_;
  std::vector<TypedInput> edge_inputs_;
  std::vector<std::optional<FeatureInput>> feature_inputs_;
  std::function<void(DatasetBuilder&)> later_;
  int64_t later_bytes_ = 0;
  int labelled_ = -1;
};

// The relations of `relations` and a reverse of each between two kinds, rev_NAME. `reverse` gets for each of the first
// the number of its reverse: itself for relations within a kind.
std::vector<Relation> with_reverses(std::vector<Relation> relations, std::vector<uint16_t>& reverse,
                                    const std::string& where);
// Adds the reverse of every edge, in its reverse relation, without duplicates. Edges of the same vertices are in the
// order of their relations.
Dataset add_reverse_relations(Dataset data);

}  // namespace nacre
