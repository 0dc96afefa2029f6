#include "config_file.h"

#include <CLI/CLI.hpp>
#include <sstream>

#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"

namespace nacre::cli {
namespace {

std::vector<std::string> settings_of(const std::string& path) {
  std::istringstream text(read_file(path));
  std::vector<std::string> words;
  try {
    for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(text)) {
      if (item.name == "++" || item.name == "--") continue;  // a table begins or ends
      if (item.name == "config") throw UserError(path, "names another --config file");
      for (const std::string& value : item.inputs) words.push_back("--" + item.name + "=" + value);
    }
  } catch (const CLI::Error& e) {
    throw UserError(path, std::string("is no TOML file: ") + e.what());
  }
  return words;
}

}  // namespace

std::vector<std::string> with_config_files(const std::vector<std::string>& arguments) {
  const std::string option = "--config";
  std::vector<std::string> settings;
  for (size_t i = 1; i < arguments.size(); ++i) {
    std::string path;
    if (arguments[i] == option && i + 1 < arguments.size()) path = arguments[i + 1];
    if (arguments[i].starts_with(option + "=")) path = arguments[i].substr(option.size() + 1);
    if (path.empty()) continue;
    for (std::string& word : settings_of(path)) settings.push_back(std::move(word));
  }
  std::vector<std::string> all = arguments;
  if (!all.empty()) all.insert(all.begin() + 1, settings.begin(), settings.end());
  return all;
}

}  // namespace nacre::cli
