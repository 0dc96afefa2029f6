// The data and settings of a run, made ready for a model: checked against each other, the graph as the model wants it,
// sizes filled in.
#pragma once

#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/train/config.h"
#include "nacre/train/inputs.h"

namespace nacre {

struct RunData {
  // Throws UserError when data and model do not fit together.
  RunData(Dataset data, RunConfig settings, bool training);

  // Identifies data and settings that determine the result.
  std::string fingerprint() const;
  // Bytes of labels, targets and splits.
  int64_t label_bytes() const;
  // -1 where a vertex has no label (or several at once).
  Tensor all_labels() const;
  // Writes what a node of the training split weighs in the mean over nodes whose class weights add up to `total`: one
  // number, or with weighs_pairs() one for each class.
  void loss_weights(NodeId node, double total, float* out) const;
  // Whether --class-weights is given and a node may have several classes: then a class that a node has weighs as much
  // as --class-weights says, and one that it does not have weighs 1.
  bool weighs_pairs() const { return dataset.multilabel() && !class_weights.empty(); }
  // Zeros for `nodes` nodes, as many for each as loss_weights() writes.
  Tensor no_loss_weights(int64_t nodes) const;
  // The loss of a training step (ModelOptions::loss).
  std::string training_loss() const { return weighs_pairs() ? "weighted_bce" : config.model.loss; }
  // How much the class of a labelled node counts in the loss; 1 unless --class-weights says otherwise.
  double class_weight(NodeId node) const;
  // It has a label, or several.
  bool counts(NodeId vertex) const {
    return dataset.multilabel() || (!dataset.labels.empty() && dataset.labels[vertex] >= 0);
  }

  RunConfig config;  // completed
  Dataset dataset;   // graph and features as the model sees them
  std::vector<std::string> notes;
  std::string metric;
  std::vector<FeatureLeaf> leaves;  // its features
  uint64_t data_fingerprint = 0;
  std::vector<double> class_weights;  // empty: all are 1

 private:
  void prepare_graph();
  void complete_model(bool training);
};

}  // namespace nacre
