// Defines nacre bench placement, which measures what the methods of feature placement cost on
// simulated devices. Batches are sampled on the host and dealt out to the devices in turn, and the
// tables of each placement say from where a device would read each row (figures 4 to 6 and Table 2
// of the paper, without the time of links that are not there).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "bench_placement.h"
#include "commands.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/pending_file.h"
#include "options.h"

namespace nacre::cli {
namespace {

struct Setup {
  std::string name;  // name of the set, for example 2+2
  std::vector<int> group;
};

// Parses sets of devices such as "1;2;2+2". A + separates groups; only devices of one group read
// each other's memory.
std::vector<Setup> parse_setups(const std::string& text) {
  std::vector<Setup> setups;
  for (const std::string& name : split_list(text, ';')) {
    Setup setup{name, {}};
    int number = 0;
    for (const std::string& size : split_list(name, '+')) {
      double count = 0;
      if (!parse_double(size, count) || count < 1 || count > 64 || count != static_cast<int>(count)) {
        throw UserError("--groups", "'" + size + "' is not a number of devices",
                        "write for example 2+2 for two groups of two");
      }
      setup.group.insert(setup.group.end(), static_cast<size_t>(count), number++);
    }
    if (setup.group.size() > 64) throw UserError("--groups", "has more than 64 devices");
    setups.push_back(std::move(setup));
  }
  if (setups.empty()) throw UserError("--groups", "is empty", "write for example 1;2;2+2");
  return setups;
}

std::vector<double> parse_row_shares(const std::string& text) {
  std::vector<double> shares;
  for (const std::string& word : split_list(text)) {
    double share = 0;
    if (!parse_double(word, share) || share < 0 || share > 1)
      throw UserError("--shares", "'" + word + "' is not a share of the rows", "write for example 0.05,0.1,0.2");
    shares.push_back(share);
  }
  if (shares.empty()) throw UserError("--shares", "is empty", "write for example 0.05,0.1,0.2");
  return shares;
}

std::vector<std::string> parse_methods(const std::string& text) {
  if (text.empty()) return placement_method_names();
  std::vector<std::string> names;
  for (const std::string& name : split_list(text)) names.emplace_back(placement_method(name, "--methods").name);
  return names;
}

// Returns, for each device and row, how many batches of the device read the row, on average over
// the epochs. Batch i of an epoch belongs to device i modulo the number of devices.
std::vector<std::vector<float>> count_reads(const AccessRequest& accesses, int devices, int64_t epochs) {
  const Sampler sampler(*accesses.graph, accesses.sampling);
  std::vector<std::vector<float>> counts(static_cast<size_t>(devices),
                                         std::vector<float>(static_cast<size_t>(accesses.graph->num_nodes()), 0.0f));
  const std::vector<NodeId> train(accesses.train.begin(), accesses.train.end());
  BatchOrder order(train, accesses.batch_size, accesses.sampling.seed, true);
  const int64_t batches = batches_of_epoch(accesses);
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    order.begin_epoch(static_cast<uint64_t>(epoch));
    parallel_for(devices, 1, [&](int64_t first, int64_t last) {
      const auto drawer = sampler.make_batch_sampler();
      for (int64_t device = first; device < last; ++device) {
        for (int64_t batch = device; batch < batches; batch += devices) {
          drawer->begin(sampler.draws_seeds() ? std::span<const NodeId>() : order.batch(batch),
                        {static_cast<uint64_t>(epoch), static_cast<uint64_t>(batch)});
          for (int hop = 0; hop < drawer->hops(); ++hop) {
            drawer->pick(hop);
            drawer->insert(hop);
          }
          for (const NodeId v : drawer->vertices()) counts[static_cast<size_t>(device)][v] += 1;
        }
      }
    });
  }
  for (std::vector<float>& each : counts) {
    for (float& count : each) count /= static_cast<float>(epochs);
  }
  return counts;
}

// Returns what each device reads from each tier with this placement, if counts[d][v] batches of
// device d read row v, and the largest cost over the devices.
JudgedPlacement judge_counts(const FeaturePlacement& placement, const std::vector<std::vector<float>>& counts,
                             const RowCosts& costs) {
  JudgedPlacement judged{placement.method, placement.seconds};
  for (size_t d = 0; d < counts.size(); ++d) {
    std::vector<double> only(counts.size(), 0);
    only[d] = 1;
    judged.reads.push_back(expected_reads(placement, counts[d], only)[d]);
  }
  judged.cost = largest_cost(judged.reads, costs);
  return judged;
}

class PlacementTables {
 public:
  PlacementTables(const PlacementBench& c, const Dataset& data)
      : c_(c),
        data_(data),
        train_(data.splits.train.begin(), data.splits.train.end()),
        report_({"devices", "share", "method", "placed_s", "rows", "own_percent", "peer_percent", "host_percent",
                 "expected_host_percent", "expected_ms", "counted_ms", "over_best"}) {
    if (train_.empty()) {
      train_.resize(static_cast<size_t>(data.num_nodes()));
      std::iota(train_.begin(), train_.end(), NodeId{0});
    }
    accesses_ = {&data.graph, c.config.sampling, train_, c.config.batch_size};
    row_bytes_ = static_cast<double>(data.num_features()) * 4;
    const double start = now_seconds();
    expected_ = access_probabilities(accesses_);
    probability_seconds_ = now_seconds() - start;
  }

  void add(const Setup& setup, double share, const std::vector<std::string>& methods) {
    PlacementRequest request = request_for(setup, share);
    if (counts_.size() != setup.group.size())
      counts_ = count_reads(accesses_, static_cast<int>(setup.group.size()), c_.epochs);
    // Make the placement `hindsight` with the counted reads. Nobody knows these counts before the
    // epochs, so no other placement is expected to be better.
    std::vector<float> all(expected_.size(), 0.0f);
    for (const std::vector<float>& each : counts_) {
      for (size_t v = 0; v < all.size(); ++v) all[v] += each[v];
    }
    PlacementRequest afterwards = request;
    afterwards.reads = all;
    FeaturePlacement hindsight = place_features(afterwards);
    hindsight.method = "afterwards";
    const JudgedPlacement best = judge_counts(hindsight, counts_, request.costs);
    for (const std::string& method : methods) {
      request.method = method;
      FeaturePlacement placement = place_features(request);
      if (placement_method(method).uses_reads) placement.seconds += probability_seconds_;
      add_row(setup, share, placement, request, best);
    }
    add_row(setup, share, hindsight, request, best);
    JudgedPlacement ahead = judge_look_ahead(request, c_.epochs);
    ahead.seconds += probability_seconds_;
    add_counts(setup, share, ahead, nullptr, best);
  }

  // Returns the vertices whose rows the first device of a set holds.
  Array<NodeId> first_device(const Setup& setup, double share) const {
    PlacementRequest request = request_for(setup, share);
    return place_features(request).device_rows.front();
  }
  std::span<const NodeId> train() const { return train_; }
  const Report& report() const { return report_; }
  double probability_seconds() const { return probability_seconds_; }

 private:
  PlacementRequest request_for(const Setup& setup, double share) const {
    PlacementRequest request;
    request.num_vertices = data_.num_nodes();
    const auto rows = static_cast<int64_t>(share * static_cast<double>(data_.num_nodes()));
    request.device_rows.assign(setup.group.size(), rows);
    request.group = setup.group;
    request.alpha = c_.alpha;
    const auto seconds = [&](double rate) { return rate > 0 ? row_bytes_ / (rate * 1e9) : 0; };
    request.costs = {seconds(c_.own_rate), seconds(c_.peer_rate), seconds(c_.host_rate), 0};
    request.reads = expected_;
    request.accesses = accesses_;
    request.seed = c_.config.seed;
    return request;
  }

  void add_row(const Setup& setup, double share, const FeaturePlacement& placement, const PlacementRequest& request,
               const JudgedPlacement& best) {
    const JudgedPlacement counted = judge_counts(placement, counts_, request.costs);
    const JudgedPlacement expected = judge_placement(placement, expected_, request);
    add_counts(setup, share, counted, &expected, best);
  }

  // Adds a line to the report. `expected` is null if nothing is known before the batches are drawn.
  void add_counts(const Setup& setup, double share, const JudgedPlacement& counted, const JudgedPlacement* expected,
                  const JudgedPlacement& best) {
    const TierReads rows = counted.all();
    const auto percent = [&](double part, double whole) {
      return fmt::format("{:.2f}", whole > 0 ? 100 * part / whole : 0);
    };
    report_.add({setup.name, fmt::format("{:g}", share), counted.method, fmt::format("{:.3f}", counted.seconds),
                 fmt::format("{:.0f}", rows.total()), percent(rows.own, rows.total()), percent(rows.peer, rows.total()),
                 percent(rows.host, rows.total()),
                 expected == nullptr ? "" : percent(expected->all().host, expected->all().total()),
                 expected == nullptr ? "" : fmt::format("{:.4g}", expected->cost * 1e3),
                 fmt::format("{:.4g}", counted.cost * 1e3),
                 fmt::format("{:.3f}", best.cost > 0 ? counted.cost / best.cost : 1)});
  }

  const PlacementBench& c_;
  const Dataset& data_;
  std::vector<NodeId> train_;
  Report report_;
  AccessRequest accesses_;
  double row_bytes_ = 0;
  std::vector<float> expected_;
  double probability_seconds_ = 0;
  std::vector<std::vector<float>> counts_;  // counts of the devices of the last set
};

// Throws UserError if an option is given that only the runs of --scales use.
void refuse_options_of_scales(const Command& command) {
  for (const char* option : {"--model", "--hidden", "--train-epochs"}) {
    if (command.given(option))
      throw UserError(option, "is a setting of the runs with --scales",
                      "add --scales, for example --scales 2,4,8, or leave it out");
  }
}

void run_placement(PlacementBench& c, const Command& command) {
  c.config.mode = "minibatch";
  apply_execution(c.config);
  refuse_idle(command, situation_of(c.config));
  const std::vector<Setup> setups = parse_setups(c.groups);
  const std::vector<double> shares = parse_row_shares(c.shares);
  const std::vector<std::string> methods = parse_methods(c.methods);
  SampleOptions& options = c.config.sampling;
  if (sampler_info(options.sampler).draws_subgraph) {
    if (options.budget == 0) options.budget = c.config.batch_size;
    if (options.layers == 0) options.layers = 3;
  } else if (options.fanout.empty() && options.type_fanout.empty()) {
    options.fanout = options.sampler == "layer" ? std::vector<int>(3, 8192) : std::vector<int>{15, 10, 5};
  }
  options.seed = c.config.seed;
  const std::vector<double> scales = parse_scales(c);
  if (scales.empty()) refuse_options_of_scales(command);
  for (const std::string& file : {c.json, c.curves}) {
    if (!file.empty()) PendingFile::check(file);
  }
  const Dataset data = open_data(c.config);
  PlacementTables tables(c, data);
  fmt::print("{}: {} nodes, {} edges, rows of {} bytes; probabilities of reading computed in {}\n", data.name,
             human_count(data.num_nodes()), human_count(data.graph.num_edges()), data.num_features() * 4,
             human_seconds(tables.probability_seconds()));
  for (const Setup& setup : setups) {
    for (const double share : shares) tables.add(setup, share, methods);
  }
  fmt::print("{}", tables.report().text());
  if (!c.json.empty()) write_file(c.json, tables.report().json() + "\n");
  if (scales.empty()) return;
  const Array<NodeId> near = tables.first_device(setups.front(), shares.front());
  const LocalityTables trained = train_with_locality(c, data, tables.train(), near.span());
  fmt::print("\nlocality-aware sampling, {} epochs of {}, {} rows in device memory\n{}", c.train_epochs,
             c.config.model.model, human_count(near.size()), trained.runs.text());
  if (!c.curves.empty()) write_file(c.curves, trained.curves.csv());
}

}  // namespace

void add_bench_placement(Command bench) {
  Command command =
      bench.add_subcommand("placement", "rows read from each tier and time to place, by method of feature placement");
  const auto c = std::make_shared<PlacementBench>();
  c->config.data = "twin:arxiv";
  c->config.batch_size = 1024;
  c->config.model.model = "sage";
  c->config.device = "cpu";  // the devices are simulated, and the host trains
  add_data_options(command, c->config, false);
  add_talk_options(command);
  add_batch_options(command, c->config);
  command.without({"--prefetch", "--no-subtasks", "--no-relax", "--no-stream", "--features-on", "--feature-budget",
                   "--placement", "--cache", "--locality", "--host-rows", "--sample-on", "--shuffle", "--staleness",
                   "--schedule"});
  command.add_option("--threads", c->config.threads, "threads of the CPU; default: all cores");
  command
      .add_option("--groups", c->groups,
                  "simulated devices: groups of devices that read each other's memory, such as 2+2; several sets are\n"
                  "separated by ;")
      .show_default();
  command.add_option("--shares", c->shares, "shares of all rows that each device holds, comma-separated")
      .show_default();
  command.add_option("--methods", c->methods, "methods of placement, comma-separated; default: all");
  command.add_option("--peer-rate", c->peer_rate, "GB/s at which a device reads rows of a peer")
      .show_default()
      .positive();
  command.add_option("--host-rate", c->host_rate, "GB/s at which a device reads rows of the host")
      .show_default()
      .positive();
  command.add_option("--own-rate", c->own_rate, "GB/s at which a device reads its own rows; 0 = at no cost")
      .show_default()
      .not_negative();
  command.add_option("--alpha", c->alpha, "alpha of Algorithm 1; default: the value that minimises the expected time");
  command.add_option("--epochs", c->epochs, "epochs that are sampled and counted").show_default().positive();
  command.add_option("--json", c->json, "write the table to this file");
  command.add_option("--scales", c->scales,
                     "also train on the host with locality-aware sampling of these scales, such as 2,4,8, as if the\n"
                     "first share of the rows were in the memory of a device");
  command.add_option("--model", c->config.model.model, "with --scales: the model").show_default();
  command.add_option("--hidden", c->config.model.hidden, "with --scales: width of the hidden layers")
      .show_default()
      .positive();
  command.add_option("--train-epochs", c->train_epochs, "with --scales: epochs of each run").show_default().positive();
  command.add_option("--seed", c->config.seed, "seed of the batches and, with --scales, of the initial weights")
      .show_default();
  command.add_option("--curves", c->curves, "with --scales: write the losses of every epoch to this CSV file");
  command.callback([c, command] { run_placement(*c, command); });
}

}  // namespace nacre::cli
