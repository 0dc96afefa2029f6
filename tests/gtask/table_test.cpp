#include "nacre/gtask/table.h"

#include <gtest/gtest.h>

#include "gtask/cases.h"
#include "nacre/base/error.h"

namespace nacre::test {
namespace {

TEST(Table, TextIsCanonical) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"  ", ""},
      {"dst-id=1", "dst-id=1"},
      {"edge-id=32,dst-id=1", "dst-id=1,edge-id=32"},
      {" dst-id = 64 ,\tsrc-id=64", "src-id=64,dst-id=64"},
      {"dst-degree=min,dst-id=16", "dst-id=16,dst-degree=min"},
      {"edge-type=1,edge-id=64", "edge-id=64,edge-type=1"},
      {"src-degree=2,edge-id=min", "src-degree=2,edge-id=min"},
      {"src-id=9223372036854775807", "src-id=9223372036854775807"},
  };
  for (const auto& [text, canonical] : cases) EXPECT_EQ(PartitionTable::parse(text).text(), canonical) << text;
}

TEST(Table, RoundTrips) {
  for (const PartitionTable& table : test_tables(1, 200)) EXPECT_EQ(PartitionTable::parse(table.text()), table);
}

TEST(Table, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"dst-id", "'dst-id': is not a restriction"},
      {"dst-id=1,", "'': is not a restriction"},
      {",dst-id=1", "'': is not a restriction"},
      {"dst-id=1,,edge-id=2", "'': is not a restriction"},
      {"dst-ids=1", "unknown attribute 'dst-ids'"},
      {"vertex-id=1", "unknown attribute 'vertex-id'"},
      {"id=1", "unknown attribute 'id'"},
      {"=1", "unknown attribute ''"},
      {"dst-id=0", "'dst-id=0': a gTask holds at least one value"},
      {"dst-id=-3", "at least one value"},
      {"dst-id=", "not a number"},
      {"dst-id=max", "not a number"},
      {"dst-id=1x", "not a number"},
      {"dst-id=1.5", "not a number"},
      {"dst-id=+1", "not a number"},
      {"dst-id=99999999999999999999", "too large"},
      {"dst-id=1,src-id=2,dst-id=3", "'dst-id=3': dst-id is restricted twice"},
      {"dst-id=min,dst-id=min", "restricted twice"},
      {"edge-degree=1", "edges have no degree"},
      {"src-type=1", "nodes have no types"},
      {"dst-type=min", "nodes have no types"},
  };
  for (const auto& [text, want] : cases) {
    try {
      PartitionTable::parse(text);
      ADD_FAILURE() << "accepted " << text;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(want), std::string::npos) << error.what();
    }
  }
}

TEST(Table, KeepsEntriesApart) {
  const PartitionTable table = PartitionTable::parse("src-id=3,dst-degree=min");
  EXPECT_EQ(table.at(Location::src, Attribute::id), (Restriction{Restriction::exact, 3}));
  EXPECT_EQ(table.at(Location::dst, Attribute::degree), (Restriction{Restriction::minimum, 0}));
  EXPECT_TRUE(table.free(Location::dst, Attribute::id));
  EXPECT_FALSE(table.empty());
  EXPECT_TRUE(PartitionTable().empty());
  PartitionTable other = table;
  other.set(Location::src, Attribute::id, {});
  EXPECT_NE(other, table);
  EXPECT_EQ(other.text(), "dst-degree=min");
}

TEST(Table, RefusesEntriesThatMeanNothing) {
  PartitionTable table;
  EXPECT_THROW(table.set(Location::edge, Attribute::degree, {Restriction::exact, 1}), InternalError);
  EXPECT_THROW(table.set(Location::src, Attribute::type, {Restriction::minimum, 0}), InternalError);
  EXPECT_THROW(table.set(Location::src, Attribute::id, {Restriction::exact, 0}), InternalError);
}

TEST(Table, KnowsWhichEndItOwns) {
  struct Case {
    const char* text;
    bool src, dst;
  };
  const Case cases[] = {
      {"", true, true},
      {"dst-id=1", false, true},
      {"dst-id=64", false, true},
      {"dst-id=16,dst-degree=min", false, true},
      {"dst-degree=1", false, true},
      {"dst-degree=1,dst-id=4", false, true},
      {"src-id=64", true, false},
      {"src-degree=2", true, false},
      {"edge-id=64", false, false},
      {"dst-id=1,edge-id=32", false, false},
      {"src-id=64,dst-id=64", false, false},
      {"dst-id=1,edge-type=1", false, false},
      {"edge-type=1", false, false},
      {"src-id=min", true, true},
      {"edge-type=min", true, true},
      {"edge-id=min,dst-id=4", false, true},
      {"src-id=min,dst-id=1", false, true},
      {"src-id=min,dst-id=4", false, false},
      {"edge-type=min,dst-id=1", false, false},
  };
  for (const Case& c : cases) {
    const PartitionTable table = PartitionTable::parse(c.text);
    EXPECT_EQ(table.owns(Location::src), c.src) << c.text;
    EXPECT_EQ(table.owns(Location::dst), c.dst) << c.text;
    EXPECT_TRUE(table.owns(Location::edge)) << c.text;
  }
}

}  // namespace
}  // namespace nacre::test
