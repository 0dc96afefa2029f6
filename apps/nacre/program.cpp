#include "program.h"

#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "commands.h"
#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/printable.h"
#include "nacre/data/mapped_file.h"
#include "terminal.h"
#include "terminal_log.h"
#include "usage.h"

namespace {

// Prints the message on one line, even if it contains line breaks, and returns `code`.
int report_failure(int code, std::string what) {
  std::replace(what.begin(), what.end(), '\n', ' ');
  std::fprintf(stderr, "%s %s\n", nacre::cli::red("nacre:", nacre::cli::Stream::err).c_str(),
               nacre::printable(what).c_str());
  return code;
}

// Reports a lack of memory without allocating memory, and returns the exit code.
int report_lack_of_memory() {
  std::fputs("nacre: out of memory\n", stderr);
  return 1;
}

// Ends the program with a message and status 1 after an exception that nobody could catch (in a
// thread of a library, or while another exception was being handled).
[[noreturn]] void on_terminate() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    std::fputs("nacre: the program could not go on\n", stderr);
  } catch (const std::bad_alloc&) {
    report_lack_of_memory();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "nacre: %s\n", e.what());
  } catch (...) {
    std::fputs("nacre: the program could not go on\n", stderr);
  }
  nacre::remove_pending_files();
  _exit(1);
}

// Exit code of the program if the reader of its output has closed the pipe (nacre plan | head).
// Nobody would read a message, but the run was no success.
constexpr int kReaderGone = 128 + SIGPIPE;

int flush_output(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  if (errno == EPIPE) return kReaderGone;
  // Fail, because the result did not reach its file or pipe.
  return report_failure(1, "standard output cannot be written");
}

int run_command(std::vector<std::string> arguments) {
  CLI::App app("Nacre trains graph neural networks: give it a graph and a model.", "nacre");
  app.require_subcommand(1);
  app.set_version_flag("--version", "nacre " NACRE_VERSION);
  // If an option is given twice, the last one counts, so that scripts can append to a base command.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  nacre::cli::add_devices(app);
  nacre::cli::add_data(app);
  nacre::cli::add_profile(app);
  nacre::cli::add_partition(app);
  nacre::cli::add_plan(app);
  nacre::cli::add_explain(app);
  nacre::cli::add_simulate(app);
  nacre::cli::add_train(app);
  nacre::cli::add_eval(app);
  nacre::cli::add_predict(app);
  nacre::cli::add_report(app);
  nacre::cli::add_bench(app);
  nacre::cli::add_completions(app);
  nacre::cli::add_man(app);
  arguments = nacre::cli::understood(app, std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes the arguments in reverse
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return report_failure(2, nacre::cli::complaint(e.what()) + " (nacre help COMMAND lists the options)");
  }
  return flush_output(0);
}

}  // namespace

// Memory blocks of at least this size are given back to the system when they are freed. By default,
// the C library raises its own bound with every block that is freed, and then keeps large blocks in
// several heaps, with gaps that no later block fits. The memory of these gaps would be on no bill.
constexpr int kReturnedBlock = 4 << 20;

int nacre::cli::run_program(Arguments arguments, void (*prepare)(Arguments)) {
  mallopt(M_MMAP_THRESHOLD, kReturnedBlock);
  // A file that grows beyond the user's limit makes the write fail instead of killing the program.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);  // training goes on when nobody reads its messages any more
  std::set_terminate(on_terminate);
  nacre::guard_mapped_files();
  try {
    nacre::cli::log_to_terminal();
    if (prepare != nullptr) prepare(arguments);
    return run_command({arguments.begin(), arguments.end()});
  } catch (const nacre::cli::Interrupted& interrupted) {
    return flush_output(128 + interrupted.signal);
  } catch (const nacre::UserError& e) {
    return report_failure(2, e.what());
  } catch (const std::bad_alloc&) {
    return report_lack_of_memory();
  } catch (const std::system_error& e) {
    return e.code() == std::errc::broken_pipe ? kReaderGone : report_failure(1, e.what());
  } catch (const std::exception& e) {
    return report_failure(1, e.what());
  }
}
