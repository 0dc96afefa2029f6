// What the data gives a model to start from: the features of its vertices, of one kind or of several.
#pragma once

#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/model/model.h"

namespace nacre {

// Features a model reads, by the name of their leaf (model.h).
struct FeatureLeaf {
  std::string name;
  Tensor values;
};

// The kinds of a set whose vertices do not share one matrix of features, in the order of their ids and without kinds
// that have no vertices; empty for other sets. Names are fit for leaves and parameters.
std::vector<VertexKind> vertex_kinds(const Dataset& dataset);

// Throws UserError naming `where` when a model trained on vertices of the kinds `trained` cannot run on those of
// `here`: learned rows belong to the vertices they were learned for.
void check_trained_kinds(const std::vector<VertexKind>& trained, const std::vector<VertexKind>& here,
                         const std::string& where);

// One line on what becomes of the kinds, for the notes.
std::string kinds_text(const std::vector<VertexKind>& kinds, int64_t width);

// Numbers classes that are words as the model was trained for them; `trained` lists their names. Throws UserError
// naming `where` for a class that is not among them.
void align_classes(const std::vector<std::string>& trained, const std::string& where, Dataset& dataset);
// Divides feature rows by their sums as `how` (--normalize-features: auto, row, none) says; notes what it did.
void normalize_features(Dataset& dataset, const std::string& how, std::vector<std::string>& notes);

// `kinds` of the same set.
std::vector<FeatureLeaf> feature_leaves(const Dataset& dataset, const std::vector<VertexKind>& kinds);

}  // namespace nacre
