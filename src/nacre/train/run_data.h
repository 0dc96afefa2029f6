// The data and settings of a run, made ready for a model: checked against each other, with the
// graph as the model needs it and the sizes filled in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nacre/data/stored_rows.h"
#include "nacre/train/config.h"
#include "nacre/train/inputs.h"

namespace nacre {

struct RunData {
  // Throws UserError if data and model do not fit together.
  RunData(Dataset data, RunConfig settings, bool training);

  // Numbers the vertices anew: vertex order[i] becomes vertex i. The fingerprint stays that of the
  // data as they were read.
  void reorder(const Array<NodeId>& order);
  // Returns a text that identifies the data and the settings that determine the result.
  std::string fingerprint() const;
  // Returns the bytes of labels, targets and splits.
  int64_t label_bytes() const;
  // Returns the labels of all vertices; -1 if a vertex has no label or several.
  Tensor all_labels() const;
  // Writes the weight of a training vertex in the mean over vertices whose class weights add up to
  // `total`: one number or, with weighs_pairs(), one for each class.
  void loss_weights(NodeId node, double total, float* out) const;
  // Returns whether --class-weights is given and a vertex may have several classes. Then a class
  // that a vertex has weighs as much as --class-weights says, and a class that it does not have
  // weighs 1.
  bool weighs_pairs() const { return dataset.multilabel() && !class_weights.empty(); }
  // Returns zeros for `nodes` vertices, as many for each as loss_weights() writes.
  Tensor no_loss_weights(int64_t nodes) const;
  // Returns the loss of a training step (ModelOptions::loss).
  std::string training_loss() const { return weighs_pairs() ? "weighted_bce" : config.model.loss; }
  // Returns how much the class of a labelled vertex counts in the loss: 1, unless --class-weights
  // says otherwise.
  double class_weight(NodeId node) const;
  // Returns whether the vertex counts in the loss and in scores: it has a label, or vertices may
  // have several.
  bool counts(NodeId vertex) const {
    return dataset.multilabel() || (!dataset.labels.empty() && dataset.labels[vertex] >= 0);
  }

  RunConfig config;  // the settings, with sizes and defaults filled in
  Dataset dataset;   // graph and features as the model sees them
  std::vector<std::string> notes;
  std::string metric;
  std::vector<FeatureLeaf> leaves;  // features of the data set
  // Says where features are read from, if they stay on disk; `dataset.features` must not be read
  // then.
  std::optional<StoredRows> on_disk;
  uint64_t data_fingerprint = 0;
  std::vector<double> class_weights;  // empty: all are 1

 private:
  void require_no_division(const std::string& how) const;
  void prepare_graph();
  void complete_model(bool training);
};

}  // namespace nacre
