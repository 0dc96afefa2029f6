// nacre: the command line. Exit codes: 0 done, 1 failure at run time, 2 wrong usage or input.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "commands.h"
#include "nacre/base/error.h"
#include "spelling.h"

namespace {

int fail(int code, const char* what) {
  std::fprintf(stderr, "nacre: %s\n", what);
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
  nacre::cli::add_plan(app);
  nacre::cli::add_train(app);
  nacre::cli::add_eval(app);
  nacre::cli::add_predict(app);
  nacre::cli::add_bench(app);
  try {
    app.parse(nacre::cli::spelled_our_way(argc, argv));
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    const std::string what = std::string(e.what()) + " (nacre --help, or nacre COMMAND --help, lists what there is)";
    return fail(2, what.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
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
