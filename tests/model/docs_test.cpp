// docs/add_a_model.md shows the code that is compiled.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(NACRE_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Docs, add_a_model_shows_the_example) {
  const std::string doc = read("docs/add_a_model.md");
  const std::string open = "```cpp\n";
  const size_t begin = doc.find(open);
  ASSERT_NE(begin, std::string::npos);
  const size_t from = begin + open.size();
  const std::string code = doc.substr(from, doc.find("```", from) - from);
  EXPECT_GT(code.size(), 500u);
  EXPECT_NE(read("examples/own_model/gated_mean.cpp").find(code), std::string::npos)
      << "docs/add_a_model.md and examples/own_model/gated_mean.cpp have drifted apart";
}

}  // namespace
