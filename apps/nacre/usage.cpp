#include "usage.h"

#include <CLI/CLI.hpp>
#include <cctype>

#include "config_file.h"
#include "nacre/base/error.h"
#include "resume.h"
#include "spelling.h"

namespace nacre::cli {
namespace {

std::vector<std::string> commands_of(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Returns the name of a command with those of its parents, for example "nacre data info".
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

// Returns the arguments with "help data info" turned into "data info --help", and "version" into
// "--version".
std::vector<std::string> help_last(std::vector<std::string> arguments) {
  if (arguments.size() == 1 && arguments.front() == "version") return {"--version"};
  if (arguments.empty() || find_name(arguments.front(), {"help"}) != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

struct Typed {
  CLI::App* command;
  size_t words;  // number of words in the name of the command
};

// Returns the command that the first words name, and rewrites these words as the program spells
// them. Throws UserError if there is no such command.
Typed find_command(CLI::App& app, std::vector<std::string>& arguments) {
  Typed typed{&app, 0};
  for (std::string& word : arguments) {
    const std::vector<std::string> names = commands_of(*typed.command);
    if (names.empty() || word.starts_with("-")) break;
    const auto name = find_name(word, names);
    if (!name) {
      const std::string kind = typed.words == 0 ? "unknown command '" : "unknown subcommand '";
      throw UserError(typed.words == 0 ? "" : full_name(*typed.command), kind + word + "'", suggest(word, names));
    }
    word = *name;
    typed = {typed.command->get_subcommand(*name), typed.words + 1};
  }
  return typed;
}

// Throws UserError if the command needs another word, or if there is a word where only options may
// be.
void check_words(const Typed& typed, const std::vector<std::string>& arguments) {
  const CLI::App& command = *typed.command;
  const std::vector<std::string> commands = commands_of(*typed.command);
  const bool more = typed.words < arguments.size();
  if (!commands.empty() && !more) {
    throw UserError(full_name(command), "needs " + std::string(typed.words == 0 ? "a command" : "a subcommand"),
                    "choose " + listed(commands) + "; nacre help explains them");
  }
  const bool takes_words = !command.get_options([](const CLI::Option* o) { return o->get_positional(); }).empty();
  if (!commands.empty() || takes_words || !more || arguments[typed.words].starts_with("-")) return;
  throw UserError("", "'" + arguments[typed.words] + "' is not expected after " + full_name(command),
                  command.get_option_no_throw("--data") != nullptr ? "name the data with --data"
                                                                   : full_name(command) + " --help lists its options");
}

void check_options(const CLI::App& command, const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    if (word == "--") return;
    if (!word.starts_with("--") || std::isalpha(static_cast<unsigned char>(word[2])) == 0) continue;
    const std::string name = word.substr(0, word.find('='));
    if (const CLI::Option* option = command.get_option_no_throw(name)) {
      if (option->get_items_expected_max() == 0 && name.size() < word.size())
        throw UserError(name, "takes no value", "write it alone, or leave it out");
      continue;
    }
    const std::string where = full_name(command);
    const std::string like = nearest_name(name, options_of(command));
    throw UserError("", "unknown option '" + name + "' of " + where,
                    (like.empty() ? "" : "did you mean '" + like + "'? ") + where + " --help lists them all");
  }
}

}  // namespace

std::vector<std::string> understood(CLI::App& app, std::vector<std::string> arguments) {
  arguments = help_last(std::move(arguments));
  const Typed typed = find_command(app, arguments);
  check_words(typed, arguments);
  arguments = spelled_our_way(std::move(arguments));
  if (typed.command->get_name() == "train") arguments = with_resumed_run(arguments);
  const FileSettings settings = settings_of_files(*typed.command, arguments);
  arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(typed.words), settings.words.begin(),
                   settings.words.end());
  set_by_run(settings.of_runs);
  check_options(*typed.command, arguments);
  return arguments;
}

std::string complaint(const std::string& of_parser) {
  const std::string name = of_parser.substr(0, of_parser.find_first_of(": "));
  if (of_parser.ends_with(" missing")) return name + ": needs a value";
  if (of_parser.ends_with(" is required") && !name.starts_with("-")) return "the " + name + " is missing";
  return of_parser;
}

}  // namespace nacre::cli
