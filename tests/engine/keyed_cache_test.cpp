#include "nacre/engine/gpu/keyed_cache.h"

#include <gtest/gtest.h>

namespace nacre {
namespace {

TEST(KeyedCacheTest, AValueIsMadeOnce) {
  KeyedCache cache;
  int made = 0;
  const auto make = [&] { return ++made; };
  EXPECT_EQ(cache.get<int>("a", make), 1);
  EXPECT_EQ(cache.get<int>("a", make), 1);
  EXPECT_EQ(cache.get<int>("b", make), 2);
}

TEST(KeyedCacheTest, ValuesOfTwoTypesShareAKey) {
  KeyedCache cache;
  cache.put<int>("a", 1);
  EXPECT_EQ(cache.find<std::string>("a"), nullptr);
  cache.put<std::string>("a", "one");
  EXPECT_EQ(*cache.find<int>("a"), 1);
  EXPECT_EQ(*cache.find<std::string>("a"), "one");
}

TEST(KeyedCacheTest, AChildFindsWhatItsParentHoldsAndKeepsItsOwnToItself) {
  KeyedCache parent;
  parent.put<int>("a", 1);
  KeyedCache child(&parent);
  EXPECT_EQ(child.find<int>("a"), parent.find<int>("a"));
  EXPECT_EQ(child.find_own<int>("a"), nullptr);
  child.put<int>("b", 2);
  EXPECT_EQ(*child.find<int>("b"), 2);
  EXPECT_EQ(parent.find<int>("b"), nullptr);
}

TEST(KeyedCacheTest, ReferencesOutliveLaterValues) {
  KeyedCache cache;
  const int& first = cache.put<int>("0", 0);
  for (int i = 1; i < 100; ++i) cache.put<int>(std::to_string(i), i);
  EXPECT_EQ(&first, cache.find<int>("0"));
  EXPECT_EQ(first, 0);
}

}  // namespace
}  // namespace nacre
