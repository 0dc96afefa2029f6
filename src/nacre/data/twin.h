// Twins: generated stand-ins for the papers' data sets. A twin has the numbers of vertices, edges,
// features and classes of the real set, its degree skew, communities, and labels that can be
// learnt. The same seed gives the same bytes on any machine and any number of threads.
// docs/twins.md describes the model behind them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/data/dataset.h"

namespace nacre {

// A power law x^-exponent that is cut off at `max`.
struct DegreeTail {
  double exponent = 2.3;
  int64_t max = 0;
};

// A kind of vertices. Vertices of one kind have consecutive ids, and kinds follow each other.
struct TwinKind {
  std::string name;
  int64_t num_nodes = 0;
  bool labelled = true;
};

// Describes the edges of one type between two kinds.
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
  // Directed edges as stored; both directions count if the original has both.
  int64_t num_edges = 0;
  int64_t num_features = 0;
  int64_t num_classes = 0;
  bool multilabel = false;
  bool undirected = true;  // whether the original stores both directions
  int num_edge_types = 1;  // edges are typed if this is greater than 1
  // Power-law exponent of the degree tail; large means nearly regular (road networks).
  double degree_exponent = 2.3;
  int64_t max_degree = 0;  // largest degree in the original
  // Shares of the labelled vertices in the splits. The rest is in no split.
  double train_share = 0.6;
  double val_share = 0.2;
  double test_share = 0.2;
  std::string about;  // one line for `nacre data list`

  // The values below say how the twin is generated.
  bool road = false;  // generate a lattice instead of a power law
  // Directed sets: exponent of the tail of out-degrees; 0 means that of the in-degrees.
  double out_exponent = 0;
  int64_t max_out_degree = 0;
  double homophily = 0.7;   // chance that an edge is drawn inside the vertex's community
  double class_skew = 0.6;  // sizes of communities fall as rank^-skew
  // Single-label sets: share of labels that are drawn regardless of the community.
  double label_noise = 0.1;
  double labelled_share = 1;  // share of labelled vertices; the others have label -1
  // Distance of the class means divided by the noise; for bags of words, the share of topic words.
  double feature_signal = 1;
  int words = 0;                        // if > 0, features are 0/1 bags of about this many words
  int communities = 0;                  // multi-label sets only; others have one per class
  std::vector<TwinKind> kinds;          // empty if there is one kind
  std::vector<TwinRelation> relations;  // empty if there is one relation over all vertices
};

const std::vector<TwinSpec>& twin_specs();

// Makes the twin named "arxiv" or "arxiv@0.1". The scale multiplies vertices and edges, so the mean
// degree stays. Without `features`, everything but the features is made. Throws UserError for
// unknown names, bad scales and twins that do not fit in memory.
Dataset make_twin(std::string_view name_and_scale, uint64_t seed, bool features = true);

}  // namespace nacre
