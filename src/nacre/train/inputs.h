// Gives models their inputs: the features of the vertices, of one kind or of several.
#pragma once

#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/model/model.h"

namespace nacre {

// Features that a model reads, and the name of their leaf (model.h).
struct FeatureLeaf {
  std::string name;
  Tensor values;
};

// Returns the kinds of a data set whose vertices do not share one matrix of features, in the order
// of their ids and without kinds that have no vertices; an empty list if they share one. The names
// of the kinds can be used in names of leaves and parameters.
std::vector<VertexKind> vertex_kinds(const Dataset& dataset);

// Throws a UserError that names `where` if a model that was trained on vertices of the kinds
// `trained` cannot run on those of `here`: learned rows belong to the vertices that they were
// learned for.
void check_trained_kinds(const std::vector<VertexKind>& trained, const std::vector<VertexKind>& here,
                         const std::string& where);

// Returns a text for people that says what the model makes of each kind.
std::string kinds_text(const std::vector<VertexKind>& kinds, int64_t width);

// If the classes of the data set are words, numbers them as they were numbered when the model was
// trained; `trained` lists their names. Throws a UserError that names `where` for a class that is
// not among them.
void align_classes(const std::vector<std::string>& trained, const std::string& where, Dataset& dataset);
// Divides feature rows by their sums if `how` (--normalize-features: auto, row, none) asks for it.
// Adds a note if `how` is auto and rows were divided.
void normalize_features(Dataset& dataset, const std::string& how, std::vector<std::string>& notes);

// Returns the features of the data set with the names of their leaves. `kinds` are the kinds of the
// same data set; empty if all vertices share one matrix.
std::vector<FeatureLeaf> feature_leaves(const Dataset& dataset, const std::vector<VertexKind>& kinds);

}  // namespace nacre
