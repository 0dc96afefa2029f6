#include "nacre/data/convert/fused_edges.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

class FusedEdges final : public EdgeSource {
 public:
  explicit FusedEdges(const DatasetBuilder& set) : set_(set) {
    for (const DatasetBuilder::TypedInput& input : set.edge_inputs()) {
      const auto source = input.edges.open();
      most_edges_ += source->most_edges();
      total_bytes_ = total_bytes_ < 0 || source->total_bytes() <= 0 ? -1 : total_bytes_ + source->total_bytes();
    }
    find();
  }

  bool next(std::vector<EdgePart>& parts) override {
    if (source_ == nullptr) return false;
    NACRE_CHECK(source_->next(parts), "a source that had not ended has no more edges");
    shift(parts);
    for (const EdgePart& part : parts) read_ += static_cast<int64_t>(part.src.size());
    find();
    return true;
  }

  void skip() override {
    source_->skip();
    skipped_ = true;
    find();
  }

  bool ended() const override { return source_ == nullptr; }
  bool weighted() const override { return false; }
  bool typed() const override { return !set_.plain(); }
  int64_t most_edges() const override { return most_edges_; }
  double total_bytes() const override { return total_bytes_ < 0 ? 0 : total_bytes_; }
  double bytes_done() const override { return bytes_before_ + (source_ == nullptr ? 0 : source_->bytes_done()); }

 private:
  const DatasetBuilder::TypedInput& input() const { return set_.edge_inputs()[at_]; }

  // Moves source_ on to the next input that has edges left, or to null if there is none.
  void find() {
    while (source_ == nullptr || source_->ended()) {
      if (source_ != nullptr) {
        check_count();
        bytes_before_ += source_->bytes_done();
        source_ = nullptr;
        ++at_;
      }
      if (at_ == set_.edge_inputs().size()) return;
      source_ = input().edges.open();
      read_ = 0;
      skipped_ = false;
    }
  }

  // Throws UserError if the input does not have as many edges as the set states. Checks nothing if
  // blocks were skipped, because their edges were not counted.
  void check_count() const {
    const EdgeInput& edges = input().edges;
    if (edges.stated < 0 || edges.stated == read_ || skipped_) return;
    throw UserError(edges.where,
                    "ends after edge " + std::to_string(read_) + ", but the set states " + human_count(edges.stated),
                    "the set is incomplete: fetch it again");
  }

  void shift(std::vector<EdgePart>& parts) {
    const Relation& relation = set_.relations()[input().relation];
    std::atomic<bool> good{true};
    parallel_tasks(static_cast<int64_t>(parts.size()), [&](int64_t i) {
      if (!within(parts[i].src, relation.src_type) || !within(parts[i].dst, relation.dst_type)) good = false;
    });
    if (!good) refuse(parts, relation);
    parallel_tasks(static_cast<int64_t>(parts.size()), [&](int64_t i) {
      EdgePart& part = parts[i];
      add(part.src, set_.offset(relation.src_type));
      add(part.dst, set_.offset(relation.dst_type));
      part.weight.clear();
      part.type.assign(typed() ? part.src.size() : 0, static_cast<uint16_t>(input().relation));
    });
  }

  bool within(const std::vector<NodeId>& ids, int type) const {
    NodeId largest = 0;
    for (const NodeId id : ids) largest = std::max(largest, id);
    return ids.empty() || largest < set_.count(type);
  }

  static void add(std::vector<NodeId>& ids, int64_t offset) {
    for (NodeId& id : ids) id = static_cast<NodeId>(id + offset);
  }

  [[noreturn]] void refuse(const std::vector<EdgePart>& parts, const Relation& relation) const {
    int64_t edge = read_;
    for (const EdgePart& part : parts) {
      for (size_t i = 0; i < part.src.size(); ++i, ++edge) {
        const bool source = part.src[i] >= set_.count(relation.src_type);
        if (!source && part.dst[i] < set_.count(relation.dst_type)) continue;
        // The edges in skipped blocks were not counted, so the number of the edge is unknown then.
        const std::string place =
            skipped_ ? "an edge before byte " + std::to_string(static_cast<int64_t>(source_->bytes_done()))
                     : "edge " + std::to_string(edge);
        throw UserError(input().edges.where,
                        place + " names node " + std::to_string(source ? part.src[i] : part.dst[i]) +
                            ", but its kind has only " +
                            human_count(set_.count(source ? relation.src_type : relation.dst_type)) + " nodes");
      }
    }
    throw InternalError(__FILE__, __LINE__, "reading reported an invalid edge, but none was found");
  }

  const DatasetBuilder& set_;
  size_t at_ = 0;
  std::unique_ptr<EdgeSource> source_;  // source of input at_; null at the end
  int64_t read_ = 0;                    // edges read from this input
  bool skipped_ = false;                // whether blocks of this input were skipped uncounted
  int64_t most_edges_ = 0;
  double total_bytes_ = 0;  // -1 if unknown
  double bytes_before_ = 0;
};

}  // namespace

std::unique_ptr<EdgeSource> fuse_edges(const DatasetBuilder& set) { return std::make_unique<FusedEdges>(set); }

}  // namespace nacre
