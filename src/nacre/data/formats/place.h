// What the user named: one file, or a folder whose files belong together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/data/mapped_file.h"

namespace nacre {

class Place {
 public:
  // Throws UserError when there is nothing there.
  explicit Place(std::string path);

  const std::string& path() const { return path_; }
  bool is_folder() const { return folder_; }
  std::string name() const;  // its last part: "ogbn_arxiv"

  // For files. Opened on first use.
  const std::shared_ptr<const MappedFile>& file() const;

  // For folders; `inside` is relative to it. Answers are false or empty for files.
  bool has(const std::string& inside) const;
  bool has_folder(const std::string& inside) const;
  // `inside`, or `inside`.gz where only that exists; empty when neither does.
  std::string text(const std::string& inside) const;
  // Names directly in it (or in a folder inside it), in order; at most 10,000 are looked at.
  std::vector<std::string> files(const std::string& inside = "") const;
  std::vector<std::string> folders(const std::string& inside = "") const;
  std::string at(const std::string& inside) const;
  // Throws UserError when missing; open_text() also takes the gzipped file.
  std::shared_ptr<const MappedFile> open(const std::string& inside) const;
  std::shared_ptr<const MappedFile> open_text(const std::string& inside) const;

 private:
  std::string path_;
  bool folder_ = false;
  mutable std::shared_ptr<const MappedFile> file_;
};

}  // namespace nacre
