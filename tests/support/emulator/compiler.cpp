#include "support/emulator/compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/file_cache.h"
#include "support/emulator/settings.h"
#include "support/emulator/translate.h"

extern char** environ;

namespace nacre::emulator {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Scratch is a temporary folder for one call of the compiler.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "nacre-emulator-XXXXXX").string();
    NACRE_CHECK(mkdtemp(pattern.data()) != nullptr, "no temporary folder for the emulator's compiler");
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Runs a program with its output in the file `log`, and returns its exit status.
int run(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  NACRE_CHECK(failed == 0, command[0] + " cannot be started: the emulated device needs a C++ compiler");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Returns the log with places in the sources written as NVRTC writes them: FILE(LINE).
std::string like_nvrtc(std::string log) {
  constexpr const char* kEnd = ".cu:";
  for (size_t at = log.find(kEnd); at != std::string::npos; at = log.find(kEnd, at + 1)) {
    const size_t digits = at + 4, end = log.find_first_not_of("0123456789", digits);
    if (end == digits || end == std::string::npos) continue;
    log[at + 3] = '(';
    log[end] = ')';
  }
  return log;
}

std::string compile_now(const std::string& text, const std::string& name, int arch) {
  const Scratch scratch;
  const std::string source = (scratch.path() / (name + ".cpp")).string();
  const std::string image = (scratch.path() / "image.so").string();
  const std::string log = (scratch.path() / "log.txt").string();
  std::ofstream(source, std::ios::binary) << text;
  // With these options, an address that is not aligned to its value stops the program, as it stops
  // a GPU.
  std::vector<std::string> command = {NACRE_EMULATOR_CXX,
                                      "-std=c++17",
                                      "-O1",
                                      "-w",
                                      "-shared",
                                      "-fPIC",
                                      "-fno-rtti",
                                      "-fno-exceptions",
                                      "-fno-strict-aliasing",
                                      "-fno-math-errno",
                                      "-nostdlib",
                                      "-fvisibility=hidden",
                                      "-ffp-contract=off",
                                      "-fsanitize=alignment",
                                      "-fsanitize-undefined-trap-on-error",
                                      std::string("-I") + NACRE_EMULATOR_FOLDER,
                                      source,
                                      "-o",
                                      image,
                                      "-lm"};
  if (Settings::get().finds_races()) command.insert(command.begin() + 1, {"-fsanitize=thread", "-DNACRE_WATCHED"});
  if (run(command, log) != 0) {
    throw InternalError(
        __FILE__, __LINE__,
        name + " does not compile for the emulated sm_" + std::to_string(arch) + ":\n" + like_nvrtc(contents(log)));
  }
  return contents(image);
}

// Returns the image of a source. Keeps images of this process in memory, and images of all
// processes in a folder if NACRE_EMULATOR_CACHE names one. The program's own cache does not know of
// this one: a program whose cache is empty still asks for a compilation, waits and gets its image,
// only sooner.
std::string compile_once(const std::string& text, const std::string& name, int arch) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<std::string, std::string>;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known->find(text); found != known->end()) return found->second;
  }
  const char* folder = std::getenv("NACRE_EMULATOR_CACHE");
  const bool kept = folder != nullptr && *folder != '\0';
  const std::string key = compiler_version() + "\n" + text;
  std::string image;
  if (auto cached = kept ? read_cached(folder, key) : std::nullopt) {
    image = std::move(*cached);
  } else {
    image = compile_now(text, name, arch);
    if (kept) write_cached(folder, key, image);
  }
  const std::lock_guard lock(mutex);
  known->emplace(text, image);
  return image;
}

}  // namespace

std::string compile(const std::string& source, const std::string& name, int arch) {
  Settings::get().count(Fault::compile, "the compilation of " + name);
  Settings::get().pause(20);
  NACRE_CHECK(arch >= 80, name + ": there is no emulated sm_" + std::to_string(arch));
  return compile_once(translate(source, name, arch), name, arch);
}

std::string compiler_version() {
  static const auto* version = new std::string([] {
    std::string shim;
    for (const char* file : {"/cuda_shim.h", "/watch_shim.h", "/thread.h"})
      shim += contents(std::string(NACRE_EMULATOR_FOLDER) + file);
    return std::string(Settings::get().finds_races() ? "watching " : "") +
           "emulator 1, " NACRE_EMULATOR_CXX " " NACRE_EMULATOR_CXX_VERSION ", shim " +
           std::to_string(std::hash<std::string>()(shim));
  }());
  return *version;
}

}  // namespace nacre::emulator
