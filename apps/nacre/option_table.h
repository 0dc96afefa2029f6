// This file lists all commands and options as a table, from which completions and the man page are
// written. The table is read from the objects of CLI11, so there is no second list to keep.
#pragma once

#include <string>
#include <vector>

#include "command.h"

namespace nacre::cli {

struct OptionRow {
  // Names of the option: the long ones first, then the short ones. An argument without a dash has
  // one name.
  std::vector<std::string> names;
  bool positional = false;
  bool takes_value = false;
  std::vector<std::string> choices;  // values that completion offers
  bool files = true;                 // whether completion offers files, too
  std::string group;                 // heading of the option in the help text
  std::string help;                  // description in one line
  std::string usual;                 // default value as the help shows it
};

struct CommandRow {
  std::string name;  // all words of the command, for example "data info"; empty for the program
  std::string help;
  std::vector<OptionRow> options;
  std::vector<std::string> subcommands;  // last words of the names of the subcommands
};

// Returns the program and all its commands, each after its parent.
std::vector<CommandRow> command_table(const Command& program);

// Returns a script that completes the command line in `shell`, which is bash, zsh or fish.
std::string completions(const std::string& shell, const std::vector<CommandRow>& table);
// Returns the man page.
std::string man_page(const std::vector<CommandRow>& table, const std::string& version);

}  // namespace nacre::cli
