#include "nacre/data/convert/stream.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/data/checksum.h"
#include "nacre/data/convert/edge_source.h"
#include "nacre/data/convert/feature_file.h"
#include "nacre/data/convert/fits.h"
#include "nacre/data/convert/fused_edges.h"
#include "nacre/data/convert/merge.h"
#include "nacre/data/convert/notes.h"
#include "nacre/data/convert/partial.h"
#include "nacre/data/convert/progress.h"
#include "nacre/data/convert/write.h"
#include "nacre/data/external_sort.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/made_features.h"
#include "nacre/data/native.h"
#include "nacre/data/native_floats.h"
#include "nacre/data/node_data.h"
#include "nacre/data/validate.h"

namespace nacre {
namespace {

using native::Element;
using native::OpenSection;
using native::SectionEntry;

std::string file_identity(const std::string& path) {
  struct stat status {};
  if (path.empty() || stat(path.c_str(), &status) != 0) return path;
  return fmt::format("{} {} {}.{:09}", std::filesystem::absolute(path).string(), status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

// Returns a text that changes if the file is changed or, for a folder, if any file in it is.
std::string place_identity(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return file_identity(path);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(file_identity(entry.path().string()));
  }
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::string& file : files) all += file + "\n";
  return fmt::format("{} {} files {:016x}", std::filesystem::absolute(path).string(), files.size(),
                     checksum64(all.data(), static_cast<int64_t>(all.size())));
}

// Returns all that decides what the converted file will hold, as one text.
std::string identity_of(const std::string& source, const ConvertOptions& o) {
  const nlohmann::json identity = {{"convert", native::kVersion},
                                   {"source", place_identity(source)},
                                   {"features", file_identity(o.load.features_file)},
                                   {"labels", file_identity(o.load.labels_file)},
                                   {"splits", file_identity(o.load.splits_file)},
                                   {"format", o.load.format},
                                   {"num_nodes", o.load.num_nodes},
                                   {"seed", o.load.seed},
                                   {"undirected", o.load.undirected},
                                   {"self_loops", o.self_loops},
                                   {"reorder", reorder_name(o.reorder)},
                                   {"feature_dtype", native::float_name(o.feature_type)}};
  return identity.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Says whether every edge gets a reverse edge, and of which type the reverse of each edge type is.
// If `type` is empty, a reverse edge has the type of its edge.
struct Reversing {
  bool both = false;
  std::vector<uint16_t> type;
  int64_t copies() const { return both ? 2 : 1; }
};

bool is_edge_array(const std::string& source, const std::string& format) {
  return std::filesystem::is_regular_file(source) && (format.empty() || format == "npy") &&
         MappedFile::open(source)->starts_with("\x93NUMPY");
}

template <class Edge>
void pack(const EdgePart& part, int64_t from, int64_t count, const Reversing& reversing, Edge* to) {
  const bool both = reversing.both;
  for (int64_t i = 0; i < count; ++i) {
    const NodeId src = part.src[from + i];
    const NodeId dst = part.dst[from + i];
    if constexpr (std::is_same_v<Edge, RichEdge>) {
      const float weight = part.weight.empty() ? 1.0F : part.weight[from + i];
      const uint16_t type = part.type.empty() ? uint16_t{0} : part.type[from + i];
      *to++ = {edge_key(src, dst), weight, type, 0};
      const uint16_t back = reversing.type.empty() ? type : reversing.type[type];
      if (both) *to++ = {edge_key(dst, src), weight, back, 1};
    } else {
      *to++ = {edge_key(src, dst)};
      if (both) *to++ = {edge_key(dst, src)};
    }
  }
}

class StreamConversion {
 public:
  StreamConversion(std::string source, const std::string& path, const ConvertOptions& options,
                   std::optional<DatasetBuilder> set)
      : source_name_(std::move(source)),
        path_(path),
        o_(options),
        set_(std::move(set)),
        source_(open_edges()),
        folder_(path, identity_of(source_name_, options)),
        earlier_(read_earlier(folder_.earlier())),
        writer_([this](int64_t offset, const void* data, int64_t bytes) { folder_.write_at(offset, data, bytes); }) {}

  ConvertReport run() {
    try {
      report_.streamed = true;
      prepare();
      write_graph();
      write_features();
      write_rest();
      const int64_t bytes = writer_.finish();
      if (o_.reorder == Reorder::none) {
        folder_.commit(bytes);
      } else {
        reorder();
      }
      return report_;
    } catch (const UserError&) {
      folder_.discard();  // continuing cannot help if the source is wrong
      throw;
    }
  }

 private:
  std::unique_ptr<EdgeSource> open_edges() const {
    if (set_) return fuse_edges(*set_);
    const auto file = MappedFile::open(source_name_);
    return file->starts_with("\x93NUMPY") ? open_edge_npy(file) : open_edge_text(file);
  }

  // Decides which edges are reversed and which relations the file has. Throws UserError for what
  // cannot work, before the work begins.
  void prepare() {
    reversing_.both = o_.load.undirected;
    if (!set_) return;
    for (const DatasetBuilder::TypedInput& input : set_->edge_inputs()) {
      reversing_.both = reversing_.both || input.edges.both_ways;
      NACRE_CHECK(!input.edges.both_ways || set_->plain(),
                  "edges between kinds of nodes cannot stand for both directions");
    }
    relations_ = set_->relations();
    if (!set_->plain() && o_.load.undirected) relations_ = with_reverses(relations_, reversing_.type, source_name_);
    check_set(*set_, source_name_, o_);
  }

  void write_graph() {
    if (adopt_graph()) return;
    if (source_->weighted() || source_->typed()) {
      sort_and_merge<RichEdge>();
    } else {
      sort_and_merge<PlainEdge>();
    }
  }

  bool adopt_graph() {
    if (!earlier_.graph_done) return false;
    for (const SectionEntry& section : earlier_.graph) {
      if (checksum_of(section.offset, static_cast<int64_t>(section.bytes)).value() != section.checksum) return false;
    }
    for (const SectionEntry& section : earlier_.graph) writer_.adopt(section);
    at_ = earlier_.source;
    merged_ = earlier_.merged;
    count_vertices();
    return true;
  }

  // Returns the checksum of some bytes of the file that is being written, or of fewer bytes if the
  // file is shorter.
  Checksum64 checksum_of(uint64_t offset, int64_t bytes) const {
    Checksum64 sum;
    std::vector<char> piece(std::min<int64_t>(bytes, 16 << 20));
    for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(piece.size())) {
      const int64_t count = std::min<int64_t>(bytes - at, static_cast<int64_t>(piece.size()));
      if (!folder_.read_at(static_cast<int64_t>(offset) + at, piece.data(), count)) break;
      sum.update(piece.data(), count);
    }
    return sum;
  }

  // Returns how many edges may be held at once. The edges and the room to sort them get most of the
  // memory; text, threads and tables get the rest.
  template <class Edge>
  int64_t capacity() const {
    const int64_t copies = reversing_.copies();
    const auto usable = static_cast<int64_t>(0.8 * static_cast<double>(o_.memory)) - (int64_t{36} << 20);
    int64_t most = usable / (2 * static_cast<int64_t>(sizeof(Edge)));
    if (o_.most_in_run > 0) most = std::min(most, o_.most_in_run);
    return std::max<int64_t>(2, std::min(most, source_->most_edges() * copies));
  }

  template <class Edge>
  void sort_and_merge() {
    ExternalSort<Edge> sort(folder_.path("runs"), capacity<Edge>());
    for (const auto& [run, progressed] : earlier_.runs) {
      if (!sort.adopt(run)) break;
      at_ = progressed;
    }
    read_source(sort);
    report_.runs = sort.num_runs();
    sort.finish();
    count_vertices();
    MergeOptions m;
    m.num_nodes = vertices_;
    m.merge_duplicates = o_.load.undirected;
    m.by_type = set_ && !set_->plain();
    m.self_loops = o_.self_loops;
    m.loop_type = static_cast<uint16_t>(at_.largest_type + 1);
    m.weighted = source_->weighted();
    m.typed = source_->typed();
    m.count_unused = o_.load.num_nodes == 0 && !set_;
    m.memory = o_.memory;
    m.weight_file = folder_.path("weight");
    m.type_file = folder_.path("type");
    std::vector<SectionEntry> sections;
    merged_ = merge_to_sections(sort, m, writer_, sections);
    for (const SectionEntry& section : sections) folder_.note(section_entry(section));
    folder_.note(graph_entry(merged_, at_));
  }

  template <class Edge>
  void read_source(ExternalSort<Edge>& sort) {
    for (int64_t i = 0; i < at_.block; ++i) source_->skip();
    Progress progress("reading", source_->total_bytes());
    const double start = now_seconds();
    const int64_t before = at_.edges;
    std::vector<EdgePart> parts;
    while (source_->next(parts)) {
      take(parts, sort);
      const double rate = static_cast<double>(at_.edges - before) / (now_seconds() - start);
      progress.update(source_->bytes_done(), fmt::format("{} edges, {:.1f} M/s", human_count(at_.edges), rate / 1e6));
    }
  }

  template <class Edge>
  void take(const std::vector<EdgePart>& parts, ExternalSort<Edge>& sort) {
    std::vector<int64_t> begin(parts.size() + 1, 0);
    for (size_t i = 0; i < parts.size(); ++i) begin[i + 1] = begin[i] + static_cast<int64_t>(parts[i].src.size());
    const int64_t copies = reversing_.copies();
    while (at_.consumed < begin.back()) {
      const int64_t count = std::min(begin.back() - at_.consumed, sort.room() / copies);
      if (count == 0) {
        const SortedRun run = sort.spill();
        folder_.note(run_entry(run, at_));
        continue;
      }
      Edge* to = sort.take(count * copies);
      const int64_t from = at_.consumed;
      parallel_tasks(static_cast<int64_t>(parts.size()), [&](int64_t i) {
        const int64_t b = std::max(begin[i], from);
        const int64_t e = std::min(begin[i + 1], from + count);
        if (b < e) pack(parts[i], b - begin[i], e - b, reversing_, to + (b - from) * copies);
      });
      at_.consumed += count;
      at_.edges += count;
    }
    note_largest(parts);
    ++at_.block;
    at_.consumed = 0;
  }

  // Records the largest id and the largest type in a whole block. If a run ends within the block,
  // its entry in the journal lacks them, but a later process reads that block again.
  void note_largest(const std::vector<EdgePart>& parts) {
    std::vector<std::pair<int64_t, int64_t>> found(parts.size(), {-1, -1});
    parallel_tasks(static_cast<int64_t>(parts.size()), [&](int64_t i) {
      NodeId id = 0;
      for (const std::vector<NodeId>* ids : {&parts[i].src, &parts[i].dst}) {
        for (const NodeId v : *ids) id = std::max(id, v);
      }
      if (!parts[i].src.empty()) found[i].first = id;
      for (const uint16_t t : parts[i].type) found[i].second = std::max<int64_t>(found[i].second, t);
    });
    for (const auto& [id, type] : found) {
      at_.largest_id = std::max(at_.largest_id, id);
      at_.largest_type = std::max(at_.largest_type, type);
    }
  }

  void count_vertices() {
    if (set_) {
      vertices_ = set_->num_nodes();
      edge_types_ = std::max(1, static_cast<int>(set_->plain() ? 1 : relations_.size()));
      return;
    }
    if (at_.edges == 0 && o_.load.num_nodes == 0) {
      throw UserError(source_name_, "holds no edges",
                      "check that it is an edge list; for a graph without edges give --num-nodes");
    }
    vertices_ = o_.load.num_nodes > 0 ? o_.load.num_nodes : at_.largest_id + 1;
    if (vertices_ > kMaxNodeId + 1) throw UserError(source_name_, "has more than 4,294,967,295 nodes");
    if (o_.load.num_nodes == 0) check_vertex_count(vertices_, at_.edges, source_name_);
    if (at_.largest_id >= vertices_) {
      throw UserError(source_name_, "an edge names node " + std::to_string(at_.largest_id) + ", but there are only " +
                                        std::to_string(vertices_) + " nodes");
    }
    edge_types_ = static_cast<int>(std::max<int64_t>(1, at_.largest_type + 1));
    if (source_->typed() && o_.self_loops) {
      if (edge_types_ == kMaxEdgeTypes)
        throw UserError(
            "self loops",
            "the loops need an edge type of their own, but the graph already has the most possible, 65,535");
      ++edge_types_;
    }
  }

  void write_features() {
    if (!o_.load.features_file.empty()) {
      const auto rows = open_feature_rows(o_.load.features_file, vertices_);
      if (!rows) return;  // read_rest() reads the file with the other node files
      write_section("features", *rows, o_.load.features_file);
      features_written_ = true;
    }
    if (!set_) return;
    for (int k = 0; k < set_->num_types(); ++k) {
      const std::optional<FeatureInput>& input = set_->feature_inputs()[k];
      if (!input) continue;
      const std::string name = set_->num_types() == 1 ? "features" : "features." + std::to_string(k);
      write_section(name, input->stream ? input->stream(set_->count(k)) : native::rows_of(input->read()), input->where);
      has_features_ = true;
    }
  }

  void write_section(const std::string& name, const native::RowSource& rows, const std::string& where) {
    const Element stored = o_.reorder == Reorder::none ? o_.feature_type : Element::f32;
    if (adopt_section(name)) return;
    OpenSection section = writer_.open(name, stored, {rows.rows, rows.columns});
    const int64_t row_bytes = rows.columns * native::element_size(stored);
    native::RowsTo to{.where = where, .stored = stored};
    const int64_t known = std::exchange(earlier_.feature_rows, 0);
    if (earlier_.graph_done && known > 0) {
      Checksum64 sum = checksum_of(static_cast<uint64_t>(section.offset), known * row_bytes);
      if (sum.value() == earlier_.feature_checksum) {
        section.sum = std::move(sum);
        to.begin = known;
      }
    }
    Progress progress("features", static_cast<double>(rows.rows));
    const double start = now_seconds();
    int64_t marked = to.begin;
    to.mark = [&](int64_t done) {
      if ((done - marked) * row_bytes >= o_.mark_bytes) {
        folder_.note(rows_entry(done, section.sum.value()));
        marked = done;
      }
      const double rate = static_cast<double>((done - to.begin) * row_bytes) / (now_seconds() - start);
      progress.update(static_cast<double>(done), human_bytes(rate) + "/s");
    };
    append_rows(writer_, section, rows, to);
    folder_.note(section_entry(writer_.close(section)));
  }

  // Takes over section `name` if an earlier process has finished it, and returns whether it did. An
  // earlier process finished sections in the order in which they are asked for here.
  bool adopt_section(const std::string& name) {
    if (!earlier_.graph_done || adopted_ >= earlier_.features.size()) return false;
    const SectionEntry& section = earlier_.features[adopted_];
    const bool whole = section.name == name &&
                       checksum_of(section.offset, static_cast<int64_t>(section.bytes)).value() == section.checksum;
    if (whole) {
      writer_.adopt(section);
      ++adopted_;
    } else {
      earlier_.features.clear();
      earlier_.feature_rows = 0;
    }
    return whole;
  }

  // Reads labels, splits and everything else that belongs to vertices.
  Dataset read_rest() {
    Dataset data = set_ ? set_->finish_rest() : Dataset();
    if (set_ && !set_->plain()) data.relations = relations_;
    LoadOptions files = o_.load;
    if (features_written_) files.features_file.clear();
    if (!files.features_file.empty() || !files.labels_file.empty() || !files.splits_file.empty()) {
      // The files beside the set are read with a graph that has this many vertices and no edges.
      GraphArrays none;
      none.num_src = none.num_dst = vertices_;
      none.row_ptr = std::vector<int64_t>(static_cast<size_t>(vertices_ + 1), 0);
      data.graph = Graph(std::move(none), source_name_);
      read_node_files(files, data);
    }
    validate_beside_graph(data, {vertices_, edge_types_}, source_name_);
    if (data.name.empty())
      data.name =
          std::filesystem::is_directory(source_name_) ? DataSource(source_name_).name() : data_set_name(source_name_);
    return data;
  }

  void write_rest() {
    Dataset data = read_rest();
    has_features_ = has_features_ || features_written_ || data.features.defined();
    const std::vector<std::string> own = notes();
    data.notes.insert(data.notes.end(), own.begin(), own.end());
    NativeOptions n{.feature_type = o_.reorder == Reorder::none ? o_.feature_type : Element::f32,
                    .conversion = conversion_json(source_name_, o_),
                    .where = source_name_,
                    .vertices = vertices_,
                    .edge_types = edge_types_};
    if (data.features.defined()) native::write_features(writer_, data, n);
    report_.notes = data.notes;
    report_.vertices = vertices_;
    report_.edges = merged_.edges;
    native::write_rest(writer_, data, n);
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes = source_->notes();
    if (merged_.unused > vertices_ / 2) notes.push_back(unused_note(merged_.unused, vertices_));
    if (o_.load.undirected) {
      notes.push_back("made undirected: " + human_count(at_.edges * (stored_once() ? 2 : 1)) + " edges became " +
                      human_count(merged_.edges - merged_.loops_added));
    }
    if (o_.self_loops) notes.push_back(loops_note(merged_.loops_added));
    if (o_.reorder == Reorder::none) add_type_note(o_, has_features_, notes);
    return notes;
  }

  bool stored_once() const { return set_ && !set_->edge_inputs().empty() && set_->edge_inputs()[0].edges.both_ways; }

  // Writes DST with its vertices in the new order. By now, the whole data set lies in the folder,
  // in its original order.
  void reorder() {
    ConvertOptions rest;
    rest.memory = o_.memory;
    rest.reorder = o_.reorder;
    rest.feature_type = o_.feature_type;
    const Dataset data = read_native(folder_.path("data"), false);
    const ConvertReport report = write_converted(data, path_, conversion_json(source_name_, o_), rest);
    report_.notes = report.notes;
    folder_.discard();
  }

  std::string source_name_;
  std::string path_;
  const ConvertOptions& o_;
  // The data set that the source holds; nothing if the source is only a list of edges.
  std::optional<DatasetBuilder> set_;
  std::unique_ptr<EdgeSource> source_;
  PartialFolder folder_;
  Earlier earlier_;
  native::Writer writer_;
  Progressed at_;
  MergeResult merged_;
  int64_t vertices_ = 0;
  int edge_types_ = 1;
  Reversing reversing_;
  std::vector<Relation> relations_;  // relations of the written file
  size_t adopted_ = 0;               // number of adopted sections of features
  bool features_written_ = false;    // whether features of a file beside the source were written
  bool has_features_ = false;
  ConvertReport report_;
};

}  // namespace

std::optional<ConvertReport> stream_convert(const std::string& source, const std::string& path,
                                            const ConvertOptions& options) {
  std::error_code error;
  if (!options.stream || source.starts_with("twin:") || !std::filesystem::exists(source, error)) return std::nullopt;
  const LoadOptions& load = options.load;
  if (!load.split.empty() || load.ignore_edge_weights || is_made_features(load.features_file)) return std::nullopt;
  std::optional<DatasetBuilder> set;
  if (!is_edge_array(source, options.load.format)) {
    const DataSource data_source(source);
    const Choice choice = choose_format(data_source, options.load.format);
    if (choice.format->open != nullptr) set = choice.format->open(data_source, choice.variant, options.load);
    if (!set && std::string_view(choice.format->name) != "edges") return std::nullopt;
    if (!set && has_word_ids(data_source.file())) return std::nullopt;
  }
  return StreamConversion(source, path, options, std::move(set)).run();
}

}  // namespace nacre
