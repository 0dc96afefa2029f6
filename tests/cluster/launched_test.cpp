#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "nacre/cluster/mpi.h"

namespace nacre {
namespace {

// Sets variables of the environment for a while, and hides the others that launchers set.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& wanted) {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_NAMESPACE", "PMIX_RANK",
                             "SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}) {
      const char* before = std::getenv(name);
      before_[name] = before != nullptr ? std::optional<std::string>(before) : std::nullopt;
      unsetenv(name);
    }
    for (const auto& [name, value] : wanted) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : before_) {
      if (value) {
        setenv(name.c_str(), value->c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

bool launched_with(const std::map<std::string, std::string>& wanted) {
  const Environment environment(wanted);
  return launched_by_mpi();
}

TEST(LaunchedByMpi, follows_the_environment) {
  EXPECT_FALSE(launched_with({}));
  EXPECT_TRUE(launched_with({{"OMPI_COMM_WORLD_SIZE", "1"}}));
  EXPECT_FALSE(launched_with({{"OMPI_COMM_WORLD_SIZE", ""}}));
  EXPECT_TRUE(launched_with({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}));
  EXPECT_FALSE(launched_with({{"PMI_SIZE", "2"}}));
  EXPECT_TRUE(launched_with({{"PMIX_NAMESPACE", "prte-1"}, {"PMIX_RANK", "3"}}));
}

TEST(LaunchedByMpi, steps_of_slurm_count_but_scripts_do_not) {
  const std::map<std::string, std::string> script = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}};
  EXPECT_FALSE(launched_with(script));
  auto step = script;
  step["SLURM_STEP_NUM_TASKS"] = "4";
  EXPECT_TRUE(launched_with(step));
  step["SLURM_STEP_NUM_TASKS"] = "1";  // srun --pty bash
  step["PMIX_NAMESPACE"] = "slurm";
  step["PMIX_RANK"] = "0";
  EXPECT_FALSE(launched_with(step));
}

TEST(MpiRanks, a_launcher_without_the_plug_in_is_an_error_of_the_user) {
  // The test does not lie beside the plug-in.
  EXPECT_THROW(MpiRanks(), UserError);
}

}  // namespace
}  // namespace nacre
