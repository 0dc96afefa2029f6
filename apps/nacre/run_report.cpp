// Defines nacre report, which writes one HTML page about runs.
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/printable.h"
#include "nacre/report/page.h"
#include "options.h"

namespace nacre::cli {
namespace {

struct ReportCommand {
  std::vector<std::string> runs;
  std::string output;
  bool open = false;
};

// Shows a page with the program that $BROWSER names or, if it names none, with that of the desktop.
void open_page(const std::string& path) {
  std::vector<std::string> programs = {"xdg-open", "open", "wslview"};
  if (const char* browser = std::getenv("BROWSER"); browser != nullptr && *browser != '\0')
    programs.insert(programs.begin(), browser);
  std::string page = std::filesystem::absolute(path).string();
  for (std::string& program : programs) {
    std::array<char*, 3> words = {program.data(), page.data(), nullptr};
    pid_t child = 0;
    if (posix_spawnp(&child, words[0], nullptr, nullptr, words.data(), environ) == 0) return;
  }
  throw UserError("--open", "there is no program that opens pages", "set BROWSER, or open " + path + " yourself");
}

void write_report(const ReportCommand& c) {
  if (c.runs.size() > kMostReportedRuns) {
    throw UserError("nacre report", fmt::format("{} runs do not fit on a page", c.runs.size()),
                    fmt::format("name at most {}", kMostReportedRuns));
  }
  const std::string output = c.output.empty() ? c.runs.front() + "/report.html" : c.output;
  std::vector<RunRecord> runs;
  for (const std::string& folder : c.runs) runs.push_back(read_run_record(folder));
  PendingFile::check(output);
  write_file(output, report_page(runs));
  fmt::print("report: {}\n", printable(output));
  std::fflush(stdout);
  if (c.open) open_page(output);
}

}  // namespace

void add_report(Command app) {
  Command command = app.add_subcommand("report", "show runs as one HTML page, side by side if there are several");
  const auto c = std::make_shared<ReportCommand>();
  command
      .add_list(
          "RUN", [c = c.get()](const std::vector<std::string>& runs) { c->runs = runs; }, "run folders")
      .required();
  command.add_option("--output,-o", c->output,
                     "file to write the page to; default: report.html in the first run folder");
  command.add_flag("--open", c->open, "show the page, with $BROWSER or the desktop's program");
  command.callback([c] { write_report(*c); });
}

}  // namespace nacre::cli
