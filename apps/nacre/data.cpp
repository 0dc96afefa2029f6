// nacre data: what its subcommands are called with.
#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "data_work.h"
#include "options.h"

namespace nacre::cli {
namespace {

std::shared_ptr<DataCommand> add_source(CLI::App& command) {
  auto c = std::make_shared<DataCommand>();
  add_data_options(command, c->config, false);
  // Everywhere else the data set is --data; here it is what the command is about.
  command.remove_option(command.get_option("--data"));
  command.add_option("source", c->config.data, "a file, a folder, or twin:NAME[@scale]")->required();
  add_talk_options(command);
  return c;
}

void add_convert(CLI::App& data) {
  CLI::App& command = *data.add_subcommand("convert", "read any format, write Nacre's own; goes on where it stopped");
  const auto c = add_source(command);
  command.add_option("output", c->output, "a .nacre or .npz file")->required();
  command
      .add_option_function<std::string>(
          "--memory", [c](const std::string& text) { c->convert.memory = parse_size("--memory", text); },
          "most memory for edge lists and arrays, whatever their size; default 2G")
      ->group("Conversion");
  command.add_flag("--self-loops", c->convert.self_loops, "add a loop to every vertex that has none")
      ->group("Conversion");
  command.add_option("--reorder", c->reorder, "number the vertices anew: degree, rcm, rabbit or none")
      ->capture_default_str()
      ->group("Conversion");
  command.add_option("--feature-dtype", c->feature_dtype, "how features are stored: f32, bf16 or f16")
      ->capture_default_str()
      ->group("Conversion");
  command.callback([c] { convert_data(*c); });
}

void add_make(CLI::App& data) {
  CLI::App& command = *data.add_subcommand("make", "generate a twin and write it");
  const auto c = add_source(command);
  command.add_option("output", c->output, "a .nacre or .npz file")->required();
  command.callback([c] { convert_data(*c); });
}

void add_verify(CLI::App& data) {
  CLI::App& command = *data.add_subcommand("verify", "check every byte of a .nacre file against its checksums");
  const auto c = std::make_shared<DataCommand>();
  command.add_option("file", c->config.data, "a .nacre file")->required();
  add_talk_options(command);
  command.callback([c] { verify_data(*c); });
}

void add_info(CLI::App& data) {
  CLI::App& command = *data.add_subcommand("info", "what a data set holds, and what it costs to train");
  const auto c = add_source(command);
  command.add_flag("--json", c->json, "one JSON object");
  command.callback([c] { describe_data(*c); });
}

void add_export(CLI::App& data) {
  CLI::App& command = *data.add_subcommand("export", "write what others read");
  const auto c = add_source(command);
  // Of the source it is recognised; here it says what to write.
  command.remove_option(command.get_option("--format"));
  command.add_option("output", c->output, "an .npz file, or a folder that does not exist yet")->required();
  command.add_option("--format", c->layout, "npz, ogb (binary, as papers100M) or saint")->capture_default_str();
  command.callback([c] { export_data(*c); });
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App& data = *app.add_subcommand("data", "list, make, convert, check, export and describe data sets");
  data.require_subcommand(1);
  data.add_subcommand("list", "the twins that can be generated")->callback(list_twins);
  add_make(data);
  add_convert(data);
  add_verify(data);
  add_export(data);
  add_info(data);
}

}  // namespace nacre::cli
