// CacheFolder: a cache folder for tests that store plans, kernels or measurements.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace nacre::test {

// While the object lives, NACRE_CACHE names an empty folder that nothing else uses. When the object
// is destroyed, the folder is removed, and the variable gets its earlier value back.
class CacheFolder {
 public:
  CacheFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "nacre-cache-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::filesystem::filesystem_error("mkdtemp", pattern, last_error());
    folder_ = pattern;
    if (const char* before = getenv("NACRE_CACHE")) before_ = before;
    setenv("NACRE_CACHE", folder_.c_str(), 1);
  }
  ~CacheFolder() {
    if (before_) {
      setenv("NACRE_CACHE", before_->c_str(), 1);
    } else {
      unsetenv("NACRE_CACHE");
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }

 private:
  static std::error_code last_error() { return {errno, std::generic_category()}; }

  std::filesystem::path folder_;
  std::optional<std::string> before_;  // the value of NACRE_CACHE before
};

}  // namespace nacre::test
