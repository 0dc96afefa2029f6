// nacre plan: what a run would do, and what it would cost, without doing it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/gtask/picture.h"
#include "nacre/plan/explain.h"
#include "neighbourhood.h"
#include "options.h"

namespace nacre::cli {
namespace {

struct PlanCommand {
  RunConfig config;
  std::string output;
  std::string picture;
  std::string table;
  PictureOptions square;
  bool json = false;
};

// Edges of a square of vertices, coloured by gTask.
void draw(const PlanCommand& c, const Session& session) {
  const PartitionTable table =
      c.table.empty() ? main_table(session.plan(), session.blocks()) : PartitionTable::parse(c.table);
  PictureOptions options = c.square;
  options.title = fmt::format("{} on {}", session.config().model.model, session.dataset().name);
  const auto tasks = session.views()->tasks(session.dataset().graph, table);
  if (c.square.first < 0) {
    options.first = 0;
    options.title += fmt::format(", {} vertices around the busiest", options.vertices);
    write_file(c.picture, partition_svg(among_neighbours(*tasks, options.vertices), options));
  } else {
    write_file(c.picture, partition_svg(*tasks, options));
  }
  log_info(fmt::format("picture of {}: {}", table.text(), c.picture));
}

void run(PlanCommand& c) {
  apply_execution(c.config);
  if (!c.table.empty()) {
    PartitionTable::parse(c.table);  // told before the data are read
    if (c.picture.empty()) throw UserError("--table", "needs --picture FILE");
  }
  for (const std::string& file : {c.output, c.picture}) {
    if (!file.empty()) const PendingFile probe(file);
  }
  const Session session(open_data(c.config), c.config);
  for (const std::string& note : session.notes()) log_info("note: " + note);
  if (!c.output.empty()) write_file(c.output, plan_json(session.plan()) + "\n");
  if (!c.picture.empty()) draw(c, session);
  if (c.json) {
    fmt::print("{}\n", plan_json(session.plan()));
    return;
  }
  fmt::print("{}\nmemory of a run:\n{}", plan_text(session.plan(), session.blocks()), memory_text(session.memory()));
  fmt::print("plan {}; ready in {}:", how_found(session.planning()), human_seconds(session.plan_seconds()));
  for (const PassTime& pass : session.plan().passes) fmt::print(" {} {}", pass.pass, human_seconds(pass.seconds));
  fmt::print("\n");
  if (!c.output.empty()) fmt::print("plan file: {}\n", c.output);
  if (!c.picture.empty()) fmt::print("picture: {}\n", c.picture);
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("plan", "show the plan of a run: DFG, kernels, memory");
  const auto c = std::make_shared<PlanCommand>();
  add_data_options(command, c->config, true);
  add_model_options(command, c->config);
  add_execution_options(command, c->config);
  add_planned_epochs(command, c->config);
  add_talk_options(command);
  command.add_option("--output,-o", c->output, "write the plan as JSON, for nacre train --plan FILE");
  command.add_option("--picture,--emit-svg", c->picture, "write a picture of the partition as SVG")->group("Picture");
  command.add_option("--table", c->table, "picture of this partition table; default: the one the plan uses most")
      ->group("Picture");
  command.add_option("--vertices", c->square.vertices, "side of the square shown")
      ->capture_default_str()
      ->group("Picture");
  c->square.first = -1;
  command
      .add_option("--first", c->square.first, "its first vertex; default: vertices around the busiest one are shown")
      ->check(CLI::NonNegativeNumber)
      ->group("Picture");
  command.add_flag("--json", c->json, "print JSON instead of text");
  command.callback([c] { run(*c); });
}

}  // namespace nacre::cli
