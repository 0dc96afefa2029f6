#include "in_python.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "config_file.h"
#include "nacre/base/error.h"

namespace nacre::cli {
namespace {

// The Python interpreter runs this script. The arguments of the script are the folder of the
// package in a build folder, the version of nacre, the file of the model, and the arguments of the
// command line. Ctrl-C ends the script while Python starts. What the file of the model prints goes
// to stderr, so that it does not mix with the results.
constexpr const char* kProgram = R"py(
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
sys.stdout = sys.stderr
beside, version, file = sys.argv[1:4]
del sys.argv[1:4]
sys.path[0:1] = [beside] if beside else []
remedy = "install it with pip install, or name its interpreter with NACRE_PYTHON"
try:
    import nacre
    from nacre.__main__ import main
except ModuleNotFoundError as error:
    if error.name not in ("nacre", "numpy"):
        raise
    missing = "the Python package nacre" if error.name == "nacre" else "NumPy"
    sys.exit(print(f"nacre: {file}: is a model written in Python, which needs {missing} ({remedy})", file=sys.stderr) or 2)
if nacre.__version__ != version:
    sys.exit(print(f"nacre: {file}: needs the Python package nacre {version}, but {sys.executable} has "
                   f"{nacre.__version__} ({remedy})", file=sys.stderr) or 2)
sys.exit(main())
)py";

// Returns the folder of the package that `make python` has built beside this program, if there is
// one.
std::string package_beside() {
  std::error_code ignored;
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "python";
  return std::filesystem::exists(folder / "nacre" / "__init__.py", ignored) ? folder.string() : "";
}

}  // namespace

void run_in_python(const std::vector<std::string>& arguments, const std::string& file) {
  const char* named = std::getenv("NACRE_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  std::vector<std::string> words = {python, "-c", kProgram, package_beside(), NACRE_VERSION, file};
  const std::vector<std::string> same = with_pipes_kept(arguments);
  words.insert(words.end(), same.begin(), same.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  execvp(python.c_str(), pointers.data());
  throw UserError(file, "is a model written in Python, but '" + python + "' cannot be started: " + std::strerror(errno),
                  "install Python, or name an interpreter with NACRE_PYTHON");
}

}  // namespace nacre::cli
