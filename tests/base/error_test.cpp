#include "nacre/base/error.h"

#include <gtest/gtest.h>

namespace nacre {
namespace {

TEST(UserError, IsOneLineOfWhereWhatAndRemedy) {
  EXPECT_STREQ(UserError("graph.npz", "has no key 'x'", "convert it again").what(),
               "graph.npz: has no key 'x' (convert it again)");
  EXPECT_STREQ(UserError("--hidden", "must be positive").what(), "--hidden: must be positive");
  EXPECT_STREQ(UserError("", "something").what(), "something");
  EXPECT_STREQ(UserError("a\nb", "c\r\nd", "e\nf").what(), "a b: c  d (e f)");
}

TEST(RuntimeError, SaysWhereAndWhat) { EXPECT_STREQ(RuntimeError("disk", "is full").what(), "disk: is full"); }

TEST(InternalError, NamesTheFileWithoutItsFolder) {
  EXPECT_STREQ(InternalError("/a/long/way/plan.cpp", 7, "lost").what(), "internal error at plan.cpp:7: lost");
  EXPECT_STREQ(InternalError("plan.cpp", 7, "lost").what(), "internal error at plan.cpp:7: lost");
}

TEST(NacreCheck, EvaluatesTheMessageOnlyOnFailure) {
  int evaluated = 0;
  const auto message = [&] {
    ++evaluated;
    return std::string("broken");
  };
  NACRE_CHECK(true, message());
  EXPECT_EQ(evaluated, 0);
  EXPECT_THROW(NACRE_CHECK(false, message()), InternalError);
  EXPECT_EQ(evaluated, 1);
}

TEST(Errors, AreOfKindsThatDoNotMix) {
  EXPECT_FALSE((std::is_base_of_v<UserError, RuntimeError> || std::is_base_of_v<RuntimeError, UserError>));
  EXPECT_TRUE((std::is_base_of_v<std::logic_error, InternalError>));
}

}  // namespace
}  // namespace nacre
