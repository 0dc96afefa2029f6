// Twins: generated stand-ins for the papers' data sets, with the real set's vertex, edge, feature and class counts,
// degree skew, communities and learnable labels. The same seed gives the same bytes on any machine and thread count.
// The model behind them: docs/twins.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/data/dataset.h"

namespace nacre {

// A power law x^-exponent cut off at `max`.
struct DegreeTail {
  double exponent = 2.3;
  int64_t max = 0;
};

// Vertices of one kind lie next to each other; kinds follow each other in the id space.
struct TwinKind {
  std::string name;
  int64_t num_nodes = 0;
  bool labelled = true;
};

// Edges of one type between two kinds.
struct TwinRelation {
  std::string name;
  int from = 0;
  int to = 0;
  int64_t num_edges = 0;
  double homophily = 0.6;
  DegreeTail out;
  DegreeTail in;
};

struct TwinSpec {
  std::string name;
  int64_t num_nodes = 0;
  int64_t num_edges = 0;  // directed edges as stored (both directions counted where the original has both)
  int64_t num_features = 0;
  int64_t num_classes = 0;
  bool multilabel = false;
  bool undirected = true;        // the original stores both directions
  int num_edge_types = 1;        // > 1: typed edges
  double degree_exponent = 2.3;  // power-law exponent of the degree tail; large = nearly regular (road networks)
  int64_t max_degree = 0;        // of the original
  double train_share = 0.6;      // of the labelled vertices, as val and test; the rest is in no split
  double val_share = 0.2;
  double test_share = 0.2;
  std::string about;  // one line for `nacre data list`

  // How it is generated.
  bool road = false;        // a lattice instead of a power law
  double out_exponent = 0;  // directed sets: the tail of out-degrees; 0 = as the in-degrees
  int64_t max_out_degree = 0;
  double homophily = 0.7;               // chance that an edge is drawn inside the vertex's community
  double class_skew = 0.6;              // community sizes fall as rank^-skew
  double label_noise = 0.1;             // single-label: share of labels drawn regardless of the community
  double labelled_share = 1;            // of the vertices; the others have label -1
  double feature_signal = 1;            // distance of class means over noise; bag of words: share of topic words
  int words = 0;                        // > 0: features are 0/1 bags of about this many words
  int communities = 0;                  // multi-label sets; single-label sets have one per class
  std::vector<TwinKind> kinds;          // empty: one kind
  std::vector<TwinRelation> relations;  // empty: one relation over all vertices
};

const std::vector<TwinSpec>& twin_specs();

// "arxiv" or "arxiv@0.1": scale multiplies vertices and edges (the mean degree stays).
// Throws UserError for unknown names, bad scales and twins that do not fit in memory.
Dataset make_twin(std::string_view name_and_scale, uint64_t seed);

}  // namespace nacre
