// Defines nacre partition, which cuts a graph into parts of given shares and says how good the
// parts are.
#include "nacre/partition/partition.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>

#include "commands.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/parallel.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/printable.h"
#include "nacre/base/warnings.h"
#include "nacre/data/npz_write_arrays.h"
#include "nacre/partition/picture.h"
#include "nacre/partition/stats.h"
#include "nacre/partition/view.h"
#include "nacre/train/bill.h"
#include "options.h"
#include "partition_report.h"
#include "vertex_names.h"

namespace nacre::cli {
namespace {

struct PartitionCommand {
  RunConfig config;  // the data, threads and the memory limit
  PartitionOptions options;
  std::vector<double> shares;
  int parts = 0;
  std::string output;
  std::string picture;
  bool json = false;
};

uint64_t parse_seed(const std::string& text) {
  uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, seed);
  if (parsed.ec == std::errc() && parsed.ptr == end) return seed;
  throw UserError("--seed", "'" + text + "' is not a whole number from 0 to 2^64 - 1");
}

// Refuses options that do not fit together, before the data are read.
void check(PartitionCommand& c, const Command& command) {
  const PartitionMethod method = c.options.method;
  const bool searches = method == PartitionMethod::metis || method == PartitionMethod::fennel;
  const auto refuse = [&](const char* option, const std::string& why, const std::string& remedy) {
    if (command.given(option)) throw UserError(option, why, remedy + ", or leave it out");
  };
  if (command.given("--shares") == command.given("--parts")) {
    throw UserError(command.given("--parts") ? "--parts" : "--shares", "give either --shares or --parts",
                    "--shares 1,2,4 makes three unequal parts, --parts 4 makes four equal ones");
  }
  if (c.parts > 0) c.shares.assign(c.parts, 1);
  if (method != PartitionMethod::fennel) refuse("--passes", "is for the method fennel", "add --method fennel");
  if (!searches) {
    for (const char* option : {"--imbalance", "--no-partition-cache"})
      refuse(option, "is for the methods metis and fennel", "use one of these");
  }
  if (method == PartitionMethod::fennel || method == PartitionMethod::range)
    refuse("--seed", "is for the methods metis and random", "use one of these");
  check_partition_options(c.shares, c.options);
  if (!c.output.empty() && !c.output.ends_with(".npy"))
    throw UserError("--output", "'" + c.output + "' does not end in .npy", "write for example -o parts.npy");
  if (!c.picture.empty() && !c.picture.ends_with(".svg"))
    throw UserError("--picture", "'" + c.picture + "' does not end in .svg", "write for example --picture parts.svg");
  for (const std::string& file : {c.output, c.picture}) {
    if (!file.empty()) PendingFile::check(file);
  }
  if (c.config.threads < 0 || c.config.threads > most_threads())
    throw UserError("--threads", "is out of range", fmt::format("give 0 to {}", most_threads()));
  if (c.config.threads > 0) set_num_threads(c.config.threads);
}

// Returns the bill of the command. `symmetric` says that every edge has its reverse, so that metis
// need not turn the edges around.
Bill bill_for(const PartitionCommand& c, const DataSizes& sizes, bool symmetric) {
  const auto parts = static_cast<int>(c.shares.size());
  const MemoryItem program{"the program", program_bytes()};
  const MemoryItem data{sizes.mapped > 0 ? "data (mapped file and memory)" : "data", sizes.mapped + sizes.held};
  Bill bill;
  bill.remedy = c.options.method == PartitionMethod::metis
                    ? "use --method fennel, which needs memory for the nodes only, or a smaller graph"
                    : "use a smaller graph";
  bill.phases.push_back({"reading", {program, {"the data while they are read", sizes.reading}}});
  bill.phases.push_back({"partitioning",
                         {program,
                          data,
                          {fmt::format("work space of {}", partition_method_name(c.options.method)),
                           partition_bytes(sizes.graph, parts, c.options, symmetric)}}});
  bill.phases.push_back({"counting",
                         {program,
                          data,
                          {"parts of the nodes", sizes.graph.nodes * 4},
                          {"marks of halos", partition_stats_bytes(sizes.graph, parts)}}});
  return bill;
}

// Shows the bill before the data are read. Refuses a graph that would not fit even if every edge
// had its reverse, which takes the least memory; require_room() checks the other graphs after they
// have been read.
void present_bill(const PartitionCommand& c) {
  const std::optional<DataSizes> sizes = data_sizes(c.config.data, c.config.load);
  if (!sizes || !sizes->counted) return;
  const MemoryBound bound = host_bound(c.config, false);
  std::string text = bill_for(c, *sizes, false).text();
  text.pop_back();
  log_info(fmt::format("memory, of {} ({}):\n{}", human_bytes(static_cast<double>(bound.bytes)), bound.by, text));
  require_fit(bill_for(c, *sizes, true), bound);
}

// Refuses a graph whose edges do not all have their reverse, if turning them around would not fit.
void require_room(const PartitionCommand& c, const Dataset& dataset) {
  if (c.options.method != PartitionMethod::metis) return;
  const DataSizes sizes = data_sizes(dataset);
  const Bill bill = bill_for(c, sizes, has_all_reverses(dataset.graph));
  const MemoryBound bound = host_bound(c.config, false);
  if (bill.bytes() <= bound.bytes) return;
  throw UserError(
      "memory",
      fmt::format("metis needs {} in all, but only {} may be used ({})", human_bytes(static_cast<double>(bill.bytes())),
                  human_bytes(static_cast<double>(bound.bytes)), bound.by),
      "use --method fennel, which needs memory for the nodes only");
}

// Writes the part of every node. If the source has other numbers or names for the nodes, they are
// written beside the file.
void write_parts(const PartitionCommand& c, const Dataset& dataset, const Partition& partition) {
  write_npy<int32_t>(c.output, {dataset.num_nodes()}, [&](int64_t v) { return partition.part[v]; });
  bool plain = true;
  for (int64_t v = 0; v < dataset.num_nodes(); ++v) plain = plain && original_id(dataset, v) == v;
  if (!plain) {
    const std::string ids = c.output.substr(0, c.output.size() - 4) + ".ids.npy";
    write_npy<int64_t>(ids, {dataset.num_nodes()}, [&](int64_t v) { return original_id(dataset, v); });
    log_info("the ids of the nodes are in " + ids);
  }
  write_names(c.output, dataset, false, false);
  log_info("written: " + printable(c.output));
}

// Returns the data. Twins are read as if their features were learned, because generated features
// would take more memory than the graph. The last note says this and is removed, because it does
// not matter here.
Dataset read_graph(const RunConfig& config) {
  Dataset dataset = open_data(config);
  if (!config.load.features_file.empty()) dataset.notes.pop_back();
  return dataset;
}

void run_partition(PartitionCommand& c) {
  if (c.config.data.starts_with("twin:")) c.config.load.features_file = "learned";
  present_bill(c);
  const Dataset dataset = read_graph(c.config);
  for (const std::string& note : dataset.notes) log_note(note);
  require_room(c, dataset);
  const double start = now_seconds();
  const Partition partition = partition_graph(dataset.graph, c.shares, c.options);
  const double seconds = now_seconds() - start;
  const PartitionStats stats = partition_stats(dataset.graph, partition, c.shares, c.options);
  const PartitionRun made{dataset.name, c.options, c.shares, partition.cached, seconds};
  if (stats.imbalance() > c.options.imbalance * 1.001 && dataset.num_nodes() > 0) {
    log_warning("the work of a part is " + imbalance_text(stats) +
                " off its target: the nodes are too few or too unequal for these shares");
  }
  if (!c.output.empty()) write_parts(c, dataset, partition);
  if (!c.picture.empty()) write_file(c.picture, parts_svg(stats, title_of(made)));
  fmt::print("{}", c.json ? partition_json(made, stats) : partition_text(made, stats));
}

void add_partition_options(Command command, PartitionCommand& c) {
  command
      .add_call(
          "--shares", [&c](const std::string& text) { c.shares = parse_shares(text); },
          "how much of the work each part gets, for example 1,2,4; a part of share 0 stays empty")
      .group("Partition");
  command.add_option("--parts", c.parts, "number of equal parts, instead of --shares")
      .between(1, kMostParts)
      .group("Partition");
  command
      .add_call(
          "--method", [&c](const std::string& name) { c.options.method = parse_partition_method(name); },
          "metis (fewest edges between parts), fennel (streams the edges: for graphs that metis cannot\n"
          "hold), range (consecutive nodes) or random; default: metis")
      .group("Partition");
  command.add_option("--row-work", c.options.row_work, "work of a node").show_default().group("Partition");
  command.add_option("--edge-work", c.options.edge_work, "work of an edge that leads to a node")
      .show_default()
      .group("Partition");
  command.add_option("--imbalance", c.options.imbalance, "how far the work of a part may be from its target")
      .show_default()
      .group("Partition");
  command.add_option("--passes", c.options.passes, "fennel: how often the edges are read")
      .show_default()
      .group("Partition");
  command
      .add_call(
          "--seed", [&c](const std::string& text) { c.options.seed = parse_seed(text); }, "seed of metis and random")
      .group("Partition");
  command
      .add_off_flag("--no-partition-cache", c.options.use_cache,
                    "partition even if the result is stored, and do not store it")
      .group("Partition");
  command.add_option("--threads", c.config.threads, "number of CPU threads; 0 = one for each processor")
      .show_default()
      .group("Execution");
  command
      .add_call(
          "--memory-limit",
          [&c](const std::string& text) { c.config.memory_limit = parse_size("--memory-limit", text); },
          "most memory that may be used, for example 6G; default: what is free")
      .group("Execution");
  command.add_option("--output,-o", c.output, "an .npy file for the part of each node (int32)").group("Output");
  command.add_option("--picture", c.picture, "an .svg file for a picture of the parts").group("Output");
  command.add_flag("--json", c.json, "print one JSON object instead of text").group("Output");
}

}  // namespace

void add_partition(Command app) {
  Command command = app.add_subcommand("partition", "cut a graph into parts of given shares, one for each device");
  const auto c = std::make_shared<PartitionCommand>();
  add_data_options(command, c->config, true);
  command.without({"--features", "--labels", "--splits", "--split", "--split-seed", "--ignore-edge-weights"});
  add_partition_options(command, *c);
  add_talk_options(command);
  c->config.load.split_needed = false;
  command.callback([c, command] {
    Situation situation;
    situation.config = &c->config;
    refuse_idle(command, situation);
    check(*c, command);
    run_partition(*c);
  });
}

}  // namespace nacre::cli
