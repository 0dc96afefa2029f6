#include <fmt/format.h>

#include "option_table.h"

namespace nacre::cli {
namespace {

// Returns the text with characters escaped that roff would change; for example, roff prints a bare
// hyphen as another character.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

struct Variable {
  const char* name;
  const char* what;
};

// These are the environment variables that users may set. The variables that launchers of MPI set
// are not listed.
constexpr Variable kVariables[] = {
    {"NACRE_CACHE",
     "the folder for profiles, plans and compiled kernels (default: $XDG_CACHE_HOME/nacre, or .cache/nacre in the home "
     "folder)"},
    {"XDG_CACHE_HOME", "the folder for what programs keep, which is used if NACRE_CACHE is not set"},
    {"NACRE_PLUGIN_PATH", "the CUDA plug-in, or its folder"},
    {"CUDA_HOME",
     "the folder of the CUDA toolkit, if the system does not find its libraries; CUDA_PATH is another name"},
    {"NACRE_PYTHON", "the Python that runs models written in Python (default: python3)"},
    {"NO_COLOR", "if it is set and not empty, no colours are used on a terminal"},
    {"TERM", "if it is dumb, plain lines are printed on a terminal"},
    {"BROWSER", "the program in which nacre report --open shows a page (default: that of the desktop)"}};

std::string variables_text() {
  std::string text;
  for (const Variable& v : kVariables) text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(v.name), roff(v.what));
  return text;
}

std::string option_text(const OptionRow& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += names.empty() ? "" : ", ";
    names += option.positional ? "\\fI" + roff(name) + "\\fR" : "\\fB" + roff(name) + "\\fR";
  }
  if (option.takes_value && !option.positional) names += " \\fIVALUE\\fR";
  std::string text = fmt::format(".TP\n{}\n{}", names, roff(option.help));
  if (!option.usual.empty()) text += fmt::format(" (default: {})", roff(option.usual));
  return text + "\n";
}

std::string command_text(const CommandRow& command) {
  std::string text = fmt::format(".SS nacre {}\n{}.\n", roff(command.name), roff(command.help));
  std::vector<std::string> groups;
  for (const OptionRow& option : command.options) {
    bool known = false;
    for (const std::string& group : groups) known = known || group == option.group;
    if (!known) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    if (groups.size() > 1) text += fmt::format(".PP\n\\fI{}\\fR\n", roff(group));
    for (const OptionRow& option : command.options) {
      if (option.group == group && option.names.front() != "--help") text += option_text(option);
    }
  }
  return text;
}

}  // namespace

std::string man_page(const std::vector<CommandRow>& table, const std::string& version) {
  std::string page = fmt::format(
      ".TH NACRE 1 \"\" \"nacre {0}\" \"User Commands\"\n"
      ".SH NAME\nnacre \\- plan and train graph neural networks\n"
      ".SH SYNOPSIS\n.B nacre\n\\fICOMMAND\\fR [\\fIOPTION\\fR ...]\n"
      ".SH DESCRIPTION\n{1}\nAn option may be given twice; the last one counts. Options may be written with "
      "underscores, and as \\fB\\-\\-option=value\\fR. \\fBnacre help\\fR \\fICOMMAND\\fR lists the options of a "
      "command.\n.SH COMMANDS\n",
      roff(version), roff(table.front().help));
  for (const CommandRow& command : table) {
    if (!command.name.empty()) page += command_text(command);
  }
  return page +
         ".SH EXIT STATUS\n0: success. 1: the machine failed. 2: wrong input or usage. 128 plus the number of a "
         "signal: the signal ended the run, after a checkpoint.\n"
         ".SH ENVIRONMENT\n" +
         variables_text();
}

}  // namespace nacre::cli
