#include <algorithm>

#include "nacre/base/parallel.h"
#include "nacre/sample/draw.h"
#include "nacre/sample/saint.h"

namespace nacre {
namespace {

void run_up(std::vector<double>& values) {
  double sum = 0;
  for (double& value : values) value = sum += value;
}

}  // namespace

SaintDraw::SaintDraw(const Graph& graph, const SampleOptions& options)
    : graph_(graph),
      options_(options),
      what_(options.sampler == "saint-walk"   ? What::walks
            : options.sampler == "saint-edge" ? What::edges
                                              : What::vertices) {
  if (what_ == What::vertices) weigh_columns();
  if (what_ == What::edges) weigh_rows();
  run_up(sums_);
}

void SaintDraw::weigh_columns() {
  sums_.assign(graph_.num_nodes(), 0);
  for (int64_t v = 0; v < graph_.num_nodes(); ++v) {
    const double entry = 1 / static_cast<double>(graph_.in_degree(v) + 1);
    sums_[v] += entry * entry;
    for (int64_t e = graph_.row_ptr()[v]; e < graph_.row_ptr()[v + 1]; ++e) {
      sums_[graph_.col_idx()[e]] += entry * entry;
    }
  }
}

double SaintDraw::edge_weight(int64_t dst, int64_t edge) const {
  const int64_t source_degree = std::max<int64_t>(graph_.in_degree(graph_.col_idx()[edge]), 1);
  return 1 / static_cast<double>(graph_.in_degree(dst)) + 1 / static_cast<double>(source_degree);
}

void SaintDraw::weigh_rows() {
  sums_.assign(graph_.num_nodes(), 0);
  parallel_for(graph_.num_nodes(), 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      double sum = 0;
      for (int64_t e = graph_.row_ptr()[v]; e < graph_.row_ptr()[v + 1]; ++e) sum += edge_weight(v, e);
      sums_[v] = sum;
    }
  });
}

int64_t SaintDraw::edge_of_row(int64_t dst, double unit) const {
  const int64_t begin = graph_.row_ptr()[dst], end = graph_.row_ptr()[dst + 1];
  double total = 0;
  for (int64_t e = begin; e < end; ++e) total += edge_weight(dst, e);
  const double mark = unit * total;
  double sum = 0;
  for (int64_t e = begin; e < end; ++e) {
    sum += edge_weight(dst, e);
    if (sum > mark) return e;
  }
  return end - 1;
}

void SaintDraw::vertices(uint64_t key, std::vector<NodeId>& out) const {
  out.clear();
  const auto nodes = static_cast<uint32_t>(graph_.num_nodes());
  const bool edges = what_ == What::edges;
  if (nodes == 0 || (edges && graph_.num_edges() == 0)) return;
  for (int64_t i = 0; i < options_.budget; ++i) {
    const draw::Stream stream{key, draw::place(0, 0), static_cast<uint32_t>(i)};
    PhiloxBlock words = stream.four(0);
    if (what_ == What::walks) {
      NodeId at = draw::below(words[0], nodes);
      out.push_back(at);
      for (int step = 1; step <= options_.walk_length; ++step) {
        if (step % 4 == 0) words = stream.four(static_cast<uint32_t>(step / 4));
        const int64_t degree = graph_.in_degree(at);
        if (degree == 0) break;
        const uint32_t edge = draw::below(words[step % 4], static_cast<uint64_t>(degree));
        at = graph_.col_idx()[graph_.row_ptr()[at] + edge];
        out.push_back(at);
      }
      continue;
    }
    const NodeId v = draw::by_running_sum(sums_.data(), nodes, draw::open_unit(words[0], words[1]));
    out.push_back(v);
    if (edges) out.push_back(graph_.col_idx()[edge_of_row(v, draw::open_unit(words[2], words[3]))]);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

}  // namespace nacre
