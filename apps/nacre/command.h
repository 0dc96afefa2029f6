// The command line as the program's commands describe it. CLI11 stands behind it and takes seconds
// to compile, so only the files that must see it do.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "nacre/base/names.h"

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 calls it
class App;
class Option;
}  // namespace CLI

namespace nacre::cli {

// One option of a command: a handle, copied like a pointer.
class Setting {
 public:
  explicit Setting(CLI::Option* option) : option_(option) {}

  Setting group(const std::string& heading) const;  // in the help
  Setting add_help(const std::string& more) const;
  Setting show_default() const;
  Setting required() const;
  Setting positive() const;
  Setting not_negative() const;
  Setting between(int low, int high) const;
  Setting between(double low, double high) const;
  // `wrong` answers what is wrong with a value, or nothing.
  Setting check(std::function<std::string(const std::string&)> wrong) const;
  // The value is one of `names`, in whatever capitals, or a synonym: `what` it names is for the
  // message.
  Setting one_of(const std::string& what, std::vector<std::string> names, std::vector<Synonym> synonyms = {}) const;
  // `change` answers how the program itself writes a value.
  Setting written_as(std::function<std::string(const std::string&)> change) const;
  // Whether a user asked for it, once the command line is read. What the config.json of a run says
  // does not count: it holds every setting, also those that do not matter for the run.
  bool given() const;
  std::string name() const;

 private:
  CLI::Option* option_;
};

// A command, or the program itself: a handle, too.
class Command {
 public:
  Command(CLI::App& app) : app_(&app) {}  // NOLINT(google-explicit-constructor): commands may be written with CLI11

  Command add_subcommand(const std::string& name, const std::string& help) const;
  void require_subcommand() const;
  // For std::string, int, int64_t, uint64_t and double.
  template <class T>
  Setting add_option(const std::string& names, T& value, const std::string& help = "") const;
  Setting add_flag(const std::string& names, bool& value, const std::string& help) const;
  // makes it false
  Setting add_off_flag(const std::string& names, bool& value, const std::string& help) const;
  // Options that call instead of setting a variable; add_list takes all values of a repeated
  // option.
  Setting add_call(const std::string& names, const std::function<void(const std::string&)>& call,
                   const std::string& help) const;
  Setting add_list(const std::string& names, const std::function<void(const std::vector<std::string>&)>& call,
                   const std::string& help) const;
  Setting add_flag_call(const std::string& names, std::function<void()> call, const std::string& help) const;
  Setting get_option(const std::string& name) const;
  bool has_option(const std::string& name) const;
  bool given(const std::string& name) const;  // false where there is no such option
  // Takes away options that a group brought and this command has no use for.
  Command without(const std::vector<std::string>& names) const;
  void callback(std::function<void()> run) const;

 private:
  CLI::App* app_;
};

// Options that only the config.json of a run has set (config_file.h).
void set_by_run(const std::set<std::string>& names);

// Whether all of `text` is a number, read as the values of options are.
bool parse_double(const std::string& text, double& value);

}  // namespace nacre::cli
