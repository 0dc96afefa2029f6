#include "nacre/data/native.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "data/fixtures.h"
#include "nacre/base/pending_file.h"
#include "nacre/data/checksum.h"
#include "nacre/data/mapped_file.h"
#include "nacre/data/native_floats.h"
#include "nacre/data/native_layout.h"

namespace nacre {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

Dataset sample(bool rich, bool multilabel) {
  EdgeList edges;
  edges.num_nodes = 5;
  edges.src = {0, 1, 2, 0, 3, 3};
  edges.dst = {1, 2, 0, 3, 3, 3};
  if (rich) {
    edges.weight = {1, 2, 3, 4, 5, 6};
    edges.type = {0, 1, 0, 2, 1, 1};
    edges.num_types = 3;
  }
  Dataset d;
  d.name = "sample";
  d.graph = build_graph(std::move(edges), "test");
  if (!rich) return d;
  d.notes = {"first note", "second note"};
  d.features = Tensor(DType::f32, {5, 3});
  for (int i = 0; i < 15; ++i) d.features.data<float>()[i] = static_cast<float>(i) / 4;
  if (multilabel) {
    d.targets = Tensor(DType::u8, {5, 2});
    for (int i = 0; i < 10; ++i) d.targets.data<uint8_t>()[i] = i % 3 == 0 ? 1 : 0;
    d.num_classes = 2;
  } else {
    d.labels = std::vector<int32_t>{0, 1, 2, 1, -1};
    d.num_classes = 3;
  }
  d.splits = {std::vector<NodeId>{3, 0}, std::vector<NodeId>{1}, std::vector<NodeId>{2}};
  return d;
}

std::string bytes_of(const Dataset& d) {
  const TempDir dir;
  write_native(d, dir.path("a.nacre"));
  EXPECT_EQ(dir.files(), std::vector<std::string>{"a.nacre"});
  return read_bytes(dir.path("a.nacre"));
}

Dataset load(const std::string& bytes, bool verify) { return read_native(in_memory(bytes, "a.nacre"), verify); }

// Recomputes the checksum of the header, as a careful forger would.
std::string resealed(std::string bytes) {
  const uint64_t sum = native::header_checksum(bytes.data());
  std::memcpy(bytes.data() + offsetof(native::FileHeader, checksum), &sum, 8);
  return bytes;
}

TEST(Native, RoundTrip) {
  for (const bool rich : {false, true}) {
    for (const bool multilabel : {false, true}) {
      const Dataset d = sample(rich, multilabel);
      const TempDir dir;
      write_native(d, dir.path("a.nacre"));
      for (const bool verify : {false, true}) {
        const Dataset back = read_native(dir.path("a.nacre"), verify);
        EXPECT_EQ(back.fingerprint(), d.fingerprint());
        EXPECT_EQ(back.name, d.name);
        EXPECT_EQ(back.notes, d.notes);
        EXPECT_EQ(back.multilabel(), d.multilabel());
        EXPECT_EQ(back.bytes(), d.bytes());
        // The mapping is private, so writing to a tensor never changes the file.
        if (rich) const_cast<Dataset&>(back).features.data<float>()[0] = 99;
      }
      EXPECT_EQ(read_native(dir.path("a.nacre"), true).fingerprint(), d.fingerprint());
      // Overwrites the file while it is mapped.
      const Dataset mapped = read_native(dir.path("a.nacre"), false);
      write_native(mapped, dir.path("a.nacre"));
      EXPECT_EQ(read_native(dir.path("a.nacre"), true).fingerprint(), d.fingerprint());
      EXPECT_EQ(mapped.fingerprint(), d.fingerprint());
    }
  }
}

Dataset two_kinds() {
  Dataset d = sample(true, false);
  d.features = {};
  d.node_types = {"user", "item"};
  d.node_offsets = {0, 3, 5};
  d.relations = {};
  d.type_features = {Tensor(DType::f32, {3, 2}), Tensor()};
  for (int i = 0; i < 6; ++i) d.type_features[0].data<float>()[i] = static_cast<float>(i);
  d.test_edges = {std::vector<NodeId>{0, 1}, std::vector<NodeId>{3, 4}, {}};
  d.node_names = {"a", "b", "c", "d", "e e"};
  return d;
}

TEST(Native, KindsAndNames) {
  Dataset d = two_kinds();
  const Dataset back = load(bytes_of(d), true);
  EXPECT_EQ(back.fingerprint(), d.fingerprint());
  EXPECT_EQ(back.node_types, d.node_types);
  EXPECT_EQ(back.node_offsets, d.node_offsets);
  EXPECT_EQ(back.node_names, d.node_names);
  ASSERT_EQ(back.type_features.size(), 2u);
  EXPECT_FALSE(back.type_features[1].defined());
  EXPECT_EQ(back.test_edges.size(), 2);
  d = sample(true, false);
  d.original_ids = std::vector<int64_t>{50, 40, 30, 20, 10};
  EXPECT_EQ(load(bytes_of(d), true).original_ids[4], 10);
}

TEST(Native, NarrowFeatures) {
  const Dataset d = sample(true, false);
  for (const auto type : {native::Element::bf16, native::Element::f16}) {
    const TempDir dir;
    write_native(d, dir.path("a.nacre"), {.feature_type = type});
    const Dataset back = read_native(dir.path("a.nacre"), true);
    EXPECT_EQ(back.fingerprint(), d.fingerprint()) << "quarters are exact";
    verify_native(MappedFile::open(dir.path("a.nacre")));
    const NativeContents contents = native_contents(MappedFile::open(dir.path("a.nacre")));
    EXPECT_EQ(contents.version, 2u);
    EXPECT_EQ(contents.sections[4].name, "features");
    EXPECT_EQ(contents.sections[4].bytes, 30);
    Dataset large = sample(true, false);
    large.features = Tensor(DType::f32, {5, 3});
    std::fill_n(large.features.data<float>(), 15, type == native::Element::f16 ? 65520.0F : 3.4e38F);
    EXPECT_USER_ERROR(write_native(large, dir.path("b.nacre"), {.feature_type = type}),
                      "feature 0 of node 0 is too large");
    EXPECT_EQ(dir.files(), std::vector<std::string>{"a.nacre"});
  }
}

TEST(Native, HalvesRoundToTheNearestEven) {
  // Every half rounds to itself; the middle of two rounds to the even one.
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = native::widen(native::Element::f16, half);
    EXPECT_EQ(native::narrow(native::Element::f16, value), half);
    EXPECT_EQ(native::narrow(native::Element::f16, -value), half | 0x8000);
    if (bits + 1 == 0x7C00) break;
    const float next = native::widen(native::Element::f16, static_cast<uint16_t>(bits + 1));
    const float middle = value + (next - value) / 2;
    EXPECT_EQ(native::narrow(native::Element::f16, middle), bits + (bits & 1));
    EXPECT_EQ(native::narrow(native::Element::f16, std::nextafter(middle, 1e9F)), bits + 1);
    EXPECT_EQ(native::narrow(native::Element::f16, std::nextafter(middle, -1e9F)), bits);
  }
  EXPECT_EQ(native::narrow(native::Element::f16, 65519.0F), 0x7BFF);
  EXPECT_EQ(native::narrow(native::Element::f16, 65520.0F), 0x7C00);
  EXPECT_EQ(native::narrow(native::Element::bf16, 1.00390625F), 0x3F80);
  EXPECT_EQ(native::narrow(native::Element::bf16, 1.01171875F), 0x3F82);
}

TEST(Native, SameDataSameBytes) { EXPECT_EQ(bytes_of(sample(true, false)), bytes_of(sample(true, false))); }

TEST(Native, SectionsArePageAligned) {
  const TempDir dir;
  write_native(sample(true, false), dir.path("a.nacre"));
  const Dataset d = read_native(dir.path("a.nacre"), true);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(d.features.raw()) % 4096, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(d.graph.col_idx().data()) % 4096, 0u);
}

TEST(Native, TruncatedAnywhere) {
  const std::string bytes = bytes_of(sample(true, false));
  for_each_truncation(bytes, [](const std::string& cut, size_t n) {
    if (n > 5000 && n % 61 != 0) return;  // within a page, nothing new can happen
    EXPECT_FALSE(survives([&] { load(cut, n % 2 == 0); }, "cut at " + std::to_string(n))) << n;
  });
  EXPECT_FALSE(survives([&] { load(bytes + "x", true); }, "longer"));
}

TEST(Native, EveryFlippedBitIsNoticed) {
  const std::string bytes = bytes_of(sample(true, false));
  for (size_t i = 0; i < bytes.size(); i += i < 1400 ? 1 : 7) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    EXPECT_FALSE(survives([&] { load(damaged, true); }, "byte " + std::to_string(i))) << i;
    survives([&] { load(damaged, false); }, "byte " + std::to_string(i));
  }
}

TEST(Native, ForgedHeaders) {
  const MemoryLimit limit;
  const std::string bytes = bytes_of(sample(true, true));
  for_each_flip(bytes.substr(0, 1400), [&](const std::string& head, size_t at) {
    const std::string forged = resealed(head + bytes.substr(head.size()));
    survives([&] { load(forged, false); }, "byte " + std::to_string(at));
    survives([&] { load(forged, true); }, "byte " + std::to_string(at));
  });
}

TEST(Native, DamageIsNamed) {
  const std::string bytes = bytes_of(sample(true, false));
  EXPECT_USER_ERROR(load("", true), "is not a Nacre data set");
  EXPECT_USER_ERROR(load(bytes.substr(0, 100), true), "header is cut off");
  EXPECT_USER_ERROR(load(bytes.substr(0, 5000), true), "bytes long");
  std::string newer = bytes;
  newer[8] = 3;
  EXPECT_USER_ERROR(load(newer, true), "format version 3");
  std::string last = bytes;
  last.back() = static_cast<char>(last.back() ^ 1);
  EXPECT_USER_ERROR(load(last, true), "section 'notes'");
  EXPECT_USER_ERROR(load(last, true), "at offset ");
  EXPECT_USER_ERROR(verify_native(in_memory(last, "a.nacre")), "section 'notes'");
  std::string gap = bytes;
  gap[2 * 4096 - 1] = 1;
  EXPECT_USER_ERROR(load(gap, true), "are not zero");
  std::string many = bytes;
  many[12] = 100;
  EXPECT_USER_ERROR(load(resealed(many), true), "too many sections");
}

// Files whose checksums are right but whose contents are wrong.
TEST(Native, WrongContents) {
  const auto refused = [](const Dataset& d, const std::string& text) {
    const std::string bytes = bytes_of(d);
    EXPECT_USER_ERROR(load(bytes, true), text);
  };
  Dataset d = sample(true, false);
  d.labels = std::vector<int32_t>{0, 1, 2, 3, 0};
  refused(d, "has class 3");
  d = sample(true, false);
  d.labels = std::vector<int32_t>{0, 1};
  refused(d, "labels have 2 rows");
  d = sample(true, false);
  d.splits.val = std::vector<NodeId>{7};
  refused(d, "names node 7");
  d = sample(true, false);
  d.features.data<float>()[4] = -1.0F / 0.0F;
  refused(d, "feature 1 of node 1");
  d = sample(true, true);
  d.targets.data<uint8_t>()[4] = 2;
  refused(d, "0 or 1");
  d = sample(true, true);
  d.num_classes = 3;
  refused(d, "2 columns");
  GraphArrays unsorted = sample(false, false).graph.arrays();
  unsorted.col_idx = std::vector<NodeId>{2, 0, 1, 3, 0, 3};
  d.graph = Graph(unsorted, "test");
  refused(d, "not sorted");
}

TEST(Native, FailedWritesLeaveNothing) {
  const TempDir dir;
  const Dataset d = sample(true, false);
  EXPECT_USER_ERROR(write_native(d, dir.path("absent/a.nacre")), "cannot be written");
  std::filesystem::create_directory(dir.path("folder.nacre"));
  EXPECT_THROW(write_native(d, dir.path("folder.nacre")), RuntimeError);
  EXPECT_EQ(dir.files(), std::vector<std::string>{"folder.nacre"});
  // A failure half way leaves the old file unchanged.
  write_native(sample(false, false), dir.path("a.nacre"));
  Dataset broken = d;
  broken.targets = Tensor(DType::i32, {5, 2});
  EXPECT_THROW(write_native(broken, dir.path("a.nacre")), InternalError);
  EXPECT_EQ(dir.files(), (std::vector<std::string>{"a.nacre", "folder.nacre"}));
  EXPECT_EQ(read_native(dir.path("a.nacre"), true).fingerprint(), sample(false, false).fingerprint());
}

TEST(Checksum, NoticesEveryWordAndTheLength) {
  std::string bytes((1 << 20) + 77, 'a');
  const uint64_t sum = checksum64(bytes.data(), static_cast<int64_t>(bytes.size()));
  for (size_t i = 0; i < bytes.size(); i += 1009) {
    bytes[i] ^= 4;
    EXPECT_NE(checksum64(bytes.data(), static_cast<int64_t>(bytes.size())), sum) << i;
    bytes[i] ^= 4;
  }
  for (const int64_t piece : {1000, 1 << 19, 1 << 20, 3 << 19}) {
    Checksum64 pieces;
    for (int64_t at = 0; at < static_cast<int64_t>(bytes.size()); at += piece) {
      pieces.update(bytes.data() + at, std::min(piece, static_cast<int64_t>(bytes.size()) - at));
    }
    EXPECT_EQ(pieces.value(), sum) << piece;
  }
  for (int64_t n = 0; n < 300; ++n) {
    EXPECT_NE(checksum64(std::string(n, '\0').data(), n), checksum64(std::string(n + 1, '\0').data(), n + 1));
  }
}

TEST(Native, ClassesWithoutLabelsAreDamage) {
  const TempDir dir;
  Dataset d = sample(true, false);
  ASSERT_GT(d.num_classes, 0);
  d.labels = {};
  write_native(d, dir.path("a.nacre"));
  EXPECT_USER_ERROR(verify_native(MappedFile::open(dir.path("a.nacre"))), "classes, but has no labels");
  EXPECT_USER_ERROR(read_native(dir.path("a.nacre"), false), "classes, but has no labels");
}

// If another program makes the file shorter while it is read, the system sends SIGBUS.
TEST(MappedFileDeathTest, SaysSoWhenAFileIsCutShortWhileItIsRead) {
  const TempDir dir;
  const std::string path = dir.path("cut.nacre");
  const auto read_after_the_cut = [&] {
    guard_mapped_files();
    write_file(path, std::string(1 << 16, 'x'));
    const auto file = MappedFile::open(path);
    const PendingFile half(dir.path("half"));
    std::filesystem::resize_file(path, 0);
    volatile auto byte = file->bytes()[1 << 15];
    (void)byte;
  };
  EXPECT_EXIT(read_after_the_cut(), testing::ExitedWithCode(1), "cut.nacre: was cut short by another program");
  EXPECT_EQ(dir.files().size(), 1U) << "nothing is left of what was being written";
}

}  // namespace
}  // namespace nacre
