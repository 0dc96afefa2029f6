#include "nacre/cost/profile.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestName = 120;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the path of the profile. The name of the file has the letters and digits of the machine's
// name. If that is very long, the file's name has only its end, which tells the number of threads.
std::string profile_path(const std::string& folder, const std::string& machine) {
  std::string name;
  for (const char c : machine) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  if (name.size() > kLongestName) name.erase(0, name.size() - kLongestName);
  return (fs::path(folder) / ("profile-" + name + ".json")).string();
}

// Warns about each problem once, because planning asks for the profile many times.
void warn_once(const std::string& line) {
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::lock_guard lock(mutex);
  if (told.insert(line).second) log_warning(line);
}

// Returns the text with single blanks between the words.
std::string tidy(const std::string& text) {
  std::string words;
  for (const char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank) words += c;
    if (blank && !words.empty() && words.back() != ' ') words += ' ';
  }
  while (!words.empty() && words.back() == ' ') words.pop_back();
  return words;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || tidy(line.substr(0, colon)) != "model name") continue;
    if (std::string name = tidy(line.substr(colon + 1)); !name.empty()) return name;
  }
  // Not every architecture names its processor in /proc/cpuinfo. If there is no name, the name of
  // the architecture takes its place.
  utsname system{};
  return uname(&system) == 0 ? std::string(system.machine) + " processor" : "unknown processor";
}

}  // namespace

std::string cache_folder() {
  if (std::string own = variable("NACRE_CACHE"); !own.empty()) return own;
  // The XDG specification says that relative paths must be ignored.
  if (const fs::path base = variable("XDG_CACHE_HOME"); base.is_absolute()) return (base / "nacre").string();
  const std::string home = variable("HOME");
  return home.empty() ? "" : (fs::path(home) / ".cache" / "nacre").string();
}

std::optional<DeviceProfile> load_profile(const std::string& machine, const std::string& version) {
  const std::string folder = cache_folder();
  if (folder.empty()) return std::nullopt;
  const std::string path = profile_path(folder, machine);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    DeviceProfile profile = parse_profile(read_file(path), path);
    if (profile.machine != machine) {
      throw UserError(path,
                      fmt::format("was measured on \"{}\", but this machine is \"{}\"", profile.machine, machine));
    }
    if (profile.version != version) {
      throw UserError(path, fmt::format("was measured with the kernels \"{}\", but this program has \"{}\"",
                                        profile.version, version));
    }
    return profile;
  } catch (const std::exception& error) {
    warn_once(fmt::format("the device profile is not used: {} (measure again with nacre profile)", error.what()));
    return std::nullopt;
  }
}

void save_profile(const DeviceProfile& profile) {
  try {
    const std::string folder = cache_folder();
    if (folder.empty()) {
      log_verbose("the device profile is not kept: none of NACRE_CACHE, XDG_CACHE_HOME and HOME is set");
      return;
    }
    const std::string path = profile_path(folder, profile.machine);
    const std::string text = profile_json(profile);
    parse_profile(text, path);  // a text that cannot be read back must not replace a good file
    fs::create_directories(folder);
    write_file(path, text);
  } catch (const std::exception& error) {
    log_warning(fmt::format("the device profile cannot be stored: {}", error.what()));
  }
}

std::string machine_name(int threads) {
  return fmt::format("{}, {} thread{}", processor_name(), threads, threads == 1 ? "" : "s");
}

}  // namespace nacre
