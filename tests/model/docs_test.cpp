// The guides and docs/library.md show code that is compiled.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(NACRE_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the page's blocks of C++.
std::vector<std::string> code_of(const std::string& page) {
  const std::string doc = read(page), open = "```cpp\n";
  std::vector<std::string> blocks;
  for (size_t at = doc.find(open); at != std::string::npos; at = doc.find(open, at)) {
    at += open.size();
    blocks.push_back(doc.substr(at, doc.find("```", at) - at));
  }
  return blocks;
}

TEST(Docs, add_a_model_shows_the_example) {
  const std::vector<std::string> code = code_of("docs/add_a_model.md");
  ASSERT_FALSE(code.empty());
  EXPECT_GT(code[0].size(), 500u);
  EXPECT_NE(read("examples/own_model/gated_mean.cpp").find(code[0]), std::string::npos)
      << "docs/add_a_model.md and examples/own_model/gated_mean.cpp have drifted apart";
}

TEST(Docs, the_library_page_shows_the_whole_program) {
  const std::vector<std::string> code = code_of("docs/library.md");
  ASSERT_GE(code.size(), 2u);
  EXPECT_EQ(code[1], read("examples/find_package/main.cpp"));
}

}  // namespace
