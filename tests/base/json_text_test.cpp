#include "nacre/base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace nacre {
namespace {

using nlohmann::json;

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

TEST(JsonText, TakesWhatIsNestedALittle) {
  EXPECT_EQ(parse_json<json>(R"({"a": [1, {"b": "[[["}]})", "here").at("a").at(0), 1);
  EXPECT_FALSE(parse_json<json>(nested(kMaxJsonDepth), "here").is_discarded());
}

TEST(JsonText, RefusesWhatIsNestedDeeply) {
  for (const int depth : {kMaxJsonDepth + 1, 100000}) {
    EXPECT_THROW(parse_json<json>(nested(depth), "here"), UserError);
    EXPECT_TRUE(parse_json_or_discard<json>(nested(depth)).is_discarded());
  }
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += R"({"a":)";
  EXPECT_THROW(parse_json<json>(objects, "here"), UserError);
}

TEST(JsonText, BracketsInTextsDoNotCount) {
  EXPECT_FALSE(json_too_deep('"' + std::string(1000, '[') + '"'));
  EXPECT_FALSE(json_too_deep(R"("\")" + std::string(1000, '{') + '"')) << "an escaped quotation mark ends no text";
  EXPECT_TRUE(json_too_deep(R"(["a\\",)" + std::string(1000, '[')));
}

TEST(JsonText, SaysWhatIsWrongWithoutTheLibrarysName) {
  try {
    parse_json<json>("{\"a\": ", "plan.json");
    FAIL() << "half an object was taken";
  } catch (const UserError& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with("plan.json: is not valid JSON: ")) << what;
    EXPECT_EQ(what.find("json.exception"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace nacre
