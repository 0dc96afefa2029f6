// Implements Fennel in batches of vertices. Threads count the neighbours of the vertices of a batch
// by part. Neighbours within the batch are only listed, and counted when the vertices choose, one
// after the other. So every vertex sees what it would see if there were no batches, whatever the
// number of threads.
//
// The objective is cut + α Σ s_p (W_p / s_p)^γ with γ = 1.5, where W_p is the work of part p in
// units of the mean work of a vertex, s_p = k × share of p, and α = m k^(γ-1) / n^γ as in the
// paper. A vertex of work w therefore pays α γ w sqrt(W_p / s_p) in part p.
#include "nacre/partition/fennel.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/partition/refine.h"

namespace nacre {
namespace {

constexpr double kGamma = 1.5;
constexpr uint16_t kNowhere = 0xFFFF;
constexpr int64_t kBatch = 1 << 13;
constexpr int64_t kMostCounters = 1 << 22;  // the most parts × vertices of a batch
constexpr int64_t kFennelChunk = 1 << 8;

struct InBatch {
  uint32_t vertex;  // number of the vertex in its batch
  uint32_t neighbour;
};

class Fennel {
 public:
  Fennel(const Graph& graph, std::span<const double> shares, const PartitionOptions& options)
      : view_(in_view(graph)),
        work_(vertex_work(graph, options)),
        total_(sum_of(work_)),
        balance_(balance_of(total_, shares, options.imbalance)),
        parts_(balance_.parts()),
        batch_(std::max<int64_t>(kFennelChunk, std::min(kBatch, kMostCounters / parts_))),
        part_(view_.count, kNowhere),
        load_(parts_, 0),
        price_(parts_, 0),
        counts_(batch_ * parts_),
        inside_((batch_ + kFennelChunk - 1) / kFennelChunk) {
    const auto vertices = static_cast<double>(std::max<int64_t>(1, view_.count));
    const double edges = static_cast<double>(view_.row_ptr[view_.count]) / (has_all_reverses(graph) ? 2 : 1);
    mean_ = std::max(1.0, static_cast<double>(total_) / vertices);
    alpha_ = edges * std::pow(parts_, kGamma - 1) / std::pow(vertices, kGamma);
  }

  std::vector<uint16_t> run(int passes) {
    Progress progress("partitioning", static_cast<double>(passes) * static_cast<double>(view_.count));
    for (int pass = 0; pass < passes; ++pass) {
      for (int64_t begin = 0; begin < view_.count; begin += batch_) {
        const int64_t end = std::min(view_.count, begin + batch_);
        count(begin, end);
        choose(begin, end);
        progress.update(static_cast<double>(pass) * static_cast<double>(view_.count) + static_cast<double>(end));
      }
    }
    PartDraft draft{view_, work_.data(), balance_, part_.data(), load_};
    rebalance(draft);
    return std::move(part_);
  }

 private:
  void count(int64_t begin, int64_t end) {
    parallel_for(end - begin, kFennelChunk, [&](int64_t b, int64_t e) {
      std::vector<InBatch>& inside = inside_[b / kFennelChunk];
      inside.clear();
      std::fill(counts_.begin() + b * parts_, counts_.begin() + e * parts_, 0);
      for (int64_t i = b; i < e; ++i) {
        uint32_t* counts = &counts_[i * parts_];
        view_.each(begin + i, [&](NodeId u, uint32_t) {
          if (u >= begin && u < end) {
            inside.push_back({static_cast<uint32_t>(i), u});
          } else if (part_[u] != kNowhere) {
            ++counts[part_[u]];
          }
        });
      }
    });
  }

  void choose(int64_t begin, int64_t end) {
    for (int64_t i = 0; i < end - begin; ++i) {
      if (i % kFennelChunk == 0) next_inside_ = 0;
      const std::vector<InBatch>& inside = inside_[i / kFennelChunk];
      for (; next_inside_ < inside.size() && inside[next_inside_].vertex == i; ++next_inside_) {
        const uint16_t p = part_[inside[next_inside_].neighbour];
        if (p != kNowhere) ++counts_[i * parts_ + p];
      }
      place(begin + i, &counts_[i * parts_]);
    }
  }

  void place(int64_t v, const uint32_t* counts) {
    const int64_t work = work_[v];
    if (part_[v] != kNowhere) add_load(part_[v], -work);
    const double weight = static_cast<double>(work) / mean_;
    int best = -1, emptiest = 0;
    double most = 0;
    for (int p = 0; p < parts_; ++p) {
      if (price_[p] < price_[emptiest]) emptiest = p;
      if (load_[p] + work > balance_.high[p]) continue;
      const double score = counts[p] - weight * price_[p];
      if (best >= 0 && score <= most) continue;
      best = p;
      most = score;
    }
    if (best < 0) best = emptiest;
    part_[v] = static_cast<uint16_t>(best);
    add_load(best, work);
  }

  void add_load(int p, int64_t work) {
    load_[p] += work;
    const double share =
        static_cast<double>(balance_.target[p]) * parts_ / static_cast<double>(std::max<int64_t>(1, total_));
    const double load = static_cast<double>(load_[p]) / mean_ / std::max(share, 1e-12);
    price_[p] = alpha_ * kGamma * std::sqrt(load);
  }

  UndirectedView view_;
  Buffer<int64_t> work_;
  int64_t total_;
  Balance balance_;
  int parts_;
  int64_t batch_;
  std::vector<uint16_t> part_;
  std::vector<int64_t> load_;
  std::vector<double> price_;     // price of a vertex of mean work in each part
  std::vector<uint32_t> counts_;  // batch × parts: number of neighbours of each vertex in each part
  std::vector<std::vector<InBatch>> inside_;
  size_t next_inside_ = 0;
  double mean_ = 1;  // mean work of a vertex
  double alpha_ = 0;
};

}  // namespace

std::vector<uint16_t> fennel_parts(const Graph& graph, std::span<const double> shares,
                                   const PartitionOptions& options) {
  return Fennel(graph, shares, options).run(options.passes);
}

int64_t fennel_bytes(const GraphCounts& graph, int parts) {
  // These are, for every vertex, the bytes of its work, its part, and two copies of a candidate,
  // because any vertex might move when the balance is restored.
  const int64_t vertices = graph.nodes * (8 + 2 + 16);
  const int64_t batch = std::max<int64_t>(kFennelChunk, std::min(kBatch, kMostCounters / std::max(1, parts)));
  return vertices + batch * parts * 4 + std::min(graph.edges, batch << 10) * 16;
}

}  // namespace nacre
