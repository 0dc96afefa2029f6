// Puts a data set together from parts that belong to kinds of vertices. Kinds are added first, then
// what belongs to them. Readers name vertices by their ids within their kind; the builder turns
// these into the ids that all kinds share.
//
// Edges and features may be given as inputs that are still in their files. finish() reads them; a
// conversion takes the inputs from here and streams them instead.
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

  // Adds a kind and returns its index. No kind can be added after edges.
  int add_type(const std::string& name, int64_t count);
  int find_type(const std::string& name) const;  // -1 if unknown
  // Returns the index of a kind. Throws UserError naming `where` if it is unknown.
  int type(const std::string& name, const std::string& where) const;
  int64_t count(int type) const { return offsets_[type + 1] - offsets_[type]; }
  int64_t offset(int type) const { return offsets_[type]; }
  int64_t num_nodes() const { return offsets_.back(); }

  // Adds edges to a relation, which may already have some. `edges` holds ids within the two kinds;
  // its types and num_nodes are ignored. `where` is the file they come from.
  void add_edges(const Relation& relation, EdgeList edges, const std::string& where);
  void add_edges(const Relation& relation, EdgeInput edges);
  void set_features(int type, Tensor features, Origin origin);
  void set_features(int type, FeatureInput features);
  // Labels are one class per vertex of the kind (-1 means none); targets are one 0/1 value per
  // class. Only one kind may have either.
  void set_labels(int type, std::vector<int32_t> labels, int64_t num_classes, Origin origin);
  void set_targets(int type, const Tensor& targets, Origin origin);
  // Takes over the labels or targets that labels_from() and similar functions have read into
  // `part`.
  void set_labels(int type, const Dataset& part);

  enum class Part { train, val, test };
  // Returns the shared ids of the vertices that have `ids` within their kind. `origin` says where
  // the ids were read.
  Array<NodeId> split(int type, const std::vector<int64_t>& ids, const Origin& origin) const;
  void set_split(Part part, int type, const std::vector<int64_t>& ids, const Origin& origin);

  // Sets the function that reads labels and splits of the kind `labelled`. They are not needed
  // while edges stream, so finish() or finish_rest() calls `rest`, once.
  void later(int labelled, std::function<void(DatasetBuilder&)> rest) {
    later_ = std::move(rest);
    // The estimate counts labels as they are read, per kind and for all vertices, and the ids of
    // splits.
    later_bytes_ = 16 * count(labelled) + 4 * num_nodes();
  }
  int64_t later_bytes() const { return later_bytes_; }  // estimated memory of what later() set

  // The set so far, for parts that have no setter here: notes and names.
  Dataset data;

  // Reads the inputs and returns the set. One kind with one relation becomes a plain graph without
  // kinds and relations.
  Dataset finish();

  // An input of edges and the index of its relation, for a conversion, which streams the inputs.
  struct TypedInput {
    size_t relation;
    EdgeInput edges;
  };
  const std::vector<TypedInput>& edge_inputs() const { return edge_inputs_; }
  const std::vector<std::optional<FeatureInput>>& feature_inputs() const { return feature_inputs_; }
  const std::vector<Relation>& relations() const { return relations_; }
  const std::string& type_name(int type) const { return types_[type]; }
  int num_types() const { return static_cast<int>(types_.size()); }
  bool plain() const { return types_.size() == 1 && relations_.size() <= 1; }
  // Returns everything but the graph and what the inputs hold.
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

// Returns `relations` followed by a reverse relation rev_NAME for each relation between two kinds.
// reverse[r] becomes the number of the reverse of relation r; a relation within one kind is its own
// reverse.
std::vector<Relation> with_reverses(std::vector<Relation> relations, std::vector<uint16_t>& reverse,
                                    const std::string& where);
// Adds the reverse of every edge, in its reverse relation, without duplicates. Edges between the
// same vertices are in the order of their relations.
Dataset add_reverse_relations(Dataset data);

}  // namespace nacre
