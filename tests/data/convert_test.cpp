#include "nacre/data/convert/convert.h"

#include <sys/resource.h>

#include <csignal>

#include "data/fixtures.h"
#include "nacre/base/parallel.h"
#include "nacre/data/convert/partial.h"
#include "nacre/data/external_sort.h"
#include "nacre/data/native.h"
#include "nacre/data/native_floats.h"
#include "support/rng.h"

namespace nacre {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

// Returns edges with duplicates, loops and a hub. `extra` further columns are a weight, or a weight
// and a type.
std::string edge_text(int edges, int nodes, int extra, uint64_t seed = 1) {
  Rng rng(seed);
  std::string text = extra == 2 ? "src,dst,weight,type\n" : "# a comment\n";
  for (int i = 0; i < edges; ++i) {
    const int64_t src = rng.below(nodes);
    const int64_t dst = i % 5 == 0 ? 3 : i % 7 == 0 ? src : rng.below(nodes);
    text += std::to_string(src) + (extra == 2 ? "," : "\t") + std::to_string(dst);
    if (extra >= 1) text += (extra == 2 ? "," : " ") + std::to_string(i % 1000) + ".5";
    if (extra == 2) text += "," + std::to_string(i % 3);
    text += i % 11 == 0 ? "\r\n" : "\n";
  }
  return text;
}

// Returns every section of a file except the texts about the file.
std::string bytes_of(const std::string& path) {
  const auto file = MappedFile::open(path);
  verify_native(file);
  std::string bytes;
  for (const NativeSection& s : native_contents(file).sections) {
    if (s.name == "notes" || s.name == "name") continue;
    bytes += s.name + shape_text(s.shape);
    bytes.append(reinterpret_cast<const char*>(file->bytes().data()) + s.offset, static_cast<size_t>(s.bytes));
  }
  return bytes;
}

ConvertOptions small_runs(int64_t most) {
  ConvertOptions options;
  options.memory = kLeastConvertMemory;
  options.most_in_run = most;
  return options;
}

TEST(ExternalSort, StableWhateverTheRuns) {
  const TempDir dir;
  for (const int64_t capacity : {7, 100, 5000, 300000}) {
    const std::string file = dir.path("runs" + std::to_string(capacity));
    ExternalSort<RichEdge> sort(file, capacity);
    Rng rng(4);
    std::vector<RichEdge> all;
    const int64_t count = capacity < 1000 ? 3000 : 120000;
    for (int64_t i = 0; i < count; ++i) {
      const auto dst = static_cast<NodeId>(i % 3 == 0 ? 9 : rng.below(60000));
      all.push_back({edge_key(static_cast<NodeId>(rng.below(4)), dst), static_cast<float>(i), 0, 0});
      if (sort.room() == 0) sort.spill();
      *sort.take(1) = all.back();
    }
    sort.finish();
    EXPECT_EQ(sort.size(), count);
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    std::vector<RichEdge> edges;
    std::vector<RichEdge> scratch;
    size_t at = 0;
    uint64_t end = 0;
    for (const auto& range : sort.ranges(2000, 1 << 14, uint64_t{60000} << 32)) {
      EXPECT_EQ(range.begin, end);
      end = range.end;
      sort.read(range, edges, scratch);
      for (const RichEdge& edge : edges) {
        ASSERT_EQ(edge.key, all[at].key) << at;
        ASSERT_EQ(edge.weight, all[at].weight) << at;
        ++at;
      }
    }
    EXPECT_EQ(at, all.size());
    EXPECT_EQ(end, uint64_t{60000} << 32);
  }
}

TEST(ExternalSort, AdoptsOnlyWholeRuns) {
  const TempDir dir;
  std::vector<SortedRun> runs;
  {
    ExternalSort<PlainEdge> sort(dir.path("runs"), 1000);
    for (int r = 0; r < 3; ++r) {
      PlainEdge* to = sort.take(1000);
      for (uint64_t i = 0; i < 1000; ++i) to[i].key = (i * 7919 + 13) % 5003;
      runs.push_back(sort.spill());
    }
  }
  std::string bytes = read_bytes(dir.path("runs"));
  bytes[8 * 1000 + 77] ^= 1;
  dir.write("runs", bytes);
  ExternalSort<PlainEdge> again(dir.path("runs"), 300);
  EXPECT_TRUE(again.adopt(runs[0]));
  EXPECT_FALSE(again.adopt(runs[1])) << "damaged";
  EXPECT_FALSE(again.adopt(runs[2])) << "not the next";
  EXPECT_EQ(again.size(), 1000);
}

// For every combination of options, streaming gives the same bytes as reading everything into
// memory.
TEST(Convert, StreamsToWhatMemoryHolds) {
  const TempDir dir;
  for (const int extra : {0, 1, 2}) {
    const std::string source = dir.write("e" + std::to_string(extra) + ".txt", edge_text(3000, 200, extra));
    for (const int options : {0, 1, 2, 3}) {
      ConvertOptions o = small_runs(options == 0 ? 100000 : 500);
      o.load.undirected = (options & 1) != 0;
      o.self_loops = (options & 2) != 0;
      set_num_threads(1 + options);
      const ConvertReport streamed = convert_dataset(source, dir.path("s.nacre"), o);
      EXPECT_TRUE(streamed.streamed);
      EXPECT_GE(streamed.runs, options == 0 ? 0 : 5);
      o.stream = false;
      const ConvertReport whole = convert_dataset(source, dir.path("m.nacre"), o);
      EXPECT_FALSE(whole.streamed);
      EXPECT_EQ(bytes_of(dir.path("s.nacre")), bytes_of(dir.path("m.nacre"))) << extra << " " << options;
      EXPECT_EQ(streamed.notes, whole.notes);
      EXPECT_EQ(read_native(dir.path("s.nacre"), true).name, "e" + std::to_string(extra));
    }
  }
}

TEST(Convert, ArraysOfEdges) {
  const TempDir dir;
  Rng rng(8);
  std::vector<int64_t> src;
  std::vector<int64_t> dst;
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    src.push_back(rng.below(90));
    dst.push_back(rng.below(90));
    text += std::to_string(src.back()) + " " + std::to_string(dst.back()) + "\n";
  }
  convert_dataset(dir.write("text.txt", text), dir.path("text.nacre"), {});
  const uint64_t expected = read_native(dir.path("text.nacre"), true).fingerprint();
  std::vector<int64_t> rows = src;
  rows.insert(rows.end(), dst.begin(), dst.end());
  std::vector<int64_t> pairs;
  std::vector<int32_t> short_pairs;
  std::string swapped;
  for (size_t i = 0; i < src.size(); ++i) {
    for (const int64_t v : {src[i], dst[i]}) {
      pairs.push_back(v);
      short_pairs.push_back(static_cast<int32_t>(v));
      std::string bytes = raw({v});
      std::reverse(bytes.begin(), bytes.end());
      swapped += bytes;
    }
  }
  const std::pair<const char*, std::string> files[] = {
      {"rows.npy", npy({"<i8", "(2, 2000)"}, raw(rows))},
      {"columns.npy", npy({"<i8", "(2000, 2)"}, raw(pairs))},
      {"fortran.npy", npy({"<i8", "(2, 2000)", true}, raw(pairs))},
      {"fortran2.npy", npy({"<i8", "(2000, 2)", true}, raw(rows))},
      {"short.npy", npy({"<i4", "(2000, 2)"}, raw(short_pairs))},
      {"swapped.npy", npy({">i8", "(2000, 2)"}, swapped)},
  };
  for (const auto& [name, bytes] : files) {
    convert_dataset(dir.write(name, bytes), dir.path("a.nacre"), small_runs(300));
    EXPECT_EQ(read_native(dir.path("a.nacre"), true).fingerprint(), expected) << name;
  }
  pairs[17] = -4;
  EXPECT_USER_ERROR(
      convert_dataset(dir.write("bad.npy", npy({"<i8", "(2000, 2)"}, raw(pairs))), dir.path("b.nacre"), {}),
      "edge 8 names node -4");
  const std::string flat = dir.write("flat.npy", npy_i64({1, 2, 3}));
  EXPECT_USER_ERROR(convert_dataset(flat, dir.path("b.nacre"), {}), "edges are [2, E] or [E, 2]");
  const std::string real = dir.write("real.npy", npy_f32({1, 2}, "(1, 2)"));
  EXPECT_USER_ERROR(convert_dataset(real, dir.path("b.nacre"), {}), "whole numbers");
  for (const std::string& name : dir.files()) EXPECT_FALSE(name.starts_with("b.nacre")) << name;
}

TEST(Convert, UglyGraphs) {
  const TempDir dir;
  ConvertOptions o;
  o.self_loops = true;
  EXPECT_USER_ERROR(convert_dataset(dir.write("empty.txt", "# nothing\n"), dir.path("a.nacre"), o), "holds no edges");
  o.load.num_nodes = 3'000'000;  // several ranges without an edge
  for (const bool stream : {true, false}) {
    o.stream = stream;
    const ConvertReport report = convert_dataset(dir.write("one.txt", "2999999 5\n"), dir.path("a.nacre"), o);
    EXPECT_EQ(report.edges, 3'000'001);
    EXPECT_EQ(read_native(dir.path("a.nacre"), true).graph.in_degree(5), 2);
  }
  o.load.num_nodes = 4;
  EXPECT_USER_ERROR(convert_dataset(dir.path("one.txt"), dir.path("b.nacre"), o), "only 4 nodes");
  o = {};
  EXPECT_EQ(convert_dataset(dir.write("loop.txt", "0 0\n0 0\n"), dir.path("a.nacre"), o).edges, 2);
  o.load.undirected = true;
  EXPECT_EQ(convert_dataset(dir.path("loop.txt"), dir.path("a.nacre"), o).edges, 1);
  EXPECT_USER_ERROR(convert_dataset(dir.write("bad.txt", "0 1\n1 x\n"), dir.path("b.nacre"), o), "bad.txt:2");
  o.memory = 1 << 20;
  EXPECT_USER_ERROR(convert_dataset(dir.path("loop.txt"), dir.path("b.nacre"), o), "--memory");
  for (const std::string& name : dir.files()) EXPECT_FALSE(name.starts_with("b.nacre")) << name;
}

TEST(Convert, FeaturesOfEveryKind) {
  const TempDir dir;
  const std::string edges = dir.write("e.txt", edge_text(400, 50, 0));
  std::vector<float> x(50 * 3);
  std::vector<uint16_t> halves(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i) / 8 - 4;
    halves[i] = native::narrow(native::Element::f16, x[i]);
  }
  std::vector<double> doubles(x.begin(), x.end());
  const std::pair<const char*, std::string> files[] = {{"x.npy", npy_f32(x, "(50, 3)")},
                                                       {"h.npy", npy({"<f2", "(50, 3)"}, raw(halves))},
                                                       {"d.npy", npy({"<f8", "(50, 3)"}, raw(doubles))},
                                                       {"x.bin", raw(x)}};
  ConvertOptions o = small_runs(64);
  for (const auto& [name, bytes] : files) {
    o.load.features_file = dir.write(name, bytes);
    for (const auto type : {native::Element::f32, native::Element::bf16, native::Element::f16}) {
      for (const Reorder reorder : {Reorder::none, Reorder::degree}) {
        o.feature_type = type;
        o.reorder = reorder;
        convert_dataset(edges, dir.path("a.nacre"), o);
        const Dataset d = read_native(dir.path("a.nacre"), true);
        ASSERT_EQ(d.features.size(), 150) << name;
        for (int64_t i = 0; i < 150; ++i) {
          const int64_t v = reorder == Reorder::none ? i / 3 : d.original_ids[i / 3];
          EXPECT_EQ(d.features.data<float>()[i], x[v * 3 + i % 3]) << name << i;
        }
      }
    }
  }
  x[100] = std::numeric_limits<float>::quiet_NaN();
  o.load.features_file = dir.write("nan.npy", npy_f32(x, "(50, 3)"));
  EXPECT_USER_ERROR(convert_dataset(edges, dir.path("b.nacre"), o), "feature 1 of node 33 is not finite");
  o.load.features_file = dir.write("short.npy", npy_f32({1, 2}, "(2, 1)"));
  EXPECT_USER_ERROR(convert_dataset(edges, dir.path("b.nacre"), o), "features have 2 rows");
  o.load.features_file = dir.write("odd.bin", "123");
  EXPECT_USER_ERROR(convert_dataset(edges, dir.path("b.nacre"), o), "no whole number");
}

TEST(Convert, ReorderedIsTheSameDataSet) {
  const TempDir dir;
  const std::string edges = dir.write("e.txt", edge_text(900, 80, 2));
  std::string labels;
  std::string splits;
  for (int v = 0; v < 80; ++v) {
    labels += std::to_string(v % 4) + "\n";
    splits += v % 3 == 0 ? "train\n" : v % 3 == 1 ? "val\n" : "none\n";
  }
  ConvertOptions o = small_runs(100);
  o.load.labels_file = dir.write("y.txt", labels);
  o.load.splits_file = dir.write("s.txt", splits);
  convert_dataset(edges, dir.path("plain.nacre"), o);
  const Dataset plain = read_native(dir.path("plain.nacre"), true);
  for (const Reorder how : {Reorder::degree, Reorder::rcm, Reorder::rabbit}) {
    o.reorder = how;
    o.stream = true;
    convert_dataset(edges, dir.path("a.nacre"), o);
    o.stream = false;
    convert_dataset(edges, dir.path("m.nacre"), o);
    EXPECT_EQ(bytes_of(dir.path("a.nacre")), bytes_of(dir.path("m.nacre")));
    const Dataset d = read_native(dir.path("a.nacre"), true);
    ASSERT_EQ(d.original_ids.size(), 80);
    std::vector<NodeId> order(d.original_ids.begin(), d.original_ids.end());
    EXPECT_EQ(permuted(plain.graph, order, inverse_order(order)).fingerprint(), d.graph.fingerprint());
    for (int64_t v = 0; v < 80; ++v) EXPECT_EQ(d.labels[v], d.original_ids[v] % 4);
    ASSERT_EQ(d.splits.train.size(), plain.splits.train.size());
    for (const NodeId v : d.splits.train) EXPECT_EQ(d.original_ids[v] % 3, 0);
  }
  EXPECT_EQ(dir.files().size(), 6u) << "nothing is left behind";
}

// As long as the object lives, files cannot grow beyond a size, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(uint64_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit old_limit_{};
  void (*old_handler_)(int) = nullptr;
};

TEST(Convert, GoesOnWhereItStopped) {
  const TempDir dir;
  const std::string source = dir.write("e.txt", edge_text(20000, 500, 1));
  ConvertOptions o = small_runs(2000);
  o.load.undirected = true;
  o.load.features_file = dir.write("x.npy", npy({"<f4", "(500, 800)"}, std::string(500 * 800 * 4, '\0')));
  convert_dataset(source, dir.path("whole.nacre"), o);
  const std::string expected = read_bytes(dir.path("whole.nacre"));
  int64_t most_entries = 0;
  for (const uint64_t limit : {20000, 200000, 500000, 630000, 900000, 1700000}) {
    {
      const FullDisk disk(limit);
      EXPECT_THROW(convert_dataset(source, dir.path("a.nacre"), o), RuntimeError) << limit;
    }
    EXPECT_FALSE(std::filesystem::exists(dir.path("a.nacre")));
    const std::string journal = read_bytes(dir.path("a.nacre.partial/journal"));
    most_entries = std::max<int64_t>(most_entries, std::count(journal.begin(), journal.end(), '\n'));
    if (limit == 500000) continue;  // the conversion is stopped twice, at different places
    convert_dataset(source, dir.path("a.nacre"), o);
    EXPECT_EQ(read_bytes(dir.path("a.nacre")), expected) << limit;
    EXPECT_FALSE(std::filesystem::exists(dir.path("a.nacre.partial")));
    std::filesystem::remove(dir.path("a.nacre"));
  }
  EXPECT_GT(most_entries, 20) << "runs and sections";
}

TEST(Convert, FeaturesGoOnWhereTheyStopped) {
  const TempDir dir;
  const std::string source = dir.write("e.txt", "0 1\n1 2\n");
  std::string x(int64_t{3} * 3'000'000 * 4, '\0');  // more than one step of rows
  for (size_t i = 0; i < x.size(); i += 4096) x[i] = static_cast<char>(i >> 12 & 0x3F);
  ConvertOptions o;
  o.mark_bytes = 1;
  o.load.features_file = dir.write("x.npy", npy({"<f4", "(3, 3000000)"}, x));
  convert_dataset(source, dir.path("whole.nacre"), o);
  {
    const FullDisk disk(30 << 20);
    EXPECT_THROW(convert_dataset(source, dir.path("a.nacre"), o), RuntimeError);
  }
  const std::string journal = read_bytes(dir.path("a.nacre.partial/journal"));
  EXPECT_NE(journal.find(" rows 2 "), std::string::npos) << journal;
  convert_dataset(source, dir.path("a.nacre"), o);
  EXPECT_EQ(read_bytes(dir.path("a.nacre")), read_bytes(dir.path("whole.nacre")));
}

TEST(Convert, AnotherSourceStartsAnew) {
  const TempDir dir;
  const std::string source = dir.write("e.txt", edge_text(20000, 500, 1));
  const ConvertOptions o = small_runs(2000);
  {
    const FullDisk disk(200000);
    EXPECT_THROW(convert_dataset(source, dir.path("a.nacre"), o), RuntimeError);
  }
  dir.write("e.txt", edge_text(20000, 500, 1, 77));
  convert_dataset(source, dir.path("a.nacre"), o);
  convert_dataset(source, dir.path("b.nacre"), o);
  EXPECT_EQ(read_bytes(dir.path("a.nacre")), read_bytes(dir.path("b.nacre")));
}

TEST(PartialFolder, CountsOnlyWholeEntriesOfTheSameConversion) {
  const TempDir dir;
  const std::string target = dir.path("a.nacre");
  {
    PartialFolder folder(target, "one");
    EXPECT_TRUE(folder.earlier().empty());
    EXPECT_USER_ERROR(PartialFolder(target, "one"), "another process");
    folder.note("first");
    folder.note("second");
  }
  const std::string journal = target + ".partial/journal";
  const std::string bytes = read_bytes(journal);
  EXPECT_EQ(PartialFolder(target, "one").earlier(), (std::vector<std::string>{"first", "second"}));
  for (size_t cut = 1; cut < 24; ++cut) {
    dir.write("a.nacre.partial/journal", bytes.substr(0, bytes.size() - cut));
    EXPECT_EQ(PartialFolder(target, "one").earlier(), std::vector<std::string>{"first"}) << cut;
  }
  std::string damaged = bytes;
  damaged[25] ^= 1;
  dir.write("a.nacre.partial/journal", damaged);
  EXPECT_TRUE(PartialFolder(target, "one").earlier().empty());
  PartialFolder(target, "one").note("first");
  EXPECT_TRUE(PartialFolder(target, "two").earlier().empty()) << "other options";
  EXPECT_TRUE(PartialFolder(target, "one").earlier().empty()) << "and the old ones are forgotten";
}

}  // namespace
}  // namespace nacre
