// Only one process at a time may write into a folder.
#pragma once

#include <string>

namespace nacre {

// Holds the folder while it lives. The system gives it free when the process ends in whatever way. Nothing is written.
class FolderLock {
 public:
  FolderLock() = default;
  // `folder` must exist. Throws UserError with `remedy` when another process holds it. File systems that know no locks
  // are not locked.
  FolderLock(const std::string& folder, const std::string& remedy);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace nacre
