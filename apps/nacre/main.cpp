// nacre: the command line. Exit codes: 0 done, 1 failure at run time, 2 wrong usage or input.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "commands.h"
#include "nacre/base/error.h"
#include "nacre/base/terminal.h"
#include "usage.h"

namespace {

// One line, whatever the message holds.
int fail(int code, std::string what) {
  std::replace_if(
      what.begin(), what.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  std::fprintf(stderr, "%s %s\n", nacre::red("nacre:", nacre::Stream::err).c_str(), what.c_str());
  return code;
}

int run(int argc, char** argv) {
  CLI::App app("Nacre trains graph neural networks: give it a graph and a model.", "nacre");
  app.require_subcommand(1);
  app.set_version_flag("--version", "nacre " NACRE_VERSION);
  // Settings given twice: the last one counts, so that scripts can append to a base command.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  nacre::cli::add_devices(app);
  nacre::cli::add_data(app);
  nacre::cli::add_profile(app);
  nacre::cli::add_plan(app);
  nacre::cli::add_explain(app);
  nacre::cli::add_train(app);
  nacre::cli::add_eval(app);
  nacre::cli::add_predict(app);
  nacre::cli::add_bench(app);
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  arguments = nacre::cli::understood(app, std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    const std::string what = std::string(e.what()) + " (nacre help COMMAND lists the options)";
    return fail(2, what);
  }
  // A result that did not reach its file or pipe is no success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return fail(1, "standard output cannot be written");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows past the user's limit is an error of the write, not a crash
  try {
    return run(argc, argv);
  } catch (const nacre::UserError& e) {
    return fail(2, e.what());
  } catch (const std::bad_alloc&) {
    return fail(1, "out of memory");
  } catch (const std::exception& e) {
    return fail(1, e.what());
  }
}
