#include "config_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"
#include "nacre/train/config.h"
#include "nacre/train/model_paths.h"
#include "nesting.h"
#include "spelling.h"

namespace nacre::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostBytes = size_t{1} << 20;
constexpr std::string_view kSettingsOption = "--config";

// Returns the texts of the pipes that this thread has read, by their paths. They are kept, because
// a pipe can be read only once.
std::map<std::string, std::string>& texts_of_pipes() {
  static thread_local std::map<std::string, std::string> texts;
  return texts;
}

[[noreturn]] void fail(const std::string& where, const std::string& what, const std::string& remedy = "") {
  throw UserError(where, what, remedy);
}

std::string number_text(double value) { return fmt::format("{}", value); }

// Collects the settings of a file as words of the command line, and checks them against the options
// of one command.
class Words {
 public:
  explicit Words(const CLI::App& command) : command_(command) {}

  // Adds a setting. `where` names the file and the line for messages; `key` is written as in the
  // file; `values` holds one value, or those of a list.
  void add(const std::string& where, const std::string& key, const std::vector<std::string>& values) {
    const std::string name = spelled_our_way({"--" + key}).front();
    const CLI::Option* option = find(where, key, name);
    const bool flag = option->get_items_expected_max() == 0;
    if (flag) {
      if (values.size() != 1 || (values[0] != "true" && values[0] != "false"))
        fail(where, "'" + key + "' is either true or false");
      if (values[0] == "true") words.push_back(name);
    } else if (name == "--set") {
      for (const std::string& value : values) words.push_back(name + "=" + value);
    } else {
      std::string text;
      for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
      words.push_back(name + "=" + text);
    }
    if (!names.insert(option->get_name()).second && by_hand && name != "--set")
      fail(where, "'" + key + "' is set twice in this file", "leave one of the two out");
  }

  std::vector<std::string> words;
  std::set<std::string> names;
  bool by_hand = false;  // whether a person wrote the file

 private:
  const CLI::Option* find(const std::string& where, const std::string& key, const std::string& name) const {
    if (name == "--config") fail(where, "a settings file cannot name another one");
    const CLI::Option* option = command_.get_option_no_throw(name);
    if (option != nullptr && name != "--help") return option;
    std::vector<std::string> known;
    for (const CLI::Option* o : command_.get_options()) {
      for (const std::string& n : o->get_lnames()) known.push_back(n);
    }
    const std::string like = nearest_name(key, known);
    fail(where, "unknown setting '" + key + "'",
         like.empty() ? "nacre " + command_.get_name() + " --help lists them" : "did you mean '" + like + "'?");
  }

  const CLI::App& command_;
};

// ---- TOML

std::string toml_value(const std::string& where, const std::string& key, const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return number_text(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  fail(where, "'" + key + "' must be a text, a number, true or false, or a list of these");
}

void add_table(const std::string& path, const toml::table& table, bool knobs, Words& words) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const std::string where = at_line(path, static_cast<int64_t>(node.source().begin.line));
    if (const toml::table* inner = node.as_table()) {
      add_table(path, *inner, name == "set", words);
    } else if (knobs) {
      words.add(where, "set", {name + "=" + toml_value(where, name, node)});
    } else if (const toml::array* list = node.as_array()) {
      std::vector<std::string> values;
      for (const toml::node& item : *list) values.push_back(toml_value(where, name, item));
      words.add(where, name, values);
    } else {
      words.add(where, name, {toml_value(where, name, node)});
    }
  }
}

void read_toml(const std::string& path, const std::string& text, Words& words) {
  refuse_nesting(path, text, true);
  toml::table table;
  try {
    table = toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    fail(at_line(path, static_cast<int64_t>(error.source().begin.line)),
         "is not TOML: " + std::string(error.description()), "write KEY = VALUE; texts stand in quotation marks");
  }
  add_table(path, table, false, words);
}

// ---- JSON: the config.json that a run wrote

// Returns the keys of the section "model" whose values follow from the data, so that they are not
// settings.
const std::set<std::string>& derived_keys() {
  static const std::set<std::string> keys = {"in_dim", "out_dim", "num_edge_types", "edge_weighted",
                                             "loss",   "kinds",   "class_names"};
  return keys;
}

// Returns the keys of config.json whose options have other names, with these names.
const std::map<std::string, std::string>& renamed_keys() {
  static const std::map<std::string, std::string> keys = {
      {"aggregator", "aggr"}, {"weighted", "sample-weighted"}, {"type_fanout", "fanout"}, {"knobs", "set"}};
  return keys;
}

std::string json_value(const std::string& path, const std::string& key, const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_float()) return number_text(value.get<double>());
  if (value.is_number()) return value.dump();
  if (value.is_array()) {  // fan-outs for each edge type
    std::string text;
    for (const json& item : value) text += (text.empty() ? "" : "/") + json_value(path, key, item);
    return text;
  }
  fail(path, "'" + key + "' must be a text, a number, true or false, or a list of these");
}

// Returns whether a value stands for "not given": an empty text or list, or a number with that
// meaning.
bool says_nothing(const std::string& key, const json& value) {
  static const std::set<std::string> zero = {"num_nodes", "budget", "memory_limit", "threads"};
  if (value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty())) return true;
  if (value.is_array() && value.empty()) return true;
  return zero.contains(key) && value.is_number_integer() && value.get<int64_t>() == 0;
}

// Adds the settings of an object of config.json, which is the section `section` (empty: the whole
// file). `folder` is the folder in which the run was started; paths of data and models are relative
// to it.
void add_json(const std::string& path, const std::string& folder, const std::string& section, const json& object,
              Words& words) {
  const bool several_kinds = section == "model" && !object.value("kinds", json::array()).empty();
  for (const auto& [key, value] : object.items()) {
    if (says_nothing(key, value) || (section == "data" && key == "folder")) continue;
    if (section == "model" && key == "model" && object.contains("file")) continue;
    if (section == "model" && key == "file") {
      words.add(path, "model", {model_file_again(json_value(path, key, value), folder)});
    } else if (several_kinds && key == "in_dim") {
      words.add(path, "input-dim", {json_value(path, key, value)});
    } else if (section == "model" && derived_keys().contains(key)) {
      continue;
    } else if (value.is_object() && key == "knobs") {
      for (const auto& [knob, number] : value.items())
        words.add(path, "set", {knob + "=" + json_value(path, knob, number)});
    } else if (value.is_object() && section.empty()) {
      add_json(path, folder, key, value, words);
    } else {
      const auto other = renamed_keys().find(key);
      std::vector<std::string> values;
      for (const json& item : value.is_array() ? value : json::array({value}))
        values.push_back(json_value(path, key, item));
      if (section == "data" && value.is_string()) values = {found_again(values[0], folder)};
      words.add(path, other == renamed_keys().end() ? key : other->second, values);
    }
  }
}

void read_json(const std::string& path, const std::string& text, Words& words) {
  refuse_nesting(path, text, false);
  json object;
  try {
    object = json::parse(text);
  } catch (const json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    fail(at_line(path, 1 + std::count(text.begin(), end, '\n')), "is not JSON", "give the config.json of a run");
  }
  if (!object.is_object()) fail(path, "holds no settings", "give the config.json of a run");
  try {
    const json data = object.value("data", json::object());
    add_json(path, data.is_object() ? data.value("folder", std::string()) : "", "", object, words);
  } catch (const json::exception&) {
    fail(path, "holds no usable settings", "give the config.json of a run");
  }
}

// Leaves out what the config.json of a run says of its devices if the user names devices by hand,
// because a run may go on with other devices.
void leave_out_devices(const std::set<std::string>& by_hand, FileSettings& settings) {
  std::vector<std::string> names;
  if (by_hand.contains("--devices")) {
    names = {"--device", "--threads", "--shares"};
  } else if (by_hand.contains("--device") || by_hand.contains("--threads")) {
    names = {"--devices", "--shares", "--partition", "--halo-rows", "--no-overlap", "--comm", "--comm-timeout"};
  }
  for (const std::string& name : names) {
    if (settings.of_runs.contains(name))
      std::erase_if(settings.words, [&](const std::string& word) { return word.substr(0, word.find('=')) == name; });
  }
}

bool is_json(const std::string& path, const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return path.ends_with(".json") || (first != std::string::npos && text[first] == '{');
}

// Returns the text of a file of settings. Reads at most 1 MiB, because `path` may also be a device
// without an end. Keeps the text of a pipe in texts_of_pipes().
std::string read_settings(const std::string& path) {
  const auto too_large = [&] { fail(path, "is too large for a file of settings", "it may have at most 1 MiB"); };
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error) || !std::filesystem::exists(path, error) ||
      std::filesystem::is_directory(path, error)) {
    if (std::filesystem::is_regular_file(path, error) && std::filesystem::file_size(path, error) > kMostBytes)
      too_large();
    return read_file(path);
  }
  std::string text(kMostBytes + 1, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMostBytes) too_large();
  texts_of_pipes().try_emplace(path, text);
  return text;
}

// Returns the path that the argument at `i` gives to --config; otherwise an empty text.
std::string settings_path(const std::vector<std::string>& arguments, size_t i) {
  const std::string& word = arguments[i];
  if (word == kSettingsOption && i + 1 < arguments.size()) return arguments[i + 1];
  const bool joined = word.starts_with(kSettingsOption) && word.substr(kSettingsOption.size()).starts_with('=');
  return joined ? word.substr(kSettingsOption.size() + 1) : "";
}

// Returns the name of a new file in memory with this text. The file is left open, so that it
// outlives this program if another one replaces it.
std::string file_in_memory(const std::string& path, std::string_view text) {
  const int file = memfd_create("settings", 0);
  while (file >= 0 && !text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written <= 0) break;
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (file < 0 || !text.empty()) throw RuntimeError(path, std::string("cannot be kept: ") + std::strerror(errno));
  return fmt::format("/proc/self/fd/{}", file);
}

}  // namespace

FileSettings settings_of_files(const CLI::App& command, const std::vector<std::string>& arguments) {
  FileSettings all;
  if (command.get_option_no_throw(std::string(kSettingsOption)) == nullptr) return all;
  std::set<std::string> of_others;  // options set by hand, typed or in a TOML file
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i].substr(0, arguments[i].find('='));
    if (const CLI::Option* typed = name.starts_with("-") ? command.get_option_no_throw(name) : nullptr)
      of_others.insert(typed->get_name());
    const std::string path = settings_path(arguments, i);
    if (path.empty()) continue;
    const std::string text = read_settings(path);
    Words words(command);
    const bool json_file = is_json(path, text);
    words.by_hand = !json_file;
    json_file ? read_json(path, text, words) : read_toml(path, text, words);
    all.words.insert(all.words.end(), words.words.begin(), words.words.end());
    (json_file ? all.of_runs : of_others).insert(words.names.begin(), words.names.end());
  }
  for (const std::string& name : of_others) all.of_runs.erase(name);
  leave_out_devices(of_others, all);
  return all;
}

std::vector<std::string> with_pipes_kept(std::vector<std::string> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string path = settings_path(arguments, i);
    const auto kept = texts_of_pipes().find(path);
    if (kept == texts_of_pipes().end()) continue;
    const std::string file = file_in_memory(path, kept->second);
    if (arguments[i] == kSettingsOption) {
      arguments[++i] = file;
    } else {
      arguments[i] = fmt::format("{}={}", kSettingsOption, file);
    }
  }
  return arguments;
}

}  // namespace nacre::cli
