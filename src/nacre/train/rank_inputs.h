// RankInputs: the rows that one rank has of every input of a model. They are those of its own
// vertices and of its halo, or, for aggregation in columns, those of the whole graph.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/executor.h"
#include "nacre/partition/local_graph.h"
#include "nacre/train/learner.h"
#include "nacre/train/run_data.h"

namespace nacre {

struct InputBytes {
  int64_t features = 0;
  int64_t other = 0;
};
// Returns the bytes of the inputs that the plans have on a rank, without making them.
InputBytes input_bytes(const RunData& run, const LocalGraph& local, const std::vector<const Plan*>& plans);

class RankInputs {
 public:
  // `run` has the data of the whole graph. `reversed` is the block of the part in the graph with
  // all edges turned around; it may be null. All arguments must outlive this object.
  RankInputs(const RunData& run, const LocalGraph& local, const LocalGraph* reversed);

  // Makes the values of the inputs that the plan reads. bind() of a plan's executor fails if this
  // function was not called for the plan.
  void make(const Plan& plan);
  // Binds all inputs of the executor. On a GPU, features that no step reads, but only constants,
  // stay on the host.
  void bind(Executor& executor, Learner& learner) const;
  // Makes the values that a plan reads, as make() does, and returns their bytes.
  int64_t bytes_of(const Plan& plan);
  // Frees the values that none of `plans` reads. Plans that were only compared may have read more.
  void keep_only(const std::vector<const Plan*>& plans);
  // Return the bytes of the features, and the bytes of all other inputs.
  int64_t feature_bytes() const;
  int64_t other_bytes() const;
  // Returns the data of the own vertices: labels, targets and splits, with the rank's numbers of
  // the vertices.
  Dataset own_data() const;

 private:
  Tensor value(const std::string& name) const;
  Tensor rows(const Tensor& table, int64_t count) const;
  Tensor loss_weights() const;
  // Returns the values of the leaf `name` for the whole graph, with a row for each of its vertices
  // or edges. A rank takes the rows of its own part from it.
  Tensor value_of_all(const std::string& name) const;

  const RunData& run_;
  const LocalGraph& local_;
  const LocalGraph* reversed_;
  Array<NodeId> vertices_;  // numbers in the whole graph: own vertices, then the halo
  // The value of each input, by the name of the input without its layer. A value has rows of own
  // vertices and halo, so that both forms of an input (halo_leaf()) are bound to one array. Values
  // of the whole graph and of reversed edges have the names of whole_leaf() and reversed_leaf().
  std::map<std::string, Tensor> values_;
};

}  // namespace nacre
