#include "resume.h"

#include <algorithm>
#include <filesystem>

#include "nacre/base/error.h"

namespace nacre::cli {

std::vector<std::string> with_resumed_run(const std::vector<std::string>& arguments) {
  const std::string option = "--resume";
  const auto names = [](const std::string& word, const std::string& name) {
    return word == name || word.starts_with(name + "=");
  };
  std::vector<std::string> all;
  std::string folder;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word.starts_with(option + "=")) {
      folder = word.substr(option.size() + 1);
    } else if (word == option && i + 1 < arguments.size() && !arguments[i + 1].starts_with("-")) {
      folder = arguments[++i];
    } else {
      all.push_back(word);
      continue;
    }
    all.push_back(option);
  }
  if (folder.empty()) return arguments;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::string settings = folder + "/config.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(settings, ignored))
    throw UserError("--resume", "'" + folder + "' is not the folder of a run",
                    "name a folder that nacre train has written");
  for (const char* other : {"--checkpoint", "--config"}) {
    if (std::any_of(all.begin(), all.end(), [&](const std::string& word) { return names(word, other); }))
      throw UserError("--resume " + folder, std::string("takes over the settings of the run, and so does ") + other,
                      "leave one of them out");
  }
  all.insert(all.end(), {"--checkpoint", folder, "--config", settings});
  return all;
}

}  // namespace nacre::cli
