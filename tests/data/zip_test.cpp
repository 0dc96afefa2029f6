#include "nacre/data/zip.h"

#include "data/fixtures.h"

namespace nacre {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

std::string contents(const ZipArchive& archive, const std::string& name, int64_t step = 7) {
  const ZipEntry* entry = archive.find(name);
  if (entry == nullptr) throw UserError("test", "no member " + name);
  const auto stream = archive.open(*entry);
  std::string bytes;
  std::string piece(static_cast<size_t>(step), '\0');
  for (int64_t n = step; n == step;) {
    n = stream->read(piece.data(), step);
    bytes.append(piece, 0, static_cast<size_t>(n));
  }
  return bytes;
}

void read_all(const std::string& bytes) {
  const ZipArchive archive(in_memory(bytes, "a.zip"));
  for (const ZipEntry& entry : archive.entries()) contents(archive, entry.name);
}

std::string patterned(size_t n) {
  std::string text(n, '\0');
  for (size_t i = 0; i < n; ++i) text[i] = static_cast<char>((i * 31 + i / 7) % 251);
  return text;
}

TEST(Zip, EveryKindOfMember) {
  const std::string a = patterned(1000);
  const std::string b = patterned(3);
  for (const bool end64 : {false, true}) {
    for (const bool member64 : {false, true}) {
      for (const bool descriptor : {false, true}) {
        const std::string bytes = zip({{"a", a, Pack::deflated, member64, descriptor},
                                       {"b", b, Pack::stored, member64, descriptor},
                                       {"empty", "", Pack::deflated, member64, descriptor},
                                       {"nothing", "", Pack::stored, member64, descriptor}},
                                      {"a comment", end64});
        const ZipArchive archive(in_memory(bytes));
        ASSERT_EQ(archive.entries().size(), 4u);
        for (const int64_t step : {1, 7, 4096}) {
          EXPECT_EQ(contents(archive, "a", step), a);
          EXPECT_EQ(contents(archive, "b", step), b);
          EXPECT_EQ(contents(archive, "empty", step), "");
          EXPECT_EQ(contents(archive, "nothing", step), "");
        }
        EXPECT_EQ(archive.find("c"), nullptr);
      }
    }
  }
}

TEST(Zip, AnEmptyArchive) { EXPECT_TRUE(ZipArchive(in_memory(zip({}))).entries().empty()); }

TEST(Zip, CommentsThatLookLikeTheEnd) {
  const std::string comment = std::string("PK\x05\x06") + std::string(30, 'x');
  EXPECT_EQ(contents(ZipArchive(in_memory(zip({{"a", "hello"}}, {comment}))), "a"), "hello");
}

TEST(Zip, TruncatedAnywhere) {
  for (const bool end64 : {false, true}) {
    const std::string bytes = zip({{"a", patterned(200)}, {"b", patterned(50), Pack::stored}}, {"", end64});
    for_each_truncation(bytes, [](const std::string& cut, size_t n) {
      EXPECT_FALSE(survives([&] { read_all(cut); }, "cut at " + std::to_string(n))) << n;
    });
  }
}

TEST(Zip, DamagedAnywhere) {
  const std::string a = patterned(200);
  const std::string b = patterned(50);
  for (const bool zip64 : {false, true}) {
    const std::string bytes = zip({{"a", a, Pack::deflated, zip64}, {"b", b, Pack::stored, zip64}}, {"", zip64});
    for_each_flip(bytes, [&](const std::string& damaged, size_t at) {
      survives(
          [&] {
            const ZipArchive archive(in_memory(damaged));
            // What is handed out is right, whatever happened to the rest.
            for (const auto& [name, expected] : {std::pair("a", a), {"b", b}}) {
              EXPECT_TRUE(archive.find(name) == nullptr || contents(archive, name) == expected) << at;
            }
          },
          "byte " + std::to_string(at));
    });
  }
}

TEST(Zip, LiesAboutSizes) {
  const MemoryLimit limit;
  const std::string zeros(100'000, '\0');
  Member m{"a", zeros};
  for (const int64_t claim : {0, 1, 99'999, 100'001}) {
    m.claimed_size = claim;
    EXPECT_FALSE(user_error([&] { read_all(zip({m})); }).empty()) << claim;
  }
  m.zip64 = true;
  for (const int64_t claim : {INT64_C(1) << 40, INT64_MAX}) {
    m.claimed_size = claim;
    EXPECT_USER_ERROR(read_all(zip({m})), "impossible size");
  }
  Member stored{"a", "hello", Pack::stored};
  stored.claimed_size = 4;
  EXPECT_USER_ERROR(read_all(zip({stored})), "impossible size");
}

TEST(Zip, WrongChecksum) {
  for (const Pack pack : {Pack::stored, Pack::deflated}) {
    Member m{"a", "hello", pack};
    m.crc_change = 1;
    EXPECT_USER_ERROR(read_all(zip({m})), "checksum");
    m.bytes.clear();
    EXPECT_USER_ERROR(read_all(zip({m})), "checksum");
  }
}

TEST(Zip, RefusedMembers) {
  Member encrypted{"a", "hello"};
  encrypted.flags = 1;
  EXPECT_USER_ERROR(read_all(zip({encrypted})), "encrypted");
  Member lzma{"a", "hello"};
  lzma.method = 14;
  EXPECT_USER_ERROR(read_all(zip({lzma})), "method 14");
  EXPECT_USER_ERROR(read_all(zip({{"a", "1"}, {"a", "2"}})), "two members");
  EXPECT_USER_ERROR(read_all(zip({{"a\nb", "1"}})), "control characters");
}

TEST(Zip, OverlappingMembers) {
  // Both directory entries name the first local header.
  std::string bytes = zip({{"a", "hello", Pack::stored}, {"a", "hello", Pack::stored}});
  const size_t second = bytes.rfind("PK\x01\x02");
  std::memset(bytes.data() + second + 42, 0, 4);
  EXPECT_USER_ERROR(read_all(bytes), "overlap");
}

TEST(Zip, NotAnArchive) {
  EXPECT_USER_ERROR(read_all(""), "no directory");
  EXPECT_USER_ERROR(read_all("PK"), "no directory");
  EXPECT_USER_ERROR(read_all(std::string(100'000, 'P')), "no directory");
}

}  // namespace
}  // namespace nacre
