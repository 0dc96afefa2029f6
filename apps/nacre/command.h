// The program's commands describe their options with these classes, which hide CLI11. CLI11 takes
// seconds to compile, so only the files that need it include it.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "nacre/base/names.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name that CLI11 uses
class App;
class Option;
}  // namespace CLI

namespace nacre::cli {

// Refers to one option of a command. It is a handle and can be copied like a pointer.
class Setting {
 public:
  explicit Setting(CLI::Option* option) : option_(option) {}

  Setting group(const std::string& heading) const;  // heading in the help text
  Setting add_help(const std::string& more) const;
  Setting show_default() const;
  Setting required() const;
  Setting positive() const;
  Setting not_negative() const;
  Setting between(int low, int high) const;
  Setting between(double low, double high) const;
  // Refuses values for which `wrong` returns a text, which says what is wrong. `wrong` returns an
  // empty text for good values.
  Setting check(std::function<std::string(const std::string&)> wrong) const;
  // Accepts only `names`, in any capitals, and `synonyms`. `what` is the noun for the error
  // message, for example "sampler".
  Setting one_of(const std::string& what, std::vector<std::string> names, std::vector<Synonym> synonyms = {}) const;
  // These two functions set the values that a shell offers when it completes this option. After
  // choices(), the shell offers files, too, because the option may also name a file. one_of() calls
  // only_choices() itself.
  Setting choices(const std::vector<std::string>& names) const;
  Setting only_choices(const std::vector<std::string>& names) const;
  // Replaces the value that the user typed by what `change` returns for it: the value as the
  // program itself writes it.
  Setting written_as(std::function<std::string(const std::string&)> change) const;
  // Returns whether the user asked for this option; only valid after the command line is read.
  // Options from the config.json of a run do not count, because that file holds every setting, even
  // those without effect on the run.
  bool given() const;
  std::string name() const;

 private:
  CLI::Option* option_;
};

// Refers to a command, or to the program itself. It is a handle and can be copied like a pointer.
class Command {
 public:
  // This conversion is implicit, so that a CLI::App can be given where a Command is expected.
  Command(CLI::App& app) : app_(&app) {}  // NOLINT(google-explicit-constructor)

  Command add_subcommand(const std::string& name, const std::string& help) const;
  void require_subcommand() const;
  // Adds an option that sets `value`. T is std::string, int, int64_t, uint64_t or double.
  template <class T>
  Setting add_option(const std::string& names, T& value, const std::string& help = "") const;
  Setting add_flag(const std::string& names, bool& value, const std::string& help) const;
  // Adds a flag that sets `value` to false.
  Setting add_off_flag(const std::string& names, bool& value, const std::string& help) const;
  // These functions add options that call a function instead of setting a variable. The function of
  // add_list gets all values of a repeated option.
  Setting add_call(const std::string& names, const std::function<void(const std::string&)>& call,
                   const std::string& help) const;
  Setting add_list(const std::string& names, const std::function<void(const std::vector<std::string>&)>& call,
                   const std::string& help) const;
  Setting add_flag_call(const std::string& names, std::function<void()> call, const std::string& help) const;
  Setting get_option(const std::string& name) const;
  bool has_option(const std::string& name) const;
  bool given(const std::string& name) const;  // false if there is no such option
  // Returns the names of all options that the user gave.
  std::vector<std::string> all_given() const;
  // Removes options that a group added but that this command does not use.
  Command without(const std::vector<std::string>& names) const;
  void callback(std::function<void()> run) const;
  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

// Says what a shell offers as the value of an option.
struct OfferedValues {
  std::vector<std::string> names;
  bool files = true;  // whether the shell also offers files
};
// Returns what Setting::choices() or Setting::only_choices() has set for an option.
OfferedValues choices_of(CLI::Option& option);

// Stores the names of the options that only the config.json of a run has set (config_file.h);
// given() returns false for them.
void set_by_run(const std::set<std::string>& names);

// Returns whether the whole text is a number, and sets `value` to it. It reads numbers as the
// values of options are read.
bool parse_double(const std::string& text, double& value);

}  // namespace nacre::cli
