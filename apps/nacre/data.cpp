// nacre data list | make | convert | info
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/info.h"
#include "nacre/data/load.h"
#include "nacre/data/native.h"
#include "nacre/data/npz_write.h"
#include "nacre/data/twin.h"
#include "options.h"

namespace nacre::cli {
namespace {

struct DataCommand {
  RunConfig config;
  std::string output;
  bool json = false;
};

void list() {
  fmt::print("{:<12} {:>12} {:>14} {:>9} {:>8}  {}\n", "twin:", "vertices", "edges", "features", "classes",
             "stands for");
  for (const TwinSpec& s : twin_specs()) {
    fmt::print("{:<12} {:>12} {:>14} {:>9} {:>8}  {}\n", s.name, human_count(s.num_nodes), human_count(s.num_edges),
               human_count(s.num_features), human_count(s.num_classes), s.about);
  }
}

void write(const Dataset& dataset, const std::string& path) {
  if (path.ends_with(".nacre")) {
    write_native(dataset, path);
  } else if (path.ends_with(".npz")) {
    write_npz(dataset, path);
  } else {
    throw UserError(path, "has an unknown ending", "write .nacre (Nacre's own format) or .npz");
  }
  fmt::print("written: {}\n", path);
}

void convert(DataCommand& c) {
  // An ending we cannot write should be told before an hour of reading.
  if (!c.output.ends_with(".nacre") && !c.output.ends_with(".npz")) {
    throw UserError(c.output, "has an unknown ending", "write .nacre (Nacre's own format) or .npz");
  }
  const Dataset dataset = open_data(c.config);
  for (const std::string& note : dataset.notes) log_info("note: " + note);
  write(dataset, c.output);
}

void info(DataCommand& c) {
  const Dataset dataset = open_data(c.config);
  fmt::print("{}", c.json ? describe_json(dataset) + "\n" : describe(dataset));
}

std::shared_ptr<DataCommand> add_source(CLI::App& command) {
  auto c = std::make_shared<DataCommand>();
  add_data_options(command, c->config, false);
  // Everywhere else the data set is --data; here it is what the command is about.
  command.remove_option(command.get_option("--data"));
  command.add_option("source", c->config.data, "a file, or twin:NAME[@scale]")->required();
  add_talk_options(command);
  return c;
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App& data = *app.add_subcommand("data", "list, make, convert and describe data sets");
  data.require_subcommand(1);
  data.add_subcommand("list", "the twins that can be generated")->callback(list);
  for (const auto& [name, about] :
       {std::pair{"make", "generate a twin and write it"}, std::pair{"convert", "read any format, write another"}}) {
    CLI::App& command = *data.add_subcommand(name, about);
    const auto c = add_source(command);
    command.add_option("output", c->output, "a .nacre or .npz file")->required();
    command.callback([c] { convert(*c); });
  }
  CLI::App& describe_command = *data.add_subcommand("info", "statistics of a data set");
  const auto c = add_source(describe_command);
  describe_command.add_flag("--json", c->json, "one JSON object");
  describe_command.callback([c] { info(*c); });
}

}  // namespace nacre::cli
