// Models by name: options in, the DFG of the forward pass and its loss out.
//
// Leaves of the DFG build_model returns: "x" v0[in_dim], or with several kinds of vertices
// "x.<kind>" r[features]; "edge_weight.<l>" e(l)[] when edge_weighted; where blocks are sampled,
// degrees and scales (napa.h); parameters (see napa.h); with a loss "label" v(L)[]:i32 or "target"
// v(L)[C]:u8, and "loss_weight" v(L)[] (1/n on the n vertices that count and 0 elsewhere gives the
// mean). Outputs: "logits" v(L)[C], "loss", and where asked for "embedding". The evaluation DFG has
// the same parameters in the same order and comes from the same options with training = false.
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
  // of the features; with several kinds, of what they are projected to: 0 = hidden
  int64_t in_dim = 0;
  int64_t hidden = 64;  // width of the hidden layers; with several heads, of all heads together
  int64_t out_dim = 0;
  // attention heads of hidden layers; 0 = the model's usual number
  int heads = 0;
  int out_heads = 1;             // of the last layer, averaged
  double dropout = 0;            // between layers
  double input_dropout = 0;      // on the features
  double attention_dropout = 0;  // on attention coefficients
  std::string aggregator;        // mean, sum, max, lstm; "" = the model's usual one
  std::string activation;        // see Napa::activation; "" = the model's usual one
  std::string norm = "none";     // none, layer, batch: after every hidden layer
  // add a hidden layer's input to its output where the widths agree
  bool residual = false;
  int num_bases = 0;                   // basis decomposition of relation weights; 0 = off
  int num_edge_types = 0;              // of the graph
  bool edge_weighted = false;          // the graph has edge weights, and they count
  std::vector<VertexKind> kinds;       // of vertices; empty: one kind
  Sampling sampling = Sampling::none;  // what the blocks hold
  bool training = true;
  // one more output, "embedding": what the last layer is given
  bool embeddings = false;
  std::string loss = "cross_entropy";  // cross_entropy, bce, none
  // of either loss: share of the label that is spread over all classes
  double label_smoothing = 0;
  std::map<std::string, double> knobs;  // settings of the model's own (ModelInfo::knobs)

  int64_t width(int layer) const { return layer + 1 == layers ? out_dim : hidden; }
};

// A number only this model has.
struct ModelKnob {
  std::string name;
  double value;  // unless the options say otherwise
  std::string about;
  bool share = false;  // 0 ≤ number < 1
};

struct ModelInfo {
  std::string name;
  std::string about;              // one line
  bool needs_self_loops = false;  // the caller adds them to the graph
  bool needs_types = false;       // typed edges
  bool supports_edge_weight = false;
  int heads = 0;                         // usual number; 0 = no attention heads
  std::vector<std::string> aggregators;  // the first is the usual one; empty = no choice
  std::string activation = "relu";       // the usual one
  std::vector<ModelKnob> knobs = {};
};

// Builds the logits. The options are complete: defaults filled in, validated.
using BuildModel = std::function<Value(Napa& net, const ModelOptions& options)>;

// Throws UserError when the name is taken. Call it before threads use the registry.
void register_model(ModelInfo info, BuildModel build);

// A user's model file registers itself with one of these at namespace scope. (Link the file into
// the program: an object file that nothing else refers to is left out of a static library.)
struct RegisterModel {
  RegisterModel(ModelInfo info, BuildModel build) noexcept { register_model(std::move(info), std::move(build)); }
};

const ModelInfo& model_info(const std::string& name);  // throws UserError, with the nearest name
std::vector<const ModelInfo*> model_list();            // by name

// The options with the model's defaults filled in; throws UserError naming the option that does not
// fit.
ModelOptions complete_options(ModelOptions options);

Dfg build_model(const ModelOptions& options);

}  // namespace nacre
