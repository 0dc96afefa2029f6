#include "nacre/base/names.h"

#include <gtest/gtest.h>

#include "nacre/base/error.h"

namespace nacre {
namespace {

TEST(Names, Distance) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("gcn", ""), 3U);
  EXPECT_EQ(edit_distance("gcn", "gcn"), 0U);
  EXPECT_EQ(edit_distance("gnc", "gcn"), 1U) << "neighbours swapped";
  EXPECT_EQ(edit_distance("trian", "train"), 1U);
  EXPECT_EQ(edit_distance("hiden", "hidden"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Names, AreFoundInAnyCapitals) {
  const std::vector<std::string> known = {"neighbor", "layer", "saint-walk", "micro_f1"};
  const std::vector<Synonym> synonyms = {{"ladies", "layer"}};
  EXPECT_EQ(find_name("Layer", known, synonyms), "layer");
  EXPECT_EQ(find_name("LADIES", known, synonyms), "layer");
  EXPECT_EQ(find_name("ladies", {"neighbor"}, synonyms), std::nullopt) << "a synonym of a name that cannot be chosen";
  EXPECT_EQ(find_name("saint_walk", known, synonyms), "saint-walk");
  EXPECT_EQ(find_name("Micro-F1", known, synonyms), "micro_f1");
  EXPECT_EQ(find_name("", known, synonyms), std::nullopt);
  EXPECT_EQ(find_name("walk", known, synonyms), std::nullopt);
}

TEST(Names, UnknownOnesGetASuggestion) {
  EXPECT_EQ(nearest_name("modle", {"mode", "model", "metric"}), "model");
  EXPECT_EQ(nearest_name("GNC", {"gat", "gcn"}), "gcn");
  EXPECT_EQ(nearest_name("transformer9000", {"gat", "gcn"}), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), {"gat", "gcn"}), "");
  EXPECT_EQ(suggest("gnc", {"gat", "gcn"}), "did you mean 'gcn'? choose gat or gcn");
  try {
    choose_name("--sampler", "sampler", "laier", {"neighbor", "layer"});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "--sampler: unknown sampler 'laier' (did you mean 'layer'? choose neighbor or layer)");
  }
}

TEST(Names, Plurals) {
  EXPECT_EQ(counted(1, "epoch"), "1 epoch");
  EXPECT_EQ(counted(0, "epoch"), "0 epochs");
  EXPECT_EQ(counted(1200, "batch", "batches"), "1,200 batches");
  EXPECT_EQ(listed({"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace nacre
