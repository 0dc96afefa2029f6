#include "nacre/data/convert/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <fstream>
#include <memory>
#include <type_traits>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

using native::Element;
using native::OpenSection;

constexpr int64_t kWidest = 1 << 20;  // most destinations of one range
// Number of ranges that are merged in parallel and then written in order.
constexpr int64_t kRangesAtOnce = 32;
constexpr int64_t kCopyBytes = 8 << 20;  // bytes of a scratch file that are copied at a time

// A set of the vertices that have an edge. Threads set bits in any order with the same result.
class UsedVertices {
 public:
  explicit UsedVertices(int64_t vertices)
      : words_(static_cast<size_t>((vertices + 63) / 64)), bits_(std::make_unique<std::atomic<uint64_t>[]>(words_)) {}

  void set(NodeId v) {
    std::atomic<uint64_t>& word = bits_[v / 64];
    const uint64_t bit = uint64_t{1} << (v % 64);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
  }
  int64_t count() const {
    int64_t sum = 0;
    for (size_t i = 0; i < words_; ++i) sum += std::popcount(bits_[i].load());
    return sum;
  }

 private:
  size_t words_;
  std::unique_ptr<std::atomic<uint64_t>[]> bits_;
};

// The rows and edges of the graph that come from one range of keys.
struct RangeRows {
  std::vector<NodeId> col;
  std::vector<float> weight;
  std::vector<uint16_t> type;
  // For every row that begins in the range, its first position in `col`.
  std::vector<int64_t> row_start;
  int64_t loops_added = 0;

  void clear() {
    col.clear();
    weight.clear();
    type.clear();
    row_start.clear();
    loops_added = 0;
  }
};

template <class Edge>
class RangeMerger {
 public:
  RangeMerger(const MergeOptions& options, UsedVertices* used, RangeRows& out) : o_(options), used_(used), out_(out) {}

  void run(uint64_t begin, uint64_t end, const std::vector<Edge>& edges) {
    constexpr uint64_t below_one = 0xFFFFFFFF;
    row_ = (begin + below_one) >> 32;
    row_end_ = (end + below_one) >> 32;
    loop_ = row_ > 0 && loop_key(row_ - 1) >= begin ? row_ - 1 : row_;
    end_ = end;
    out_.clear();
    for (size_t i = 0; i < edges.size();) {
      size_t next = i + 1;
      size_t kept = i;
      if (o_.merge_duplicates) {
        while (next < edges.size() && edges[next].key == edges[i].key) ++next;
        kept = first_of(edges, i, next);
      }
      if (o_.merge_duplicates && o_.by_type) {
        each_type(edges, i, next);
        i = next;
        continue;
      }
      if (used_ != nullptr) mark(edges[i].key);
      loops_before(edges[kept].key);
      emit(edges[kept]);
      i = next;
    }
    loops_before(end);
    rows_until(end - 1);
  }

 private:
  static uint64_t loop_key(uint64_t v) { return v << 32 | v; }

  static size_t first_of(const std::vector<Edge>& edges, size_t begin, size_t end) {
    if constexpr (std::is_same_v<Edge, RichEdge>) {
      for (size_t i = begin; i < end; ++i) {
        if (edges[i].reversed == 0) return i;
      }
    }
    return std::min(begin, end);
  }

  // Emits the first edge of every type among the edges of one key.
  void each_type(const std::vector<Edge>& edges, size_t begin, size_t end) {
    if constexpr (std::is_same_v<Edge, RichEdge>) {
      group_.assign(edges.begin() + static_cast<int64_t>(begin), edges.begin() + static_cast<int64_t>(end));
      std::stable_sort(group_.begin(), group_.end(), [](const Edge& a, const Edge& b) { return a.type < b.type; });
      for (size_t i = 0; i < group_.size(); ++i) {
        if (i == 0 || group_[i].type != group_[i - 1].type) emit(group_[i]);
      }
    } else {
      emit(edges[std::min(begin, end)]);
    }
  }

  void mark(uint64_t key) {
    used_->set(src_of(key));
    used_->set(dst_of(key));
  }

  // Adds the missing self loops that come before `key` in the order of keys. If `key` is the key of
  // a self loop, that loop is not missing.
  void loops_before(uint64_t key) {
    if (!o_.self_loops) return;
    for (; loop_key(loop_) < key && loop_key(loop_) < end_; ++loop_) {
      put(loop_key(loop_), 1.0F, o_.loop_type);
      ++out_.loops_added;
    }
    if (loop_key(loop_) == key) ++loop_;
  }

  void emit(const Edge& edge) {
    if constexpr (std::is_same_v<Edge, RichEdge>) {
      put(edge.key, edge.weight, edge.type);
    } else {
      put(edge.key, 1.0F, 0);
    }
  }

  void put(uint64_t key, float weight, uint16_t type) {
    rows_until(key);
    out_.col.push_back(src_of(key));
    if (o_.weighted) out_.weight.push_back(weight);
    if (o_.typed) out_.type.push_back(type);
  }

  void rows_until(uint64_t key) {
    for (; row_ < row_end_ && row_ << 32 <= key; ++row_)
      out_.row_start.push_back(static_cast<int64_t>(out_.col.size()));
  }

  const MergeOptions& o_;
  UsedVertices* used_;
  RangeRows& out_;
  std::vector<Edge> group_;
  uint64_t row_ = 0;  // the next row to begin
  uint64_t row_end_ = 0;
  uint64_t loop_ = 0;  // the next vertex that may need a loop
  uint64_t end_ = 0;
};

// A column that is kept in a scratch file until its section can be written.
class Scratch {
 public:
  void open(const std::string& path) {
    path_ = path;
    out_.open(path, std::ios::binary | std::ios::trunc);
  }
  void append(const void* data, size_t bytes) {
    out_.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    if (!out_) throw RuntimeError(path_, "cannot be written");
  }
  void copy_to(native::Writer& writer, OpenSection& section) {
    out_.close();
    std::ifstream in(path_, std::ios::binary);
    std::vector<char> piece(kCopyBytes);
    while (in.read(piece.data(), kCopyBytes), in.gcount() > 0) writer.append(section, piece.data(), in.gcount());
  }

 private:
  std::string path_;
  std::ofstream out_;
};

template <class Edge>
class Merger {
 public:
  Merger(const ExternalSort<Edge>& sorted, const MergeOptions& options, native::Writer& writer)
      : sorted_(sorted),
        o_(options),
        writer_(writer),
        rows_(kRangesAtOnce),
        rooms_(static_cast<size_t>(num_threads())) {
    if (o_.count_unused) used_ = std::make_unique<UsedVertices>(o_.num_nodes);
    if (o_.weighted) weight_.open(o_.weight_file);
    if (o_.typed) type_.open(o_.type_file);
  }

  MergeResult run(std::vector<native::SectionEntry>& sections) {
    OpenSection row_ptr = writer_.open("row_ptr", Element::i64, {o_.num_nodes + 1});
    OpenSection col_idx = writer_.open("col_idx", Element::u32, {0});
    const int64_t about = o_.memory >= (512 << 20) ? 1 << 16 : 1 << 14;
    const auto ranges = sorted_.ranges(about, kWidest, static_cast<uint64_t>(o_.num_nodes) << 32);
    Progress progress("grouping", static_cast<double>(sorted_.size()));
    int64_t done = 0;
    for (size_t first = 0; first < ranges.size(); first += kRangesAtOnce) {
      const size_t count = std::min<size_t>(kRangesAtOnce, ranges.size() - first);
      parallel_tasks(static_cast<int64_t>(count), [&](int64_t i) { merge(ranges[first + i], rows_[i]); });
      write(count, row_ptr, col_idx);
      for (size_t i = first; i < first + count; ++i) done += ranges[i].count;
      progress.update(static_cast<double>(done), fmt::format("{} edges", human_count(result_.edges)));
    }
    writer_.append(row_ptr, &result_.edges, 8);
    sections.push_back(writer_.close(row_ptr));
    sections.push_back(writer_.close(col_idx));
    if (o_.weighted && result_.edges > 0) close_scratch(weight_, "edge_weight", Element::f32, sections);
    if (o_.typed && result_.edges > 0) close_scratch(type_, "edge_type", Element::u16, sections);
    if (used_) result_.unused = o_.num_nodes - used_->count();
    return result_;
  }

 private:
  struct Room {
    std::vector<Edge> edges;
    std::vector<Edge> scratch;
  };

  void merge(const typename ExternalSort<Edge>::Range& range, RangeRows& out) {
    Room& room = rooms_[thread_index()];
    sorted_.read(range, room.edges, room.scratch);
    RangeMerger<Edge>(o_, used_.get(), out).run(range.begin, range.end, room.edges);
  }

  void write(size_t count, OpenSection& row_ptr, OpenSection& col_idx) {
    starts_.clear();
    cols_.clear();
    for (size_t i = 0; i < count; ++i) {
      RangeRows& rows = rows_[i];
      for (const int64_t start : rows.row_start) starts_.push_back(result_.edges + start);
      cols_.insert(cols_.end(), rows.col.begin(), rows.col.end());
      if (o_.weighted) weight_.append(rows.weight.data(), rows.weight.size() * 4);
      if (o_.typed) type_.append(rows.type.data(), rows.type.size() * 2);
      result_.edges += static_cast<int64_t>(rows.col.size());
      result_.loops_added += rows.loops_added;
    }
    writer_.append(row_ptr, starts_.data(), static_cast<int64_t>(starts_.size() * 8));
    writer_.append(col_idx, cols_.data(), static_cast<int64_t>(cols_.size() * 4));
  }

  void close_scratch(Scratch& scratch, const char* name, Element element, std::vector<native::SectionEntry>& sections) {
    OpenSection section = writer_.open(name, element, {result_.edges});
    scratch.copy_to(writer_, section);
    sections.push_back(writer_.close(section));
  }

  const ExternalSort<Edge>& sorted_;
  const MergeOptions& o_;
  native::Writer& writer_;
  std::vector<RangeRows> rows_;
  std::vector<Room> rooms_;  // one for each thread
  std::unique_ptr<UsedVertices> used_;
  Scratch weight_;
  Scratch type_;
  std::vector<int64_t> starts_;
  std::vector<NodeId> cols_;
  MergeResult result_;
};

}  // namespace

template <class Edge>
MergeResult merge_to_sections(const ExternalSort<Edge>& sorted, const MergeOptions& options, native::Writer& writer,
                              std::vector<native::SectionEntry>& sections) {
  return Merger<Edge>(sorted, options, writer).run(sections);
}

template MergeResult merge_to_sections(const ExternalSort<PlainEdge>&, const MergeOptions&, native::Writer&,
                                       std::vector<native::SectionEntry>&);
template MergeResult merge_to_sections(const ExternalSort<RichEdge>&, const MergeOptions&, native::Writer&,
                                       std::vector<native::SectionEntry>&);

}  // namespace nacre
