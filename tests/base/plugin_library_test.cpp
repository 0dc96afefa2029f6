#include "nacre/base/plugin_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace nacre {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class PluginLibraryTest : public testing::Test {
 protected:
  PluginLibraryTest() { fs::create_directories(folder_); }
  ~PluginLibraryTest() override { fs::remove_all(folder_); }

  // Writes a library with these bytes, and returns what is wrong with opening it.
  std::string open(const std::string& bytes) {
    const std::string path = folder_ / ("library" + std::to_string(++opened_) + ".so");
    std::ofstream(path, std::ios::binary) << bytes;
    const PluginFunction found = open_plugin_function("library.so", "a_function_that_no_library_has", path);
    EXPECT_EQ(found.address, nullptr);
    return found.why;
  }

  // Returns the bytes of a library that every machine has: that of the C++ language.
  static std::string library() {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&std::terminate), &info) == 0) return "";
    return bytes_of(info.dli_fname);
  }

  // The system knows an opened library by its path, so each library has a path of its own.
  int opened_ = 0;
  fs::path folder_ = fs::temp_directory_path() / ("nacre_plugin_" + std::to_string(getpid()));
};

TEST_F(PluginLibraryTest, RefusesALibraryWhoseEndIsMissing) {
  const std::string whole = library();
  ASSERT_GT(whole.size(), 100'000U);
  EXPECT_NE(open(whole).find("belongs to another version"), std::string::npos);
  EXPECT_NE(open(whole.substr(0, whole.size() / 3)).find("is not whole"), std::string::npos);
  EXPECT_NE(open(whole.substr(0, 20)).find("is not whole"), std::string::npos);
}

// strip shortens a library without mending the headers of bytes that the system does not map.
TEST_F(PluginLibraryTest, OpensAStrippedLibrary) {
  std::string bytes = library();
  ASSERT_GT(bytes.size(), sizeof(Elf64_Ehdr));
  Elf64_Ehdr header{};
  std::copy_n(bytes.begin(), sizeof header, reinterpret_cast<char*>(&header));
  int changed = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(header.e_phoff + uint64_t{header.e_phentsize} * i);
    Elf64_Phdr part{};
    std::copy_n(at, sizeof part, reinterpret_cast<char*>(&part));
    if (part.p_type != PT_GNU_RELRO) continue;
    part.p_filesz = bytes.size();
    std::copy_n(reinterpret_cast<const char*>(&part), sizeof part, at);
    ++changed;
  }
  ASSERT_EQ(changed, 1);
  EXPECT_NE(open(bytes).find("belongs to another version"), std::string::npos);
}

}  // namespace
}  // namespace nacre
