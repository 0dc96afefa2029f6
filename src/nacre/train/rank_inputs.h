// The rows that one rank has of every input of a model: those of its own vertices and of its halo.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "nacre/engine/executor.h"
#include "nacre/partition/local_graph.h"
#include "nacre/train/learner.h"
#include "nacre/train/run_data.h"

namespace nacre {

class RankInputs {
 public:
  // `run` has the data of the whole graph. Both arguments must outlive this object.
  RankInputs(const RunData& run, const LocalGraph& local);

  // Makes the values of the inputs that the plan has. Without a call for a plan, bind() of its
  // executor fails.
  void make(const Plan& plan);
  // Binds all inputs of the executor. Inputs that no step reads stay on the host.
  void bind(Executor& executor, Learner& learner) const;
  // Returns the bytes of the features, and of all other inputs.
  int64_t feature_bytes() const;
  int64_t other_bytes() const;
  // Returns the data of the own vertices: labels, targets and splits, with the rank's numbers of
  // the vertices.
  Dataset own_data() const;

 private:
  Tensor value(const std::string& name) const;
  Tensor rows(const Tensor& table, int64_t count) const;
  Tensor loss_weights() const;
  // Returns for each vertex the sum of the weights of its edges at one end, or, if not `weighted`,
  // the number of these edges.
  Tensor sum_at(End end, bool weighted) const;

  const RunData& run_;
  const LocalGraph& local_;
  Array<NodeId> vertices_;  // numbers in the whole graph: own vertices, then the halo
  // The value of each input, by the name of the input without its layer. A value has rows of own
  // vertices and halo, so that both forms of an input (halo_leaf()) are bound to one array.
  std::map<std::string, Tensor> values_;
};

}  // namespace nacre
