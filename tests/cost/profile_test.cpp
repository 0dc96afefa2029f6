// Tests of device profiles: their text, their file, and its place.
#include "nacre/cost/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>

#include "cost/synthetic.h"
#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"
#include "support/log_capture.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMachineName = "Some CPU @ 2.60GHz, 2 threads";

// Each test has an empty folder and no cache variables. The caller's variables are restored
// afterwards.
class ProfileTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"NACRE_CACHE", "XDG_CACHE_HOME", "HOME"}) {
      if (const char* value = std::getenv(name)) saved_[name] = value;
      unsetenv(name);
    }
    root_ = (fs::temp_directory_path() / ("nacre_profile_" + std::to_string(getpid()) + "_" +
                                          testing::UnitTest::GetInstance()->current_test_info()->name()))
                .string();
    fs::create_directories(root_);
    use(root_ + "/cache");
  }
  void TearDown() override {
    fs::remove_all(root_);
    for (const char* name : {"NACRE_CACHE", "XDG_CACHE_HOME", "HOME"}) unsetenv(name);
    for (const auto& [name, value] : saved_) setenv(name.c_str(), value.c_str(), 1);
  }

  static void use(const std::string& folder) { setenv("NACRE_CACHE", folder.c_str(), 1); }
  static DeviceProfile sample_profile() {
    test::Rng rng(21);
    DeviceProfile profile;
    profile.machine = kMachineName;
    profile.version = "0.1.0 avx2";
    profile.cache_bytes = 33554432;
    profile.gemm_flops = 1.0 / 3 * 1e12;
    profile.stream_bytes = 2.1e10;
    profile.near_gather_bytes = 7e10 / 3;
    profile.far_gather_bytes = 5.3e9;
    profile.launch_seconds = 1e-6 / 7;
    profile.model = CostModel::fitted(test::random_samples(rng, "spmm", 50, test::kMachine, 0.1));
    return profile;
  }
  // Returns the path of the only profile in the folder.
  static std::string file() {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(cache_folder())) paths.push_back(entry.path().string());
    EXPECT_EQ(paths.size(), 1U);
    return paths.empty() ? "" : paths[0];
  }
  // Returns the warnings of one load, which must find nothing.
  static std::string refused(const std::string& machine = kMachineName, const std::string& version = "0.1.0 avx2") {
    test::LogCapture log;
    std::optional<DeviceProfile> loaded;
    EXPECT_NO_THROW(loaded = load_profile(machine, version));
    EXPECT_FALSE(loaded.has_value());
    return log.take();
  }

  std::string root_;
  std::map<std::string, std::string> saved_;
};

void expect_same(const DeviceProfile& a, const DeviceProfile& b) {
  EXPECT_EQ(a.machine, b.machine);
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.cache_bytes, b.cache_bytes);
  EXPECT_EQ(a.gemm_flops, b.gemm_flops);
  EXPECT_EQ(a.stream_bytes, b.stream_bytes);
  EXPECT_EQ(a.near_gather_bytes, b.near_gather_bytes);
  EXPECT_EQ(a.far_gather_bytes, b.far_gather_bytes);
  EXPECT_EQ(a.launch_seconds, b.launch_seconds);
  EXPECT_EQ(a.model.json(), b.model.json());
}

TEST_F(ProfileTest, TextComesBackBitForBit) {
  const DeviceProfile profile = sample_profile();
  expect_same(parse_profile(profile_json(profile), "text"), profile);
  expect_same(parse_profile(profile_json({}), "text"), {});
}

TEST_F(ProfileTest, FileComesBackBitForBit) {
  EXPECT_EQ(refused(), "") << "no folder yet";
  save_profile(sample_profile());
  const auto loaded = load_profile(kMachineName, "0.1.0 avx2");
  ASSERT_TRUE(loaded.has_value());
  expect_same(*loaded, sample_profile());
  EXPECT_EQ(fs::path(file()).filename(), "profile-some-cpu-2-60ghz-2-threads.json");
}

TEST_F(ProfileTest, EveryMachineHasItsFile) {
  DeviceProfile profile = sample_profile();
  save_profile(profile);
  profile.machine = std::string(4000, 'x') + "/.., 8 threads";
  profile.cache_bytes = 8;
  save_profile(profile);
  EXPECT_EQ(load_profile(profile.machine, profile.version).value().cache_bytes, 8);
  EXPECT_EQ(load_profile(kMachineName, profile.version).value().cache_bytes, 33554432);
  profile.cache_bytes = 9;
  save_profile(profile);
  EXPECT_EQ(load_profile(profile.machine, profile.version).value().cache_bytes, 9);
  EXPECT_EQ(refused("Some CPU @ 2.60GHz, 4 threads"), "") << "not measured";
}

TEST_F(ProfileTest, AnotherVersionOrMachineIsNotTaken) {
  save_profile(sample_profile());
  const std::string version = refused(kMachineName, "0.2.0");
  EXPECT_NE(version.find("was measured with the kernels \"0.1.0 avx2\", but this program has \"0.2.0\""),
            std::string::npos)
      << version;
  DeviceProfile other = sample_profile();
  other.machine = "Another CPU, 2 threads";
  write_file(file(), profile_json(other));
  const std::string machine = refused();
  EXPECT_NE(machine.find("was measured on \"Another CPU, 2 threads\""), std::string::npos) << machine;
  EXPECT_NE(machine.find(file()), std::string::npos) << machine;
}

TEST_F(ProfileTest, DamagedFilesAreReportedOnce) {
  save_profile(sample_profile());
  const std::string path = file();
  const std::string good = read_file(path);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::map<std::string, std::string> damaged = {
      {"empty", ""},
      {"cut", good.substr(0, good.size() / 2)},
      {"without its end", good.substr(0, good.size() - 1)},
      {"bytes", std::string("\0\xff\xfe", 3)},
      {"array", "[1]"},
      {"another format", changed("nacre-profile", "nacre-plan")},
      {"no machine", changed("\"machine\"", "\"m\"")},
      {"machine a number", changed("\"machine\": \"", "\"machine\": 3, \"was\": \"")},
      {"negative", changed("\"stream_bytes\": ", "\"stream_bytes\": -1, \"was\": ")},
      {"half a byte", changed("\"cache_bytes\": ", "\"cache_bytes\": 0.5, \"was\": ")},
      {"too many bytes", changed("\"cache_bytes\": ", "\"cache_bytes\": 18446744073709551615, \"was\": ")},
      {"no model", changed("\"model\"", "\"m\"")},
      {"damaged model", changed("\"kinds\"", "\"k\"")}};
  for (const auto& [name, text] : damaged) {
    SCOPED_TRACE(name);
    // Every case has its own path, because a warning that was given is not repeated.
    use(root_ + "/" + name);
    fs::create_directories(cache_folder());
    write_file((fs::path(cache_folder()) / fs::path(path).filename()).string(), text);
    const std::string warning = refused();
    EXPECT_EQ(warning.rfind("warning: the device profile is not used: ", 0), 0U) << warning;
    EXPECT_NE(warning.find(file()), std::string::npos) << warning;
    EXPECT_EQ(refused(), "") << "told already";
  }
}

TEST_F(ProfileTest, AFolderInTheWayIsOnlyAWarning) {
  save_profile(sample_profile());
  const std::string path = file();
  fs::remove(path);
  fs::create_directories(path + "/inside");
  EXPECT_NE(refused(), "");
  test::LogCapture log;
  EXPECT_NO_THROW(save_profile(sample_profile()));
  EXPECT_EQ(log.take().rfind("warning: the device profile cannot be stored: ", 0), 0U);
  EXPECT_EQ(file(), path) << "nothing temporary is left";
}

TEST_F(ProfileTest, AFolderThatCannotBeWrittenIsOnlyAWarning) {
  write_file(root_ + "/file", "in the way");
  for (const std::string& folder : {root_ + "/file", root_ + "/file/below"}) {
    use(folder);
    test::LogCapture log;
    EXPECT_NO_THROW(save_profile(sample_profile()));
    EXPECT_EQ(log.take().rfind("warning: the device profile cannot be stored: ", 0), 0U) << folder;
    EXPECT_EQ(refused(), "") << folder;
  }
  use("");  // there is no home folder either
  test::LogCapture log;
  EXPECT_NO_THROW(save_profile(sample_profile()));
  EXPECT_EQ(log.take(), "") << "only --verbose tells that there is no cache folder";
  EXPECT_EQ(refused(), "");
}

TEST_F(ProfileTest, FiguresThatAreNoNumbersDoNotReplaceGoodOnes) {
  save_profile(sample_profile());
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1.0}) {
    DeviceProfile profile = sample_profile();
    profile.gemm_flops = bad;
    test::LogCapture log;
    EXPECT_NO_THROW(save_profile(profile));
    EXPECT_NE(log.take().find("\"gemm_flops\""), std::string::npos);
  }
  expect_same(load_profile(kMachineName, "0.1.0 avx2").value(), sample_profile());
}

TEST_F(ProfileTest, MalformedTextSaysWhere) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse_profile(text, "profile.json");
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string good = profile_json(sample_profile());
  EXPECT_EQ(message("{\n\n  oops").rfind("profile.json: is not valid JSON: parse error at line 3, column", 0), 0U);
  EXPECT_EQ(message("{}"), "profile.json: is not a device profile");
  EXPECT_EQ(message("{\"format\": \"nacre-profile\"}"), "profile.json: has no \"machine\"");
  std::string text = good;
  text.replace(text.find("\"kinds\""), 7, "\"k\"");
  EXPECT_EQ(message(text), "profile.json: model: has no \"kinds\"");
  for (size_t size = 0; size < good.size(); size += 7) ASSERT_NE(message(good.substr(0, size)), "accepted") << size;
}

TEST_F(ProfileTest, WhereTheCacheLies) {
  setenv("NACRE_CACHE", "/some/where", 1);
  setenv("XDG_CACHE_HOME", "/xdg/cache", 1);
  setenv("HOME", "/users/me", 1);
  EXPECT_EQ(cache_folder(), "/some/where");
  setenv("NACRE_CACHE", "", 1);
  EXPECT_EQ(cache_folder(), "/xdg/cache/nacre") << "an empty variable is none";
  unsetenv("NACRE_CACHE");
  EXPECT_EQ(cache_folder(), "/xdg/cache/nacre");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache_folder(), "/users/me/.cache/nacre") << "the specification forbids relative paths";
  setenv("XDG_CACHE_HOME", "", 1);
  EXPECT_EQ(cache_folder(), "/users/me/.cache/nacre");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cache_folder(), "/users/me/.cache/nacre");
  unsetenv("HOME");
  EXPECT_EQ(cache_folder(), "");
}

TEST_F(ProfileTest, MachineNameTellsProcessorAndThreads) {
  const std::string two = machine_name(2);
  const std::string end = ", 2 threads";
  ASSERT_GT(two.size(), end.size());
  const std::string processor = two.substr(0, two.size() - end.size());
  EXPECT_EQ(two, processor + end);
  EXPECT_EQ(machine_name(1), processor + ", 1 thread");
  EXPECT_EQ(processor.find_first_of("\n\t:"), std::string::npos) << processor;
  EXPECT_NE(processor.front(), ' ');
  EXPECT_NE(processor.back(), ' ');
  EXPECT_EQ(processor.find("  "), std::string::npos);
}

}  // namespace
}  // namespace nacre
