// Files that appear whole or not at all.
#include "nacre/base/pending_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "nacre/base/error.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

class PendingFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("nacre_pending_" + std::to_string(getpid()) + "_" +
                                           testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  int entries() const {
    return static_cast<int>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(PendingFileTest, AppearsOnlyWhenCommitted) {
  PendingFile file(path("a"));
  file.append("hello ");
  file.append("world");
  EXPECT_FALSE(fs::exists(path("a")));
  file.commit();
  EXPECT_EQ(read_file(path("a")), "hello world");
  EXPECT_EQ(entries(), 1);
}

TEST_F(PendingFileTest, LeavesNothingWhenAbandoned) {
  {
    PendingFile file(path("a"));
    file.append("half");
    EXPECT_EQ(entries(), 1);
  }
  EXPECT_EQ(entries(), 0);
  try {
    PendingFile file(path("b"));
    file.append("half");
    throw UserError("writer", "changed its mind");
  } catch (const UserError&) {
    EXPECT_EQ(entries(), 0);
  }
}

TEST_F(PendingFileTest, KeepsTheOldFileUntilTheNewOneIsComplete) {
  write_file(path("a"), "old");
  {
    PendingFile file(path("a"));
    file.append("new");
    EXPECT_EQ(read_file(path("a")), "old");
  }
  EXPECT_EQ(read_file(path("a")), "old");
  write_file(path("a"), "newer");
  EXPECT_EQ(read_file(path("a")), "newer");
  EXPECT_EQ(entries(), 1);
}

TEST_F(PendingFileTest, WritesAnywhere) {
  PendingFile file(path("a"));
  file.append("0123456789");
  file.write_at(2, "ab", 2);
  file.write_at(12, "xy", 2);
  file.append("!");
  file.commit();
  EXPECT_EQ(read_file(path("a")), std::string("01ab456789\0\0xy!", 15));
}

TEST_F(PendingFileTest, RefusesFoldersThatAreNotThere) {
  EXPECT_THROW(PendingFile(path("no/such/folder/a")), UserError);
  EXPECT_THROW(write_file(path("no/such/a"), "x"), UserError);
}

TEST_F(PendingFileTest, AFolderInTheWayIsAnErrorAndLeavesNothing) {
  fs::create_directories(path("taken/inside"));
  EXPECT_THROW(write_file(path("taken"), "x"), RuntimeError);
  EXPECT_EQ(entries(), 1);
}

// A full disk, played by a limit on file sizes.
TEST_F(PendingFileTest, AFullDiskLeavesNothing) {
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(write_file(path("a"), std::string(100000, 'x')), RuntimeError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(entries(), 0);
}

TEST_F(PendingFileTest, ReadFileSaysWhatIsWrong) {
  EXPECT_THROW(read_file(path("absent")), UserError);
  EXPECT_THROW(read_file(folder_.string()), UserError) << "a folder";
  const std::string bytes("\0\n\r\xff", 4);
  write_file(path("bytes"), bytes);
  EXPECT_EQ(read_file(path("bytes")), bytes);
  write_file(path("empty"), "");
  EXPECT_EQ(read_file(path("empty")), "");
}

}  // namespace
}  // namespace nacre
