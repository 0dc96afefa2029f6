// Defines nacre completions and nacre man, and writes the scripts of the shells.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "nacre/base/error.h"
#include "option_table.h"

namespace nacre::cli {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// Adds the word help, after which the name of any command may follow.
std::vector<CommandRow> with_help(std::vector<CommandRow> table) {
  const std::vector<CommandRow> commands = table;
  table.front().subcommands.emplace_back("help");
  for (const CommandRow& command : commands) {
    const bool program = command.name.empty();
    table.push_back({program ? "help" : "help " + command.name,
                     program ? "list the options of a command" : command.help,
                     {},
                     command.subcommands});
  }
  return table;
}

// Returns the words that may follow a command: its subcommands and the names of its options.
std::vector<std::string> words_of(const CommandRow& command) {
  std::vector<std::string> words = command.subcommands;
  for (const OptionRow& option : command.options) {
    if (!option.positional) words.insert(words.end(), option.names.begin(), option.names.end());
    if (option.positional) words.insert(words.end(), option.choices.begin(), option.choices.end());
  }
  return words;
}

// ---- bash

constexpr const char* kBash = R"(# Completions of nacre for bash; made by nacre completions bash.
_nacre() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command= words= i
  # bash takes --option=value for three words.
  if [[ $cur == "=" ]]; then
    cur=
  elif [[ $prev == "=" ]]; then
    prev=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${{command:+$command }}${{COMP_WORDS[i]}}" in
      {})
        command="${{command:+$command }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command:$prev" in
{}  esac
  if [[ $words == "<file>" ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return
  fi
  if [[ -z $words ]]; then
    case "$command" in
{}    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  if [[ ${{#COMPREPLY[@]}} == 0 && $cur != -* ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}}
complete -F _nacre nacre
)";

std::string bash_script(const std::vector<CommandRow>& table) {
  std::string commands, values, options;
  for (const CommandRow& command : table) {
    if (!command.name.empty()) commands += (commands.empty() ? "\"" : "|\"") + command.name + "\"";
    std::vector<std::string> files;
    for (const OptionRow& option : command.options) {
      if (option.positional || !option.takes_value) continue;
      std::vector<std::string> at;
      for (const std::string& name : option.names) at.push_back("\"" + command.name + ":" + name + "\"");
      if (option.choices.empty()) {
        files.insert(files.end(), at.begin(), at.end());
      } else {
        values += fmt::format("    {}) words=\"{}\" ;;\n", joined(at, "|"), joined(option.choices));
      }
    }
    if (!files.empty()) values += fmt::format("    {}) words=\"<file>\" ;;\n", joined(files, "|"));
    options += fmt::format("      \"{}\") words=\"{}\" ;;\n", command.name, joined(words_of(command)));
  }
  return fmt::format(kBash, commands, values, options);
}

// ---- zsh

// Returns the text with escapes for a place inside single quotes where brackets and colons have a
// meaning.
std::string zsh_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string zsh_function(const std::string& name) {
  return "_nacre" + replaced(name.empty() ? "" : "_" + name, " ", "_");
}

// Returns what zsh completes as the value of an option: the name of a function, or a list of words.
// The blank before the function that has arguments keeps zsh from adding arguments of its own.
std::string zsh_values(const OptionRow& option) {
  if (option.choices.empty()) return "_files";
  return option.files ? " _nacre_names_or_files " + joined(option.choices) : "(" + joined(option.choices) + ")";
}

std::string zsh_option(const OptionRow& option) {
  const std::string action = zsh_values(option);
  if (option.positional) return fmt::format("    '*:{}:{}'", zsh_text(option.names.front()), action);
  std::string lines;
  for (const std::string& name : option.names) {
    const std::string value = option.takes_value ? ":value:" + action : "";
    lines += fmt::format("{}    '{}{}[{}]{}'", lines.empty() ? "" : " \\\n", name,
                         option.takes_value && name.starts_with("--") ? "=" : "", zsh_text(option.help), value);
  }
  return lines;
}

constexpr const char* kZsh = R"zsh(#compdef nacre
# Completions of nacre for zsh; made by nacre completions zsh.
_nacre_names_or_files() {
  _alternative "names:value:($*)" "files:file:_files"
}
)zsh";

std::string zsh_script(const std::vector<CommandRow>& table) {
  std::string script = kZsh;
  for (const CommandRow& command : table) {
    if (command.options.empty() && command.subcommands.empty()) {
      script += zsh_function(command.name) + "() {\n  _message 'nothing follows'\n}\n";
      continue;
    }
    std::vector<std::string> lines;
    for (const OptionRow& option : command.options) lines.push_back(zsh_option(option));
    const bool group = !command.subcommands.empty();
    if (group) lines.insert(lines.end(), {"    '1: :->command'", "    '*:: :->rest'"});
    script += fmt::format("{}() {{\n{}  _arguments{} \\\n{}\n", zsh_function(command.name),
                          group ? "  local state line\n" : "", group ? " -C" : "", joined(lines, " \\\n"));
    if (group) {
      std::string names, calls;
      for (const std::string& name : command.subcommands) {
        const std::string full = (command.name.empty() ? "" : command.name + " ") + name;
        std::string help;
        for (const CommandRow& row : table) help = row.name == full ? row.help : help;
        names += fmt::format(" '{}:{}'", name, zsh_text(help));
        calls += fmt::format("        {}) {} ;;\n", name, zsh_function(full));
      }
      script += fmt::format(
          "  case $state in\n    command)\n      local -a names=({} )\n      _describe command names ;;\n    rest)\n"
          "      case $line[1] in\n{}      esac ;;\n  esac\n",
          names, calls);
    }
    script += "}\n";
  }
  return script + "_nacre \"$@\"\n";
}

// ---- fish

std::string fish_text(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_values(const OptionRow& option) {
  if (option.choices.empty()) return "";
  return (option.files ? " -F -a " : " -f -a ") + fish_text(joined(option.choices));
}

std::string fish_script(const std::vector<CommandRow>& table) {
  std::vector<std::string> names;
  for (const CommandRow& command : table) {
    if (!command.name.empty()) names.push_back(fish_text(command.name));
  }
  std::string script = fmt::format(
      R"(# Completions of nacre for fish; made by nacre completions fish.
function __nacre_command
  set -l words (commandline -opc)
  set -l command ''
  for word in $words[2..-1]
    set -l next (string trim -- "$command $word")
    contains -- $next {}; and set command $next
  end
  echo "$command"
end
)",
      joined(names));
  for (const CommandRow& command : table) {
    const std::string head =
        fmt::format("complete -c nacre -n {}", fish_text("test (__nacre_command) = \"" + command.name + "\""));
    for (const std::string& name : command.subcommands) script += fmt::format("{} -f -a {}\n", head, name);
    for (const OptionRow& option : command.options) {
      const std::string values = fish_values(option);
      if (option.positional) {
        if (!values.empty()) script += head + values + "\n";
        continue;
      }
      std::string flags;
      for (const std::string& name : option.names)
        flags += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      script +=
          fmt::format("{}{}{}{} -d {}\n", head, flags, option.takes_value ? " -r" : "", values, fish_text(option.help));
    }
  }
  return script;
}

}  // namespace

std::string completions(const std::string& shell, const std::vector<CommandRow>& table) {
  const std::vector<CommandRow> words = with_help(table);
  if (shell == "bash") return bash_script(words);
  return shell == "zsh" ? zsh_script(words) : fish_script(words);
}

void add_completions(Command app) {
  Command command = app.add_subcommand("completions", "print a script that completes the command line in a shell");
  const auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "the shell: bash, zsh or fish")
      .required()
      .one_of("shell", {"bash", "zsh", "fish"});
  command.callback([shell, app] { fmt::print("{}", completions(*shell, command_table(app))); });
}

void add_man(Command app) {
  Command command = app.add_subcommand("man", "print the man page; pipe it into 'man -l -' to read it");
  command.callback([app] { fmt::print("{}", man_page(command_table(app), NACRE_VERSION)); });
}

}  // namespace nacre::cli
