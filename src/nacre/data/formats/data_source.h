// The path that the user gave: one file, or a folder whose files belong together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/data/mapped_file.h"

namespace nacre {

class DataSource {
 public:
  // Throws UserError if nothing is at `path`.
  explicit DataSource(std::string path);

  const std::string& path() const { return path_; }
  bool is_folder() const { return folder_; }
  std::string name() const;  // the last part of the path: "ogbn_arxiv"

  // Returns the file; only for sources that are files. The file is opened on first use.
  const std::shared_ptr<const MappedFile>& file() const;

  // The functions below look into a folder, and `inside` is a path relative to the folder. If the
  // source is a file, they return false or an empty value, and the two that open files throw.
  bool has(const std::string& inside) const;
  bool has_folder(const std::string& inside) const;
  // Returns `inside`, or `inside`.gz if only that exists, or an empty text if neither does.
  std::string text(const std::string& inside) const;
  // Return the names directly in the folder (or in a folder inside it), sorted. At most 10,000
  // entries are looked at.
  std::vector<std::string> files(const std::string& inside = "") const;
  std::vector<std::string> folders(const std::string& inside = "") const;
  // Returns the path of `inside`, whether or not it exists.
  std::string at(const std::string& inside) const;
  // Open a file. Both functions throw UserError if it is missing. open_text() also accepts the
  // gzipped file.
  std::shared_ptr<const MappedFile> open(const std::string& inside) const;
  std::shared_ptr<const MappedFile> open_text(const std::string& inside) const;

 private:
  std::string path_;
  bool folder_ = false;
  mutable std::shared_ptr<const MappedFile> file_;
};

}  // namespace nacre
