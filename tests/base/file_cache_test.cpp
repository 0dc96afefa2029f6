// Values that are kept between runs are read back as they were written, or not at all.
#include "nacre/base/file_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "nacre/base/pending_file.h"
#include "support/log_capture.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

// Writes without the syncs of write_file(), for a file that is damaged hundreds of times.
void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class FileCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / ("nacre_cache_" + std::to_string(getpid()) + "_" +
                                            testing::UnitTest::GetInstance()->current_test_info()->name()))
                  .string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().string());
    return names;
  }
  // Returns the bytes of the only file.
  std::string file() const {
    const auto all = files();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? "" : *all.begin();
  }

  std::string folder_;
};

TEST_F(FileCacheTest, GivesBackWhatWasWritten) {
  std::string every_byte;
  for (int i = 0; i < 1000; ++i) every_byte += static_cast<char>(i * 7);
  const std::vector<std::pair<std::string, std::string>> entries = {{"plan of gcn", "text\n"},
                                                                    {"", "of the empty key"},
                                                                    {"empty value", ""},
                                                                    {std::string("\0\xff/../\n", 7), every_byte},
                                                                    {std::string(5000, 'k'), "long key"},
                                                                    {"big", std::string(3 << 20, 'b')},
                                                                    {"a", std::string(1, '\0')}};
  EXPECT_EQ(read_cached(folder_, "a"), std::nullopt) << "no folder yet";
  for (const auto& [key, value] : entries) write_cached(folder_, key, value);
  EXPECT_EQ(files().size(), entries.size());
  for (const auto& [key, value] : entries) {
    const auto found = read_cached(folder_, key);
    ASSERT_TRUE(found.has_value()) << key.size();
    EXPECT_TRUE(*found == value) << key.size();
  }
  EXPECT_EQ(read_cached(folder_, "absent"), std::nullopt);
}

TEST_F(FileCacheTest, TheLastValueStays) {
  write_cached(folder_, "key", "a long first value");
  write_cached(folder_, "key", "second");
  EXPECT_EQ(read_cached(folder_, "key"), "second");
  EXPECT_EQ(fs::path(file()).filename().string().size(), 32U);
}

TEST_F(FileCacheTest, ADroppedValueIsGone) {
  write_cached(folder_, "one", "value of one");
  write_cached(folder_, "two", "value of two");
  drop_cached(folder_, "one");
  EXPECT_EQ(read_cached(folder_, "one"), std::nullopt);
  EXPECT_EQ(read_cached(folder_, "two"), "value of two");
  EXPECT_EQ(files().size(), 1U);
  // Dropping a value or using a folder that does not exist is no error.
  drop_cached(folder_, "one");
  drop_cached(folder_ + "/absent", "two");
  drop_cached("", "two");
  EXPECT_EQ(read_cached(folder_, "two"), "value of two");
}

TEST_F(FileCacheTest, NamesDifferForSimilarKeys) {
  for (const char* key : {"a", "b", "ab", "ba", "12345678", "123456780", "aaaaaaaabbbbbbbb", "bbbbbbbbaaaaaaaa"}) {
    write_cached(folder_, key, key);
  }
  write_cached(folder_, std::string(1, '\0'), "zero");
  write_cached(folder_, std::string(2, '\0'), "zeros");
  EXPECT_EQ(files().size(), 10U);
}

TEST_F(FileCacheTest, EveryDamagedByteIsNoticed) {
  write_cached(folder_, "the key", "the value of the key");
  const std::string path = file();
  const std::string good = read_file(path);
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      overwrite(path, bad);
      ASSERT_EQ(read_cached(folder_, "the key"), std::nullopt) << "byte " << i << " flipped by " << flip;
    }
  }
  for (size_t size = 0; size < good.size(); ++size) {
    overwrite(path, good.substr(0, size));
    ASSERT_EQ(read_cached(folder_, "the key"), std::nullopt) << "cut to " << size;
  }
  overwrite(path, good + "x");
  EXPECT_EQ(read_cached(folder_, "the key"), std::nullopt) << "longer";
  overwrite(path, good);
  EXPECT_EQ(read_cached(folder_, "the key"), "the value of the key");
  overwrite(path, "damaged");
  write_cached(folder_, "the key", "written again");
  EXPECT_EQ(read_cached(folder_, "the key"), "written again");
}

TEST_F(FileCacheTest, AFileOfAnotherKeyIsNotTaken) {
  write_cached(folder_, "key one", "one");
  const std::string first = file();
  for (const char* other : {"key two", "a longer key"}) {
    fs::remove_all(folder_);
    write_cached(folder_, other, "other");
    const std::string path = file();
    fs::remove_all(folder_);
    write_cached(folder_, "key one", "one");
    fs::copy_file(first, path);
    EXPECT_EQ(read_cached(folder_, other), std::nullopt);
    EXPECT_EQ(read_cached(folder_, "key one"), "one");
  }
}

TEST_F(FileCacheTest, ThreadsMayWriteAtOnce) {
  const auto value_of = [](int writer) { return std::string(20000, static_cast<char>('a' + writer)); };
  write_cached(folder_, "shared", value_of(0));
  const test::LogCapture log;
  std::vector<std::thread> threads;
  threads.reserve(6);
  for (int writer = 0; writer < 6; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < 10; ++i) {
        write_cached(folder_, "shared", value_of(writer));
        write_cached(folder_, "own " + std::to_string(writer), value_of(writer));
        const auto seen = read_cached(folder_, "shared");
        EXPECT_TRUE(seen.has_value() && *seen == value_of((*seen)[0] - 'a')) << "a mixture";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log.text(), "");
  for (int writer = 0; writer < 6; ++writer) {
    EXPECT_EQ(read_cached(folder_, "own " + std::to_string(writer)), value_of(writer));
  }
  EXPECT_EQ(files().size(), 7U) << "nothing temporary is left";
}

TEST_F(FileCacheTest, ProcessesMayWriteAtOnce) {
  const auto value_of = [](int writer) { return std::string(20000, static_cast<char>('a' + writer)); };
  write_cached(folder_, "shared", value_of(0));
  std::vector<pid_t> children;
  for (int writer = 1; writer < 4; ++writer) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 0; i < 10; ++i) write_cached(folder_, "shared", value_of(writer));
      _exit(0);
    }
    children.push_back(child);
  }
  for (int i = 0; i < 200; ++i) {
    const auto seen = read_cached(folder_, "shared");
    EXPECT_TRUE(seen.has_value() && *seen == value_of((*seen)[0] - 'a')) << "a mixture";
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(FileCacheTest, AFolderThatCannotBeIsOnlyAWarning) {
  fs::create_directories(folder_);
  write_file(folder_ + "/file", "in the way");
  for (const std::string& folder : {folder_ + "/file", folder_ + "/file/below", std::string()}) {
    const test::LogCapture log;
    EXPECT_NO_THROW(write_cached(folder, "key", "value"));
    const std::string told = log.text();
    EXPECT_TRUE(told.starts_with("warning: a file of the cache was not written: ")) << folder;
    EXPECT_EQ(read_cached(folder, "key"), std::nullopt);
    EXPECT_EQ(log.text(), told) << folder;
  }
  EXPECT_EQ(read_file(folder_ + "/file"), "in the way");
}

TEST_F(FileCacheTest, AFolderWhereTheFileShouldBeIsOnlyAWarning) {
  write_cached(folder_, "key", "value");
  const std::string path = file();
  fs::remove(path);
  fs::create_directories(path + "/inside");
  EXPECT_EQ(read_cached(folder_, "key"), std::nullopt);
  const test::LogCapture log;
  EXPECT_NO_THROW(write_cached(folder_, "key", "value"));
  EXPECT_NE(log.text(), "");
  EXPECT_EQ(files().size(), 1U) << "nothing temporary is left";
}

}  // namespace
}  // namespace nacre
