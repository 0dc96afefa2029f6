#include "summary.h"
#include "feature_report.h"
#include "operation_report.h"
#include "terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/base/printable.h"
#include "nacre/engine/calibrate.h"
#include "nacre/plan/explain.h"

namespace nacre::cli {
namespace {

std::string row(const char* title, const std::string& text) { return fmt::format("{:<10}{}\n", title, text); }

std::string strong(const std::string& text) { return bold(text, Stream::out); }

std::string what_runs(const Summary& s) {
  const VertexModel& model = s.planned->model();
  const RunConfig& c = model.config();
  const Dataset& d = model.dataset();
  std::string text = fmt::format("{} on {}: {} of {}, {}, {}", strong(c.model.model), strong(printable(d.name)),
                                 counted(c.model.layers, "layer"), c.model.hidden, counted(d.num_nodes(), "node"),
                                 counted(d.graph.num_edges(), "edge"));
  const int64_t batches = model.batches_per_epoch();
  return text +
         (s.planned->batches() == nullptr
              ? "; the whole graph in one step"
              : fmt::format("; {} of {} an epoch", counted(batches, "mini-batch", "mini-batches"), c.batch_size)) +
         "\n";
}

struct Times {
  double step = 0;                                    // predicted seconds
  std::vector<std::pair<std::string, double>> parts;  // seconds by kind of kernel
};

Times predict(const Summary& s, const Prices& prices) {
  Times times;
  std::map<std::string, double> parts;
  for (const Kernel& k : s.plan->kernels) {
    if (k.once) continue;
    const double seconds = prices.model.predict(kernel_work(k, *s.plan, s.planned->blocks(), prices.cache_bytes));
    times.step += seconds;
    parts[std::string(kernel_name(k.kind))] += seconds;
  }
  times.parts.assign(parts.begin(), parts.end());
  std::stable_sort(times.parts.begin(), times.parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return times;
}

std::string epoch_text(const Summary& s, const Times& times, bool known_machine) {
  const auto steps = static_cast<double>(s.planned->model().steps_per_epoch());
  const auto kernels =
      std::count_if(s.plan->kernels.begin(), s.plan->kernels.end(), [](const Kernel& k) { return !k.once; });
  std::string text =
      fmt::format("about {} predicted ({}), {} a step", strong(human_seconds(times.step * steps)),
                  known_machine ? "with the measured rates of this machine" : "with the rates of an ordinary machine",
                  counted(kernels, "kernel"));
  if (s.measured > 0) text += fmt::format("; {} measured", strong(human_seconds(s.measured * steps)));
  return text + "; evaluations take extra time";
}

std::string shares_text(const Times& times) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, times.parts.size()); ++i) {
    text += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", times.parts[i].first,
                        100 * times.parts[i].second / std::max(times.step, 1e-12));
  }
  return text;
}

std::string memory_line(const Summary& s) {
  const auto bytes = [](int64_t n) { return human_bytes(static_cast<double>(n)); };
  const auto largest = std::max_element(s.memory.begin(), s.memory.end(),
                                        [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  const bool process = s.device == "cpu" && s.host_bytes > 0;
  std::string text = strong(bytes(process ? s.host_bytes : total_bytes(s.memory)));
  if (s.free_bytes > 0) text += " of " + bytes(s.free_bytes) + " that may be used";
  if (process) text += ", the program included";
  if (largest != s.memory.end()) text += fmt::format("; {} for {}", bytes(largest->bytes), largest->what);
  if (!s.host_memory.empty()) text += "; " + bytes(total_bytes(s.host_memory)) + " on the host";
  return text;
}

std::string why_this_plan(const Summary& s) {
  const RunConfig& c = s.planned->model().config();
  if (s.source == "searched") return "searched: the fastest of the plans that were timed on this data";
  if (s.source == "cached") return "searched in an earlier run and stored (--no-plan-cache searches again)";
  if (s.source == "file") return "read from " + c.plan;
  if (s.source == "given") return "as asked for with --plan " + c.plan;
  if (s.source != "rules") return s.source;
  if (c.plan == "off") return "by rules, as asked for with --plan off";
  if (c.deterministic) return "by rules, which --deterministic asks for";
  if (s.ranks != nullptr) return "by rules, because a rank's kernels cannot be timed without other ranks";
  return fmt::format("by rules: {} {} too short a run to pay for a search", counted(c.epochs, "epoch"),
                     c.epochs == 1 ? "is" : "are");
}

std::string choice_words(const std::string& choice) {
  static const std::map<std::string, std::string> words = {
      {"aggregate", "sum, then product"},
      {"combine", "product, then sum"},
      {"edge", "product on every edge"},
      {"src", "product once per source and type"},
      {"dst", "product once per destination and type"},
      {"cover", "product once per source or destination and type"}};
  const auto known = words.find(choice);
  return known == words.end() ? choice : known->second;
}

std::string edges_text(const std::string& table) {
  if (table.empty()) return "every node takes its own edges; no kernel groups them by a partition table";
  return "processed in groups (partition table " + table + ")";
}

// Returns up to kShown choices of the forward pass in words, and the number of all other choices.
std::string choice_text(const Summary& s) {
  constexpr size_t kShown = 4;
  std::vector<std::string> told;
  size_t more = 0;
  for (const auto& [key, choice] : s.plan->options.choices) {
    const bool forward = key.starts_with("matmul@") || key.starts_with("typed_matmul@");
    if (!forward || told.size() == kShown) {
      ++more;
      continue;
    }
    std::string where = key.substr(key.find('@') + 1);
    if (where.ends_with(".weight")) where.resize(where.size() - 7);
    told.push_back(where + ": " + choice_words(choice));
  }
  std::string text;
  for (const std::string& t : told) text += (text.empty() ? "" : "; ") + t;
  if (more > 0) text += (text.empty() ? "" : "; ") + counted(static_cast<int64_t>(more), "other choice");
  return text.empty() ? "nothing: the model leaves no choice of order" : text;
}

}  // namespace

Prices known_prices(bool gpu) {
  Prices prices;
  prices.model = gpu ? nominal_gpu().model : nominal_cpu().model;
  prices.cache_bytes = gpu ? nominal_gpu().cache_bytes : nominal_cpu().cache_bytes;
  if (gpu) return prices;
  if (const auto stored = load_profile(machine_name(num_threads()), kProfileVersion)) {
    prices = {stored->model, stored->cache_bytes, true};
  }
  return prices;
}

std::string summary_text(const Summary& s) {
  const bool gpu = s.ranks == nullptr ? s.device != "cpu" : !s.planned->device().on_host();
  const Prices prices = known_prices(gpu);
  const Times times = predict(s, prices);
  std::string text = what_runs(s);
  if (s.ranks != nullptr) {
    text += row("runs on", s.device + ", " + s.precision) + planned_ranks_text(*s.ranks);
    text += row("time in", fmt::format("{} of rank {}", shares_text(times), s.ranks->largest));
    if (s.measured > 0) {
      text += row("measured", fmt::format("{} for the kernels of a step of rank {}, its communication included",
                                          strong(human_seconds(s.measured)), s.ranks->largest));
    }
  } else {
    text += row("runs on",
                fmt::format("{}, {}", gpu ? s.device : "the CPU, " + counted(num_threads(), "thread"), s.precision));
    text += row("epoch", epoch_text(s, times, prices.measured));
    const BatchSession* batches = s.planned->batches();
    // Costs are stored for the device of the session only, so a GPU that is not in this machine has
    // none.
    const bool here = gpu == !s.planned->model().device().on_host();
    const std::string forecast = batches == nullptr || !here ? "" : forecast_text(*batches);
    if (!forecast.empty()) text += row("batches", forecast);
    text += row("time in", shares_text(times));
    text += row("memory", memory_line(s));
    const std::string features = batches == nullptr ? "" : planned_features_text(*batches, s.forecast);
    if (!features.empty()) text += row("features", features);
  }
  text += row("plan", why_this_plan(s));
  text += row("chosen", choice_text(s));
  if (s.plan->options.vertex_order != Reorder::none) {
    text +=
        row("nodes", fmt::format("numbered in {} order while the run trains (--reorder); results keep the given one",
                                 reorder_name(s.plan->options.vertex_order)));
  }
  text += row("edges", edges_text(main_table(*s.plan, s.planned->blocks()).text()));
  if (!s.dropped.empty()) {
    int64_t saved = 0;
    for (const Dropped& d : s.dropped) saved += d.bytes;
    text += row("again", fmt::format("{} computed again in the backward pass, which saves {}",
                                     counted(static_cast<int64_t>(s.dropped.size()), "value"),
                                     human_bytes(static_cast<double>(saved))));
  }
  return text;
}

}  // namespace nacre::cli
