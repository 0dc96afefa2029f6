#include "nacre/base/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

class FolderLockTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("nacre_lock_" + std::to_string(getpid()) + "_" +
                                           testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(FolderLockTest, OneAtATime) {
  {
    const FolderLock first(folder_.string(), "wait");
    EXPECT_THROW(FolderLock(folder_.string(), "wait"), UserError);
    EXPECT_TRUE(fs::is_empty(folder_));
  }
  const FolderLock again(folder_.string(), "wait");
}

TEST_F(FolderLockTest, MovesWithItsOwner) {
  FolderLock first(folder_.string(), "wait");
  FolderLock second(std::move(first));
  EXPECT_THROW(FolderLock(folder_.string(), "wait"), UserError);
  second = FolderLock();
  const FolderLock again(folder_.string(), "wait");
}

TEST_F(FolderLockTest, EndsWithAKilledProcess) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const FolderLock lock(folder_.string(), "wait");
    if (write(ready[1], "x", 1) == 1) pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_THROW(FolderLock(folder_.string(), "wait"), UserError);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const FolderLock again(folder_.string(), "wait");
}

}  // namespace
}  // namespace nacre
