// nacre plan: what a run would do, and what it would cost, without doing it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "commands.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "options.h"

namespace nacre::cli {
namespace {

struct PlanCommand {
  RunConfig config;
  std::string output;
  bool json = false;
};

void run(PlanCommand& c) {
  apply_execution(c.config);
  const Session session(open_data(c.config), c.config);
  for (const std::string& note : session.notes()) log_info("note: " + note);
  if (!c.output.empty()) write_file(c.output, plan_json(session.plan()) + "\n");
  if (c.json) {
    fmt::print("{}\n", plan_json(session.plan()));
    return;
  }
  fmt::print("{}\nmemory of a run:\n{}", plan_text(session.plan(), session.blocks()), memory_text(session.memory()));
  fmt::print("planned in {}:", human_seconds(session.plan_seconds()));
  for (const PassTime& pass : session.plan().passes) fmt::print(" {} {}", pass.pass, human_seconds(pass.seconds));
  fmt::print("\n");
  if (!c.output.empty()) fmt::print("plan file: {}\n", c.output);
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("plan", "show the plan of a run: DFG, kernels, memory");
  const auto c = std::make_shared<PlanCommand>();
  add_data_options(command, c->config, true);
  add_model_options(command, c->config);
  add_execution_options(command, c->config);
  add_talk_options(command);
  command.add_option("--output,-o", c->output, "write the plan as JSON, for nacre train --plan FILE");
  command.add_flag("--json", c->json, "print JSON instead of text");
  command.callback([c] { run(*c); });
}

}  // namespace nacre::cli
