// A lock that lets only one process at a time write into a folder.
#pragma once

#include <string>

namespace nacre {

// Holds the lock on a folder as long as the object lives. The system releases the lock when the
// process ends in any way. Nothing is written into the folder.
class FolderLock {
 public:
  FolderLock() = default;
  // Locks `folder`, which must exist. Throws UserError with `remedy` if another process holds the
  // lock. On file systems without locks, the constructor succeeds without locking.
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
