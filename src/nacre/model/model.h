// Models by name: from the options of a model, build_model() makes the DFG of its forward pass and
// its loss.
//
// The DFG has these leaves:
//   "x" v0[in_dim]               the features; with several kinds of vertices "x.<kind>"
//                                r[features], or k[features] if blocks are sampled
//   "edge_weight.<l>" e(l)[]     if edge_weighted is set
//   degrees and scales           if blocks are sampled (napa.h)
//   parameters                   (napa.h)
//   "label" v(L)[]:i32           or "target" v(L)[C]:u8, if there is a loss
//   "loss_weight" v(L)[]         if there is a loss; 1/n on the n vertices that count and 0
//                                elsewhere gives the mean
// Its outputs are "logits" v(L)[C], "loss" and, if asked for, "embedding". The evaluation DFG comes
// from the same options with training = false and has the same parameters in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nacre/model/napa.h"

namespace nacre {

struct ModelOptions {
  std::string model = "gcn";
  int layers = 2;
  // This is the number of features. With several kinds of vertices, it is the width that features
  // are projected to, where 0 stands for `hidden`.
  int64_t in_dim = 0;
  int64_t hidden = 64;  // width of the hidden layers; with several heads, of all heads together
  int64_t out_dim = 0;
  // Hidden layers have this many attention heads; 0 stands for the model's usual number.
  int heads = 0;
  int out_heads = 1;             // heads of the last layer, which are averaged
  double dropout = 0;            // dropout between layers
  double input_dropout = 0;      // dropout of the features
  double attention_dropout = 0;  // dropout of attention coefficients
  std::string aggregator;        // mean, sum, max or lstm; "" = the model's usual one
  std::string activation;        // see Napa::activation; "" = the model's usual one
  std::string norm = "none";     // none, layer or batch; applied after every hidden layer
  // If true, the input of a hidden layer is added to its output where the widths agree.
  bool residual = false;
  // The relation weights have this many bases. With 0, the weights are not decomposed.
  int num_bases = 0;
  int num_edge_types = 0;              // number of edge types of the graph
  bool edge_weighted = false;          // whether the graph has edge weights and the model uses them
  std::vector<VertexKind> kinds;       // kinds of vertices; empty: one kind
  Sampling sampling = Sampling::none;  // what the blocks hold
  bool training = true;
  // If true, the DFG has the output "embedding", which is the input of the last layer.
  bool embeddings = false;
  std::string loss = "cross_entropy";  // cross_entropy, bce or none
  // This share of the label is spread over all classes, with any of the losses.
  double label_smoothing = 0;
  std::map<std::string, double> knobs;  // settings that only this model has (ModelInfo::knobs)

  int64_t width(int layer) const { return layer + 1 == layers ? out_dim : hidden; }
};

// ModelKnob describes a number that is a setting of one model only.
struct ModelKnob {
  std::string name;
  double value;  // value if the options do not give one
  std::string about;
  bool share = false;  // whether the number must satisfy 0 ≤ number < 1
};

struct ModelInfo {
  std::string name;
  std::string about;              // description in one line
  bool needs_self_loops = false;  // whether the caller must add self loops to the graph
  bool needs_types = false;       // whether edges must have types
  bool supports_edge_weight = false;
  int heads = 0;                         // usual number of attention heads; 0 = the model has none
  std::vector<std::string> aggregators;  // the first is the usual one; empty = there is no choice
  std::string activation = "relu";       // the activation if the options name none
  std::vector<ModelKnob> knobs = {};
};

// BuildModel is a function that builds a model and returns its logits. The options that it is given
// are validated, and their defaults are filled in.
using BuildModel = std::function<Value(Napa& net, const ModelOptions& options)>;

// Adds a model to the registry. Throws UserError if the name is taken. Must be called before
// threads use the registry.
void register_model(ModelInfo info, BuildModel build);

// A user's model file registers itself with an object of this type at namespace scope. The file
// must be linked into the program itself: a linker leaves an object file of a static library out if
// nothing refers to it.
struct RegisterModel {
  RegisterModel(ModelInfo info, BuildModel build) noexcept { register_model(std::move(info), std::move(build)); }
};

// Returns the model of that name. Throws UserError, with the nearest name, if there is none.
const ModelInfo& model_info(const std::string& name);
std::vector<const ModelInfo*> model_list();  // sorted by name

// Returns the texts that ModelOptions::activation may be: none, relu, …
std::vector<std::string> activation_names();

// Returns the options with the model's defaults filled in. Throws UserError, which names the
// option, if an option does not fit the model.
ModelOptions complete_options(ModelOptions options);

Dfg build_model(const ModelOptions& options);

}  // namespace nacre
