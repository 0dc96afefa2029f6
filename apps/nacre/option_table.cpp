#include "option_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <utility>

namespace nacre::cli {
namespace {

std::string in_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space || (!line.empty() && line.back() != ' ')) line += space ? ' ' : c;
  }
  return line;
}

OptionRow row_of(CLI::Option& option) {
  OptionRow row;
  row.positional = option.get_positional();
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  if (row.names.empty()) row.names.push_back(option.get_name());
  row.takes_value = option.get_items_expected_max() > 0;
  OfferedValues offered = choices_of(option);
  row.choices = std::move(offered.names);
  row.files = offered.files;
  row.group = option.get_group();
  row.help = in_one_line(option.get_description());
  row.usual = option.get_default_str();
  return row;
}

void add_rows(CLI::App& app, const std::string& name, std::vector<CommandRow>& table) {
  CommandRow row{name, in_one_line(app.get_description()), {}, {}};
  for (CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) row.options.push_back(row_of(*option));
  }
  const std::vector<CLI::App*> commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : commands) row.subcommands.push_back(command->get_name());
  table.push_back(std::move(row));
  for (CLI::App* command : commands) add_rows(*command, (name.empty() ? "" : name + " ") + command->get_name(), table);
}

}  // namespace

std::vector<CommandRow> command_table(const Command& program) {
  std::vector<CommandRow> table;
  add_rows(program.app(), "", table);
  return table;
}

}  // namespace nacre::cli
