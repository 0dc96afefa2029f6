// Files appear whole or not at all.
#include "nacre/base/pending_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <utility>

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

// A limit on file sizes plays a full disk.
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

TEST_F(PendingFileTest, ReplacesWhatALinkPointsTo) {
  fs::create_directories(path("elsewhere"));
  write_file(path("elsewhere/file"), "old");
  fs::create_symlink("elsewhere/file", path("link"));
  fs::create_symlink("link", path("link_to_link"));
  write_file(path("link_to_link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")) && fs::is_symlink(path("link_to_link")));
  EXPECT_EQ(read_file(path("elsewhere/file")), "new");
  fs::create_symlink(path("elsewhere/later"), path("dangling"));
  write_file(path("dangling"), "made");
  EXPECT_TRUE(fs::is_symlink(path("dangling")));
  EXPECT_EQ(read_file(path("elsewhere/later")), "made");
  fs::create_symlink("loop", path("loop"));
  EXPECT_THROW(write_file(path("loop"), "x"), UserError);
  EXPECT_EQ(std::distance(fs::directory_iterator(path("elsewhere")), fs::directory_iterator()), 2);
}

TEST_F(PendingFileTest, KeepsThePermissionsOfWhatItReplaces) {
  write_file(path("a"), "old");
  fs::permissions(path("a"), fs::perms::owner_read | fs::perms::owner_write);
  write_file(path("a"), "new");
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(PendingFileTest, WritesIntoAPipe) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  PendingFile::check(path("pipe"));
  {
    PendingFile file(path("pipe"));
    file.append("hello ");
    file.append("world");
    EXPECT_THROW(file.write_at(0, "H", 1), UserError) << "a pipe has no beginning to go back to";
    file.commit();
  }
  char bytes[64];
  EXPECT_EQ(std::string(bytes, static_cast<size_t>(read(reader, bytes, sizeof bytes))), "hello world");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  EXPECT_EQ(entries(), 1);
}

// The test makes device nodes like the system's: major 1, minor 3 takes everything, and minor 7 is
// always full.
TEST_F(PendingFileTest, NeverReplacesADevice) {
  for (const auto& [name, minor] : {std::pair("everything", 3), std::pair("full", 7)}) {
    if (mknod(path(name).c_str(), S_IFCHR | 0666, makedev(1, static_cast<unsigned>(minor))) != 0)
      GTEST_SKIP() << "device nodes cannot be made here";
    const int probe = open(path(name).c_str(), O_WRONLY);
    if (probe < 0) GTEST_SKIP() << "device nodes do not work here";
    close(probe);
  }
  write_file(path("everything"), "x");
  EXPECT_THROW(write_file(path("full"), "x"), RuntimeError);
  PendingFile::check(path("full"));
  EXPECT_TRUE(fs::is_character_file(path("everything")) && fs::is_character_file(path("full")));
  EXPECT_EQ(entries(), 2);
}

TEST_F(PendingFileTest, OpenFilesAreAppendedToByTheirNameInProc) {
  const int file = open(path("a").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(write(file, "first ", 6), 6);
  const std::string name = "/proc/self/fd/" + std::to_string(file);
  EXPECT_TRUE(writes_straight(name));
  write_file(name, "second");
  EXPECT_EQ(read_file(path("a")), "first second");
  close(file);
}

TEST_F(PendingFileTest, CheckingLeavesEverythingAsItWas) {
  write_file(path("a"), "old");
  PendingFile::check(path("a"));
  PendingFile::check(path("b"));
  EXPECT_EQ(entries(), 1);
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_THROW(PendingFile::check(path("no/such/folder")), UserError);
}

TEST_F(PendingFileTest, TemporaryFilesCanBeRemovedAtOnce) {
  PendingFile file(path("a"));
  file.append("half");
  EXPECT_EQ(entries(), 1);
  remove_pending_files();
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
