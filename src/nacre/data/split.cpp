#include "nacre/data/split.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/data/users_items.h"

namespace nacre {
namespace {

constexpr const char* kOption = "--split";
constexpr const char* kExamples = "write random:0.6/0.2/0.2, stratified:0.6/0.2/0.2 or per-class:20/500/1000";

bool parse_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

void check_shares(const SplitRequest& r) {
  for (const double share : {r.train, r.val, r.test}) {
    if (share < 0 || share > 1)
      throw UserError(kOption, "a share of the nodes must lie between 0 and 1", "write random:0.6/0.2/0.2");
  }
  constexpr double rounding = 1e-9;
  if (r.train + r.val + r.test > 1 + rounding)
    throw UserError(kOption, "the three shares add up to more than 1", "write random:0.6/0.2/0.2");
}

void check_counts(const SplitRequest& r) {
  for (const double count : {r.train, r.val, r.test}) {
    if (count < 0 || count != std::trunc(count) || count > 4e9)
      throw UserError(kOption, "per-class takes whole numbers of nodes", "write per-class:20/500/1000");
  }
}

// Returns the labelled nodes in an order drawn by `seed`.
std::vector<NodeId> shuffled_nodes(const Dataset& data, uint64_t seed) {
  std::vector<std::pair<uint64_t, NodeId>> drawn;
  for (int64_t v = 0; v < data.num_nodes(); ++v) {
    if (data.multilabel() || data.labels[v] >= 0) drawn.emplace_back(0, static_cast<NodeId>(v));
  }
  parallel_for(static_cast<int64_t>(drawn.size()), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const PhiloxBlock block = philox(mix_key(seed, 0x73706C6974), 0, drawn[i].second);
      drawn[i].first = uint64_t{block[0]} << 32 | block[1];
    }
  });
  std::sort(drawn.begin(), drawn.end());
  std::vector<NodeId> nodes(drawn.size());
  for (size_t i = 0; i < drawn.size(); ++i) nodes[i] = drawn[i].second;
  return nodes;
}

struct Parts {
  std::vector<NodeId> train, val, test;
};

// Cuts `nodes` into the three parts. The ends of the parts are rounded instead of their sizes, so
// that no node is lost to rounding.
void cut(const std::vector<NodeId>& nodes, const SplitRequest& r, Parts& parts) {
  const auto count = static_cast<double>(nodes.size());
  const auto at = [&](double share) { return nodes.begin() + std::lround(std::min(1.0, share) * count); };
  const auto train_end = at(r.train), val_end = at(r.train + r.val), test_end = at(r.train + r.val + r.test);
  parts.train.insert(parts.train.end(), nodes.begin(), train_end);
  parts.val.insert(parts.val.end(), train_end, val_end);
  parts.test.insert(parts.test.end(), val_end, test_end);
}

void cut_by_class(const std::vector<NodeId>& nodes, const Dataset& data, const SplitRequest& r, Parts& parts) {
  std::vector<std::vector<NodeId>> of_class(data.num_classes);
  for (const NodeId v : nodes) of_class[data.labels[v]].push_back(v);
  for (const std::vector<NodeId>& members : of_class) cut(members, r, parts);
}

void take_per_class(const std::vector<NodeId>& nodes, const Dataset& data, const SplitRequest& r, Parts& parts) {
  std::vector<int64_t> taken(data.num_classes, 0);
  std::vector<NodeId> others;
  for (const NodeId v : nodes) {
    int64_t& count = taken[data.labels[v]];
    const bool trains = count < static_cast<int64_t>(r.train);
    count += trains ? 1 : 0;
    (trains ? parts.train : others).push_back(v);
  }
  const auto wanted = static_cast<size_t>(r.val + r.test);
  if (others.size() < wanted) {
    throw UserError(kOption,
                    human_count(static_cast<int64_t>(wanted)) + " validation and test nodes are asked for, but only " +
                        human_count(static_cast<int64_t>(others.size())) +
                        " labelled nodes remain beside the training nodes",
                    "ask for fewer");
  }
  const auto val_end = others.begin() + static_cast<int64_t>(r.val);
  parts.val.assign(others.begin(), val_end);
  parts.test.assign(val_end, val_end + static_cast<int64_t>(r.test));
}

Array<NodeId> sorted(std::vector<NodeId> nodes) {
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace

SplitRequest parse_split(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string way = text.substr(0, colon);
  SplitRequest r;
  if (way == "stratified") {
    r.way = SplitRequest::Way::stratified;
  } else if (way == "per-class") {
    r.way = SplitRequest::Way::per_class;
  } else if (way != "random") {
    throw UserError(kOption, "'" + text + "' is not a way to split the nodes", kExamples);
  }
  std::string_view rest = colon == std::string::npos ? "" : std::string_view(text).substr(colon + 1);
  double* const numbers[] = {&r.train, &r.val, &r.test};
  for (int i = 0; i < 3; ++i) {
    const size_t slash = rest.find('/');
    if (!parse_number(rest.substr(0, slash), *numbers[i]) || (slash == std::string_view::npos) != (i == 2))
      throw UserError(kOption, "'" + text + "' does not give three numbers for training, validation and test",
                      kExamples);
    rest = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  }
  r.way == SplitRequest::Way::per_class ? check_counts(r) : check_shares(r);
  if (r.train <= 0) throw UserError(kOption, "leaves no nodes to train on", "let the first number be above 0");
  return r;
}

bool users_and_items(const Dataset& data) {
  if (!data.heterogeneous() || data.num_classes > 0) return false;
  const bool held_out = data.test_edges.size() + data.val_edges.size() > 0;
  return held_out || data.node_types == std::vector<std::string>{"user", "item"};
}

void draw_split(const std::string& text, uint64_t seed, Dataset& data) {
  const SplitRequest r = parse_split(text);
  if (users_and_items(data)) {
    throw UserError(kOption, "divides nodes that have classes, but the data are users and items",
                    "leave it out; the pairs to test on are part of the data (docs/recommend.md)");
  }
  if (data.labels.empty() && !data.multilabel())
    throw UserError(kOption, "divides labelled nodes, but the data have no labels", "give them with --labels FILE");
  if (r.way != SplitRequest::Way::random && data.multilabel())
    throw UserError(kOption, "a node of these data may have several classes at once", "use --split random:…");
  const std::vector<NodeId> nodes = shuffled_nodes(data, seed);
  if (nodes.empty()) throw UserError(kOption, "divides labelled nodes, but no node has a label");
  const bool replaced = !data.splits.train.empty() || !data.splits.val.empty() || !data.splits.test.empty();
  Parts parts;
  if (r.way == SplitRequest::Way::random) {
    cut(nodes, r, parts);
  } else if (r.way == SplitRequest::Way::stratified) {
    cut_by_class(nodes, data, r, parts);
  } else {
    take_per_class(nodes, data, r, parts);
  }
  if (parts.train.empty())
    throw UserError(kOption, "leaves none of the " + human_count(static_cast<int64_t>(nodes.size())) +
                                 " labelled nodes to train on");
  data.splits = {sorted(std::move(parts.train)), sorted(std::move(parts.val)), sorted(std::move(parts.test))};
  data.origins.train = data.origins.val = data.origins.test = {};
  data.notes.push_back(human_count(data.splits.train.size()) + " training, " + human_count(data.splits.val.size()) +
                       " validation and " + human_count(data.splits.test.size()) + " test nodes were drawn (" + text +
                       ", --split-seed " + std::to_string(seed) + ")" +
                       (replaced ? "; the split that the data bring is not used" : ""));
}

}  // namespace nacre
