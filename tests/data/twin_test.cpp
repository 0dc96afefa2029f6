#include "nacre/data/twin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "nacre/base/error.h"
#include "nacre/base/machine.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/data/twin_edges.h"
#include "nacre/data/twin_layout.h"
#include "nacre/data/twin_math.h"
#include "nacre/data/twin_plan.h"
#include "nacre/graph/stats.h"

namespace nacre {
namespace {

// A hash of the test's own, so that recorded values depend on nothing but the twin.
class Hash {
 public:
  void add(const void* data, int64_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    value_ = mix_key(value_, static_cast<uint64_t>(bytes));
    for (; bytes > 0; bytes -= 8, p += 8) {
      uint64_t word = 0;
      std::memcpy(&word, p, static_cast<size_t>(std::min<int64_t>(8, bytes)));
      value_ = mix_key(value_, word);
    }
  }
  template <class T>
  void add(const Array<T>& array) {
    add(array.data(), array.size() * static_cast<int64_t>(sizeof(T)));
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

uint64_t hash_of(const Dataset& set) {
  Hash hash;
  hash.add(set.graph.row_ptr());
  hash.add(set.graph.col_idx());
  hash.add(set.graph.edge_type());
  hash.add(set.features.raw(), set.features.bytes());
  hash.add(set.labels);
  hash.add(set.targets.raw(), set.targets.bytes());
  hash.add(set.splits.train);
  hash.add(set.splits.val);
  hash.add(set.splits.test);
  return hash.value();
}

bool has_edge(const Graph& graph, int64_t src, int64_t dst) {
  const NodeId* row = graph.col_idx().data() + graph.row_ptr()[dst];
  return std::binary_search(row, row + graph.in_degree(dst), static_cast<NodeId>(src));
}

// Checks that rows are sorted, without duplicates, with `loops` self loops, and with both
// directions if the set is undirected.
void expect_simple(const Graph& graph, bool undirected, int64_t loops) {
  int64_t bad_order = 0;
  int64_t seen_loops = 0;
  int64_t one_way = 0;
  for (int64_t v = 0; v < graph.num_nodes(); ++v) {
    for (int64_t i = graph.row_ptr()[v]; i < graph.row_ptr()[v + 1]; ++i) {
      const int64_t u = graph.col_idx()[i];
      bad_order += i > graph.row_ptr()[v] && graph.col_idx()[i - 1] >= graph.col_idx()[i] ? 1 : 0;
      seen_loops += u == v ? 1 : 0;
      one_way += undirected && !has_edge(graph, v, u) ? 1 : 0;
    }
  }
  EXPECT_EQ(bad_order, 0);
  EXPECT_EQ(seen_loops, loops);
  EXPECT_EQ(one_way, 0);
}

void expect_sound_splits(const Dataset& set) {
  std::vector<int> uses(static_cast<size_t>(set.num_nodes()), 0);
  for (const auto* split : {&set.splits.train, &set.splits.val, &set.splits.test}) {
    EXPECT_FALSE(split->empty());
    EXPECT_TRUE(std::is_sorted(split->begin(), split->end()));
    for (const NodeId v : *split) {
      ASSERT_LT(v, set.num_nodes());
      ++uses[v];
      ASSERT_TRUE(set.multilabel() || set.labels[v] >= 0);
    }
  }
  EXPECT_LE(*std::max_element(uses.begin(), uses.end()), 1);
}

// Returns the share of test vertices whose nearest class mean (over the training set) is their
// label.
double nearest_mean_accuracy(const Dataset& set, const std::vector<float>& rows) {
  const int64_t width = set.num_features();
  std::vector<double> means(static_cast<size_t>(set.num_classes * width), 0);
  std::vector<double> sizes(static_cast<size_t>(set.num_classes), 0);
  for (const NodeId v : set.splits.train) {
    ++sizes[set.labels[v]];
    for (int64_t j = 0; j < width; ++j) means[set.labels[v] * width + j] += rows[v * width + j];
  }
  int64_t right = 0;
  for (const NodeId v : set.splits.test) {
    double best = INFINITY;
    int64_t label = -1;
    for (int64_t c = 0; c < set.num_classes; ++c) {
      double distance = 0;
      for (int64_t j = 0; j < width; ++j) {
        const double d = rows[v * width + j] - means[c * width + j] / std::max(1.0, sizes[c]);
        distance += d * d;
      }
      if (distance < best) {
        best = distance;
        label = c;
      }
    }
    right += label == set.labels[v] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(set.splits.test.size());
}

// Returns the mean over each vertex and its in-neighbours.
std::vector<float> neighbourhood_means(const Dataset& set) {
  const int64_t width = set.num_features();
  const auto* x = set.features.data<float>();
  std::vector<float> out(x, x + set.features.size());
  const Graph& g = set.graph;
  for (int64_t v = 0; v < g.num_nodes(); ++v) {
    for (int64_t i = g.row_ptr()[v]; i < g.row_ptr()[v + 1]; ++i) {
      for (int64_t j = 0; j < width; ++j) out[v * width + j] += x[g.col_idx()[i] * width + j];
    }
    for (int64_t j = 0; j < width; ++j) out[v * width + j] /= static_cast<float>(1 + g.in_degree(v));
  }
  return out;
}

std::vector<float> own_features(const Dataset& set) {
  const auto* x = set.features.data<float>();
  return {x, x + set.features.size()};
}

struct Small {
  const char* name;
  int64_t nodes;
  int64_t edges;
};

class SmallTwin : public testing::TestWithParam<Small> {};

TEST_P(SmallTwin, HasExactCountsAndIsSound) {
  const auto [name, nodes, edges] = GetParam();
  const Dataset set = make_twin(name, 3);
  const TwinPlan plan = plan_twin(name, 3);
  EXPECT_EQ(set.num_nodes(), nodes);
  EXPECT_EQ(set.graph.num_edges(), edges);
  EXPECT_EQ(set.num_features(), plan.spec->num_features);
  EXPECT_EQ(set.num_classes, plan.spec->num_classes);
  EXPECT_EQ(set.graph.num_edge_types(), plan.spec->num_edge_types);
  EXPECT_EQ(set.multilabel(), plan.spec->multilabel);
  expect_simple(set.graph, plan.spec->undirected, plan.self_loops);
  expect_sound_splits(set);
  for (const float x : set.features.span<float>()) ASSERT_TRUE(std::isfinite(x));
  if (set.multilabel()) {
    EXPECT_TRUE(set.labels.empty());
    for (const uint8_t t : set.targets.span<uint8_t>()) ASSERT_LE(t, 1);
  } else {
    ASSERT_EQ(set.labels.size(), nodes);
    for (const int32_t label : set.labels) ASSERT_TRUE(label >= -1 && label < set.num_classes);
  }
}

TEST_P(SmallTwin, HasTheSameBytesOnAnyNumberOfThreads) {
  const int before = num_threads();
  std::set<uint64_t> hashes;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    hashes.insert(hash_of(make_twin(GetParam().name, 5)));
  }
  set_num_threads(before);
  EXPECT_EQ(hashes.size(), 1U);
}

// The number of edges is count x scale, rounded; undirected sets hold whole pairs.
INSTANTIATE_TEST_SUITE_P(All, SmallTwin,
                         testing::Values(Small{"cora", 2708, 10556}, Small{"citeseer@0.33", 1098, 3004},
                                         Small{"pubmed@0.05", 986, 4432}, Small{"cs@0.05", 917, 8188},
                                         Small{"physics@0.02", 690, 9918}, Small{"arxiv@0.02", 3387, 23325},
                                         Small{"products@0.001", 2449, 123718}, Small{"reddit@0.01", 2330, 1146158},
                                         Small{"yelp@0.003", 2151, 41864}, Small{"flickr@0.03", 2678, 26992},
                                         Small{"proteins@0.01", 1325, 791224}, Small{"mag@0.003", 5819, 63333},
                                         Small{"papers100M@0.0001", 11106, 161569},
                                         Small{"friendster@0.0001", 6561, 180607},
                                         Small{"citation2@0.002", 5856, 61122}, Small{"amazon@0.001", 1570, 264338},
                                         Small{"gowalla@0.05", 3542, 102736}, Small{"google@0.01", 8757, 51050},
                                         Small{"roadnet-ca@0.003", 5896, 16600}, Small{"wiki-talk@0.003", 7183, 15064},
                                         Small{"livejournal@0.001", 4848, 68994}));

TEST(Twin, RecordedHashesStay) {
  // If these hashes change, every published figure on twins is about other data.
  EXPECT_EQ(hash_of(make_twin("cora", 0)), 10151394473283236910ULL);
  EXPECT_EQ(hash_of(make_twin("mag@0.003", 7)), 12373578544122802815ULL);
  EXPECT_EQ(hash_of(make_twin("proteins@0.01", 1)), 14671259954497236442ULL);
  EXPECT_EQ(hash_of(make_twin("roadnet-ca@0.003", 1)), 9260377857369186764ULL);
}

TEST(Twin, SeedsGiveDifferentGraphs) {
  EXPECT_NE(make_twin("cora", 1).graph.fingerprint(), make_twin("cora", 2).graph.fingerprint());
}

TEST(Twin, EveryDesignedNameHasASpecThatAddsUp) {
  const std::set<std::string> wanted = {
      "cora",      "citeseer",   "pubmed",     "cs",        "physics",     "arxiv",      "products", "reddit",
      "yelp",      "flickr",     "proteins",   "mag",       "amazon",      "papers100M", "gowalla",  "google",
      "wiki-talk", "roadnet-ca", "friendster", "citation2", "livejournal", "igb-large"};
  std::set<std::string> names;
  for (const TwinSpec& spec : twin_specs()) {
    names.insert(spec.name);
    EXPECT_LE(spec.train_share + spec.val_share + spec.test_share, 1 + 1e-9) << spec.name;
    EXPECT_FALSE(spec.about.empty()) << spec.name;
    int64_t nodes = 0;
    int64_t edges = 0;
    for (const TwinKind& kind : spec.kinds) nodes += kind.num_nodes;
    for (const TwinRelation& relation : spec.relations) edges += relation.num_edges;
    EXPECT_TRUE(spec.kinds.empty() || nodes == spec.num_nodes) << spec.name;
    EXPECT_TRUE(spec.relations.empty() || edges == spec.num_edges) << spec.name;
    const TwinPlan full = plan_twin(spec.name, 0);
    EXPECT_EQ(full.num_nodes, spec.num_nodes) << spec.name;
    EXPECT_EQ(full.num_edges, spec.num_edges) << spec.name;
  }
  EXPECT_EQ(names, wanted);
}

TEST(Twin, DegreesHaveAHeavyTail) {
  const Dataset arxiv = make_twin("arxiv@0.2", 1);
  const DegreeStats in = compute_stats(arxiv.graph).in;
  EXPECT_NEAR(in.mean, 1166243.0 / 169343, 0.01);
  EXPECT_GT(in.gini, 0.5);
  const TwinPlan plan = plan_twin("arxiv@0.2", 1);
  EXPECT_GT(in.max, 0.4 * static_cast<double>(plan.relations[0].in.max));
  EXPECT_LT(in.max, 1.3 * static_cast<double>(plan.relations[0].in.max));
  EXPECT_GT(in.max, 50 * in.median);

  const DegreeStats flickr = compute_stats(make_twin("flickr@0.2", 1).graph).in;
  EXPECT_GT(flickr.gini, 0.5);
  const DegreeStats roads = compute_stats(make_twin("roadnet-ca@0.01", 1).graph).in;
  EXPECT_LT(roads.gini, 0.3);
  EXPECT_LE(roads.max, 12);
}

TEST(Twin, RoadsHangTogether) {
  const GraphStats stats = compute_stats(make_twin("roadnet-ca@0.01", 1).graph);
  EXPECT_GT(stats.largest_component, 0.9 * 19652);
}

TEST(Twin, NeighboursTellMoreThanOwnFeatures) {
  for (const char* name : {"arxiv@0.1", "products@0.01", "cora", "flickr@0.1", "google@0.02", "roadnet-ca@0.01"}) {
    const Dataset set = make_twin(name, 1);
    const double own = nearest_mean_accuracy(set, own_features(set));
    const double around = nearest_mean_accuracy(set, neighbourhood_means(set));
    EXPECT_GT(around, own + 0.08) << name << ": " << own << " alone, " << around << " with neighbours";
    EXPECT_GT(own, 1.5 / static_cast<double>(set.num_classes)) << name;
    EXPECT_LT(around, 0.96) << name;
    const double homophily = edge_homophily(set.graph, set.labels.span());
    EXPECT_GT(homophily, 0.3) << name;
    EXPECT_LT(homophily, 0.9) << name;
  }
}

TEST(Twin, TargetsFollowCommunities) {
  const Dataset set = make_twin("proteins@0.02", 1);
  // The ends of an edge agree on the positives of a task more often than by chance.
  const auto* t = set.targets.data<uint8_t>();
  const int64_t tasks = set.num_classes;
  double positives = 0;
  for (int64_t i = 0; i < set.targets.size(); ++i) positives += t[i];
  double both = 0;
  double ends = 0;
  for (int64_t v = 0; v < set.num_nodes(); v += 5) {
    for (int64_t i = set.graph.row_ptr()[v]; i < set.graph.row_ptr()[v + 1]; i += 3) {
      for (int64_t k = 0; k < tasks; ++k) {
        both += t[v * tasks + k] & t[set.graph.col_idx()[i] * tasks + k];
        ends += t[v * tasks + k];
      }
    }
  }
  const double rate = positives / static_cast<double>(set.targets.size());
  EXPECT_GT(rate, 0.05);
  EXPECT_LT(rate, 0.5);
  EXPECT_GT(both / ends, 1.3 * rate);
}

TEST(Twin, KindsAndRelationsOfMag) {
  const Dataset set = make_twin("mag@0.01", 1);
  const TwinPlan plan = plan_twin("mag@0.01", 1);
  std::vector<int64_t> count(4, 0);
  for (int64_t v = 0; v < set.num_nodes(); ++v) {
    for (int64_t i = set.graph.row_ptr()[v]; i < set.graph.row_ptr()[v + 1]; ++i) {
      const TwinRelation& r = plan.spec->relations[set.graph.edge_type()[i]];
      ASSERT_EQ(plan.kind_of(set.graph.col_idx()[i]), r.from);
      ASSERT_EQ(plan.kind_of(v), r.to);
      ++count[set.graph.edge_type()[i]];
    }
    ASSERT_EQ(set.labels[v] >= 0, plan.kind_of(v) == 0);
  }
  for (int r = 0; r < 4; ++r) EXPECT_EQ(count[r], plan.relations[r].draws);
}

TEST(Twin, SharesOfTheSplits) {
  const Dataset cora = make_twin("cora", 9);
  EXPECT_EQ(cora.splits.train.size(), 140);
  EXPECT_EQ(cora.splits.val.size(), 500);
  EXPECT_EQ(cora.splits.test.size(), 1000);
  const Dataset papers = make_twin("papers100M@0.001", 9);
  const auto labelled = std::count_if(papers.labels.begin(), papers.labels.end(), [](int32_t l) { return l >= 0; });
  EXPECT_NEAR(static_cast<double>(labelled), 0.0139 * 111060, 150);
  EXPECT_EQ(papers.splits.train.size() + papers.splits.val.size() + papers.splits.test.size(), labelled);
}

TEST(Twin, TooDenseAScaleIsBounded) {
  // 699 vertices; in the original, each has 492 neighbours.
  const Dataset set = make_twin("reddit@0.003", 1);
  EXPECT_LE(set.graph.num_edges(), 699 * 698 / 2);
  EXPECT_GT(set.graph.num_edges(), 699 * 698 / 2 - 3);
  EXPECT_EQ(set.notes.size(), 1U);
  expect_simple(set.graph, true, 0);
}

TEST(Twin, TheSmallestScalesWork) {
  for (const TwinSpec& spec : twin_specs()) {
    for (const double vertices : {1.0, 1.1, 1.5, 3.0}) {
      const double fewest = std::max(16.0, 2.0 * std::max<double>(spec.communities, spec.num_classes));
      const std::string scale = std::to_string(vertices * fewest / static_cast<double>(spec.num_nodes) + 1e-6);
      const std::string name = spec.name + "@" + scale;
      const Dataset set = make_twin(name, 11);
      EXPECT_EQ(set.graph.num_edges(), plan_twin(name, 11).num_edges);
      expect_simple(set.graph, spec.undirected, 0);
    }
  }
}

TEST(Twin, AnOddSymmetricSetHasOneSelfLoop) {
  EXPECT_EQ(plan_twin("yelp", 0).self_loops, 1);
  EXPECT_EQ(plan_twin("yelp@0.1", 0).self_loops, 0);
  EXPECT_EQ(plan_twin("reddit", 0).self_loops, 0);
}

std::string error_of(std::string_view name) {
  try {
    make_twin(name, 0);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(Twin, BadNamesAndScalesAreTheUsersMistake) {
  for (const char* name : {"", "corra", "Corra", "@0.5", "twin:cora"}) {
    const std::string error = error_of(name);
    EXPECT_NE(error.find("no such twin"), std::string::npos) << name;
    EXPECT_NE(error.find("papers100M"), std::string::npos) << name;
  }
  for (const char* scale :
       {"cora@", "cora@0", "cora@-1", "cora@x", "cora@0.5x", "cora@nan", "cora@inf", "cora@1e9", "cora@@1"}) {
    EXPECT_NE(error_of(scale).find("is not a scale"), std::string::npos) << scale;
  }
  EXPECT_NE(error_of("cora@0.001").find("at least"), std::string::npos);
}

TEST(Twin, WhatDoesNotFitIsRefusedWithAScaleThatDoes) {
  const TwinPlan plan = plan_twin("papers100M", 0);
  EXPECT_GT(twin_peak_bytes(plan), int64_t{50} << 30);
  try {
    require_memory(plan, int64_t{20} << 30);
    FAIL() << "accepted";
  } catch (const UserError& e) {
    const std::string text = e.what();
    const size_t at = text.find("twin:papers100M@");
    ASSERT_NE(at, std::string::npos) << text;
    const double scale = std::stod(text.substr(at + 16));
    EXPECT_GT(scale, 0.05);
    EXPECT_NO_THROW(require_memory(plan_twin("papers100M@" + text.substr(at + 16, 4), 0), int64_t{20} << 30));
  }
  EXPECT_GT(available_memory(), 0);
}

TEST(TwinMath, PortableFunctionsAreAccurate) {
  for (const double x : {1e-9, 0.3, 0.999, 1.0, 1.5, 2.0, 123.456, 1e12}) {
    EXPECT_NEAR(portable_log(x), std::log(x), 1e-14 * std::max(1.0, std::abs(std::log(x))));
    EXPECT_NEAR(portable_pow(x, -0.7) / std::pow(x, -0.7), 1, 1e-13);
  }
  for (const double x : {-50.0, -0.5, 0.0, 0.1, 33.3}) EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 1e-13);
}

TEST(TwinMath, ShuffleIsAPermutation) {
  for (const int64_t n : {1, 2, 3, 7, 64, 65, 1000}) {
    const Shuffle shuffle(n, 42);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < n; ++i) seen.insert(shuffle(i));
    EXPECT_EQ(static_cast<int64_t>(seen.size()), n);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), n - 1);
  }
}

TEST(TwinMath, AliasTablesFollowTheWeights) {
  const std::vector<double> weights = {1, 0, 5, 0.5, 100, 3};
  const std::vector<uint32_t> ids = {10, 11, 12, 13, 14, 15};
  std::vector<AliasEntry> table(weights.size());
  build_alias(weights.data(), ids.data(), 6, table.data());
  std::vector<double> share(6, 0);
  for (const AliasEntry& e : table) {
    share[e.self - 10] += e.keep / 4294967296.0 / 6;
    share[e.other - 10] += (1 - e.keep / 4294967296.0) / 6;
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(share[i], weights[i] / 109.5, 1e-8);
}

}  // namespace
}  // namespace nacre
