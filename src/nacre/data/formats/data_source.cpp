#include "nacre/data/formats/data_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> listed(const fs::path& folder, bool want_folders) {
  constexpr int most_looked_at = 10'000;
  std::vector<std::string> names;
  std::error_code error;
  int looked_at = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end && looked_at < most_looked_at;
       it.increment(error)) {
    ++looked_at;
    std::error_code ignored;
    const bool fits = want_folders ? it->is_directory(ignored) : it->is_regular_file(ignored);
    std::string name = it->path().filename().string();
    if (fits && !name.starts_with(".")) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

DataSource::DataSource(std::string path) : path_(std::move(path)) {
  std::error_code error;
  if (!fs::exists(path_, error)) throw UserError(path_, "no such file", "check the path");
  folder_ = fs::is_directory(path_, error);
  while (folder_ && path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
}

std::string DataSource::name() const {
  std::error_code error;
  fs::path whole = fs::path(path_);
  // The canonical path has the real name of a folder that was given as "." or "..".
  if (folder_) whole = fs::canonical(whole, error);
  return error ? path_ : whole.filename().string();
}

const std::shared_ptr<const MappedFile>& DataSource::file() const {
  if (file_ == nullptr) file_ = MappedFile::open(path_);
  return file_;
}

std::string DataSource::at(const std::string& inside) const { return inside.empty() ? path_ : path_ + "/" + inside; }

bool DataSource::has(const std::string& inside) const {
  std::error_code error;
  return folder_ && fs::is_regular_file(at(inside), error);
}

bool DataSource::has_folder(const std::string& inside) const {
  std::error_code error;
  return folder_ && fs::is_directory(at(inside), error);
}

std::string DataSource::text(const std::string& inside) const {
  if (has(inside)) return inside;
  return has(inside + ".gz") ? inside + ".gz" : "";
}

std::vector<std::string> DataSource::files(const std::string& inside) const {
  return folder_ ? listed(at(inside), false) : std::vector<std::string>();
}

std::vector<std::string> DataSource::folders(const std::string& inside) const {
  return folder_ ? listed(at(inside), true) : std::vector<std::string>();
}

std::shared_ptr<const MappedFile> DataSource::open(const std::string& inside) const {
  if (!has(inside)) throw UserError(at(inside), "is missing", "the data set is incomplete: fetch it again");
  return MappedFile::open(at(inside));
}

std::shared_ptr<const MappedFile> DataSource::open_text(const std::string& inside) const {
  const std::string found = text(inside);
  return open(found.empty() ? inside : found);
}

}  // namespace nacre
