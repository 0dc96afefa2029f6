// Defines nacre data and the options of its subcommands.
#include <memory>

#include "commands.h"
#include "data_work.h"
#include "matters.h"
#include "nacre/tensor/feature_types.h"
#include "options.h"

namespace nacre::cli {
namespace {

std::shared_ptr<DataCommand> add_source(Command command) {
  auto c = std::make_shared<DataCommand>();
  add_data_options(command, c->config, false);
  // nacre data takes the data set as an argument without a name. Other commands name it with
  // --data.
  command.without({"--data"});
  command.add_option("source", c->config.data, "a file, a folder, or twin:NAME[@scale]").required();
  add_talk_options(command);
  return c;
}

// Throws UserError if an option says how to read another kind of source than that of the command.
void check_source(const Command& command, const DataCommand& c, bool reads_format = true) {
  Situation situation;
  situation.reads_format = reads_format;
  situation.config = &c.config;
  refuse_idle(command, situation);
}

void add_output(Command command, DataCommand& c, const std::string& help) {
  command.add_option("output", c.output, help).required();
  command.add_flag("--force", c.force, "replace the output if it is a file that exists");
}

void add_convert(Command data) {
  Command command =
      data.add_subcommand("convert", "convert any format to Nacre's own; continues where it was interrupted");
  const auto c = add_source(command);
  add_output(command, *c, "a .nacre or .npz file");
  command
      .add_call(
          "--memory", [c](const std::string& text) { c->convert.memory = parse_size("--memory", text); },
          "most memory for edge lists and arrays, whatever their size; default 2G")
      .group("Conversion");
  command.add_flag("--self-loops", c->convert.self_loops, "add a self loop to every node that has none")
      .group("Conversion");
  command.add_option("--reorder", c->reorder, "renumber the nodes: degree, rcm, rabbit or none")
      .one_of("order", {"degree", "rcm", "rabbit", "none"})
      .show_default()
      .group("Conversion");
  command.add_option("--feature-dtype", c->feature_dtype, "how features are stored: f32, bf16 or f16")
      .one_of("element type", feature_type_names(), float_synonyms())
      .show_default()
      .group("Conversion");
  command.callback([c, command] {
    check_source(command, *c);
    c->memory_given = command.given("--memory");
    convert_data(*c);
  });
}

void add_make(Command data) {
  Command command = data.add_subcommand("make", "generate a twin and write it");
  const auto c = add_source(command);
  command.without({"--format"});
  add_output(command, *c, "a .nacre or .npz file");
  command.callback([c] { make_data(*c); });
}

void add_verify(Command data) {
  Command command = data.add_subcommand("verify", "check every byte of a .nacre file against its checksums");
  const auto c = std::make_shared<DataCommand>();
  command.add_option("file", c->config.data, "a .nacre file").required();
  add_talk_options(command);
  command.callback([c] { verify_data(*c); });
}

void add_info(Command data) {
  Command command = data.add_subcommand("info", "describe a data set and what training on it costs");
  const auto c = add_source(command);
  command.add_flag("--json", c->json, "print one JSON object instead of text");
  command.add_flag("--sizes", c->sizes, "read only the headers, not the data; the memory is an estimate");
  command.callback([c, command] {
    check_source(command, *c);
    describe_data(*c);
  });
}

void add_export(Command data) {
  Command command = data.add_subcommand("export", "write a data set in a format that other tools read");
  const auto c = add_source(command);
  // nacre data export uses --format for the format that it writes. It recognises the format of the
  // source by itself.
  command.without({"--format"});
  add_output(command, *c, "an .npz file, or a folder that does not exist yet");
  command.add_option("--format", c->layout, "npz, ogb (binary, as papers100M) or saint")
      .one_of("layout", {"npz", "ogb", "saint"}, {{"graphsaint", "saint"}, {"numpy", "npz"}})
      .show_default();
  command.callback([c, command] {
    check_source(command, *c, false);
    export_data(*c);
  });
}

}  // namespace

void add_data(Command app) {
  Command data = app.add_subcommand("data", "list, make, convert, check, export and describe data sets");
  data.require_subcommand();
  data.add_subcommand("list", "list the twins that can be generated").callback(list_twins);
  add_make(data);
  add_convert(data);
  add_verify(data);
  add_export(data);
  add_info(data);
}

}  // namespace nacre::cli
