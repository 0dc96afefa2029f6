// Rabbit order (Arai, Shiokawa, Yamamuro, Onizuka, Iwamura: IPDPS 2016) on one thread. Vertices
// take turns, those with the fewest edges first; each joins the neighbouring community that
// increases modularity most. The joins form a forest, and a depth-first walk through it numbers the
// vertices, so that every community at every level gets consecutive numbers.
#include <algorithm>
#include <utility>
#include <vector>

#include "nacre/graph/reorder.h"

namespace nacre {
namespace {

constexpr NodeId kNobody = 0xFFFFFFFF;

class Rabbit {
 public:
  explicit Rabbit(const Graph& graph)
      : graph_(graph),
        out_(graph.out()),
        strength_(static_cast<size_t>(graph.num_nodes())),
        leader_(strength_.size()),
        first_child_(strength_.size(), kNobody),
        last_child_(strength_.size(), kNobody),
        next_sibling_(strength_.size(), kNobody),
        links_(strength_.size()),
        weight_(strength_.size(), 0) {
    for (size_t v = 0; v < strength_.size(); ++v) {
      leader_[v] = static_cast<NodeId>(v);
      const auto at = static_cast<int64_t>(v);
      strength_[v] = static_cast<double>(graph.in_degree(at) + out_.row_ptr[at + 1] - out_.row_ptr[at]);
    }
  }

  std::vector<NodeId> run() {
    std::vector<NodeId> turns(strength_.size());
    for (size_t i = 0; i < turns.size(); ++i) turns[i] = static_cast<NodeId>(i);
    std::stable_sort(turns.begin(), turns.end(), [&](NodeId a, NodeId b) { return strength_[a] < strength_[b]; });
    for (const NodeId v : turns) join(v);
    return walk();
  }

 private:
  using Link = std::pair<NodeId, uint32_t>;  // neighbour and number of edges

  NodeId leader(NodeId v) {
    NodeId top = v;
    while (leader_[top] != top) top = leader_[top];
    while (leader_[v] != top) v = std::exchange(leader_[v], top);
    return top;
  }

  void count(NodeId neighbour, uint32_t edges, NodeId self) {
    const NodeId top = leader(neighbour);
    if (top == self) return;
    if (weight_[top] == 0) touched_.push_back(top);
    weight_[top] += edges;
  }

  // Returns the number of edges from the community of `v` to each neighbouring community, each
  // listed once.
  std::vector<Link> links_of(NodeId v) {
    touched_.clear();
    for (int64_t i = graph_.row_ptr()[v]; i < graph_.row_ptr()[v + 1]; ++i) count(graph_.col_idx()[i], 1, v);
    for (int64_t i = out_.row_ptr[v]; i < out_.row_ptr[v + 1]; ++i) count(out_.dst[i], 1, v);
    for (NodeId child = first_child_[v]; child != kNobody; child = next_sibling_[child]) {
      for (const auto& [neighbour, edges] : links_[child]) count(neighbour, edges, v);
      std::vector<Link>().swap(links_[child]);
    }
    std::vector<Link> links;
    links.reserve(touched_.size());
    for (const NodeId u : touched_) links.emplace_back(u, std::exchange(weight_[u], 0));
    return links;
  }

  // Joins the community of v to the neighbour with the largest gain, or leaves it alone if no gain
  // is positive. Among equal gains, the lowest number wins.
  void join(NodeId v) {
    links_[v] = links_of(v);
    const auto ends = 2.0 * static_cast<double>(graph_.num_edges());
    double best_gain = 0;
    NodeId best = kNobody;
    for (const auto& [u, edges] : links_[v]) {
      const double gain = static_cast<double>(edges) - strength_[v] * strength_[u] / ends;
      if (gain > best_gain || (gain == best_gain && best != kNobody && u < best)) {
        best_gain = gain;
        best = u;
      }
    }
    if (best == kNobody) return;
    leader_[v] = best;
    strength_[best] += strength_[v];
    if (first_child_[best] == kNobody) {
      first_child_[best] = v;
    } else {
      next_sibling_[last_child_[best]] = v;
    }
    last_child_[best] = v;
  }

  std::vector<NodeId> walk() const {
    std::vector<NodeId> order;
    order.reserve(leader_.size());
    std::vector<NodeId> stack;
    for (size_t root = 0; root < leader_.size(); ++root) {
      if (leader_[root] != root) continue;
      stack.push_back(static_cast<NodeId>(root));
      while (!stack.empty()) {
        const NodeId v = stack.back();
        stack.pop_back();
        order.push_back(v);
        // The sibling goes below the children on the stack, so it is visited after them.
        if (next_sibling_[v] != kNobody) stack.push_back(next_sibling_[v]);
        if (first_child_[v] != kNobody) stack.push_back(first_child_[v]);
      }
    }
    return order;
  }

  const Graph& graph_;
  const OutCsc& out_;
  std::vector<double> strength_;  // number of edge ends at each community
  std::vector<NodeId> leader_;
  std::vector<NodeId> first_child_;
  std::vector<NodeId> last_child_;
  std::vector<NodeId> next_sibling_;
  // links_[v] is set when v takes its turn. If v joins another community, the links stay here until
  // that community takes its turn and gathers them.
  std::vector<std::vector<Link>> links_;
  std::vector<uint32_t> weight_;
  std::vector<NodeId> touched_;
};

}  // namespace

Array<NodeId> rabbit_order(const Graph& graph) { return Rabbit(graph).run(); }

}  // namespace nacre
