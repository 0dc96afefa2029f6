// Adds the options of runs over several devices.
#include <cctype>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/train/share_rules.h"
#include "options.h"

namespace nacre::cli {

std::vector<double> parse_shares(const std::string& text) {
  std::vector<double> shares;
  for (const std::string& part : split_list(text)) {
    double share = 0;
    if (!parse_double(part, share))
      throw UserError("--shares", "'" + part + "' is not a number", "write for example 1,2,4");
    shares.push_back(share);
  }
  return shares;
}

namespace {

// Stores the value of --shares: numbers, or the name of a rule.
void take_shares(const std::string& text, RankOptions& ranks) {
  const bool named = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0;
  ranks.share_rule = kAutomaticShares;
  ranks.shares.clear();
  if (named) {
    ranks.share_rule = choose_name("--shares", "way to share out the work", text, share_rule_names());
  } else {
    ranks.shares = parse_shares(text);
  }
}

std::vector<std::string> parse_devices(const std::string& text) {
  if (text.empty()) throw UserError("--devices", "names no device", "write for example cpu:1,cpu:1");
  std::vector<std::string> devices;
  for (const std::string& name : split_list(text)) devices.push_back(device_name(name));
  return devices;
}

}  // namespace

void add_rank_options(Command command, RunConfig& c) {
  RankOptions& ranks = c.ranks;
  command
      .add_call(
          "--devices", [&ranks](const std::string& text) { ranks.devices = parse_devices(text); },
          "several devices that train one graph together, for example cpu:1,cpu:1 (threads of the host),\n"
          "cuda:0,cuda:1, cuda:0@32,cuda:0@64 (parts of one GPU) or cuda:0,cpu:8; with mpirun, one entry for\n"
          "each process, whose devices are joined by +: cuda:0+cuda:1")
      .group("Several devices");
  command
      .add_call(
          "--shares", [&ranks](const std::string& text) { take_shares(text, ranks); },
          "how much of the work each device gets: numbers, for example 1,2,4, or uniform, cores (threads and\n"
          "multiprocessors), flops (rate of products), frequency (clock) or auto (by predicted and measured\n"
          "times); default: auto; with --mode minibatch, numbers count the batches of a step")
      .group("Several devices");
  command
      .add_call(
          "--partition",
          [&ranks](const std::string& name) { ranks.partition.method = parse_partition_method(name, "--partition"); },
          "how nodes are dealt out: metis, fennel, range or random (see nacre partition); default: metis")
      .group("Several devices");
  command
      .add_option(
          "--halo-rows", ranks.halo_rows,
          "what travels between devices, where there is a choice: rows of neighbours after dense products\n"
          "(late), before them (early) or where they have fewer columns (narrow); columns of all rows, which each\n"
          "device sums over the whole graph (columns); sums over the neighbours that a device owns (sums);\n"
          "auto chooses for each layer and direction")
      .one_of("choice", {"auto", "late", "early", "narrow", "columns", "sums"})
      .show_default()
      .group("Several devices");
  command.add_off_flag("--no-overlap", ranks.overlap, "devices wait while rows travel, instead of computing")
      .group("Several devices");
  command
      .add_option("--comm", ranks.comm,
                  "how rows get from the GPU of one process to that of another: nccl, staged (through host memory) or\n"
                  "auto, which is nccl if every process has a GPU of its own")
      .one_of("choice", {"auto", "nccl", "staged"})
      .show_default()
      .group("Several devices");
  command.add_option("--comm-timeout", ranks.timeout, "seconds that devices wait for each other before the run fails")
      .show_default()
      .group("Several devices");
}

}  // namespace nacre::cli
