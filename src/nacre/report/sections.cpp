#include "nacre/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "nacre/base/log.h"
#include "nacre/base/printable.h"
#include "nacre/report/charts.h"

namespace nacre {
namespace {

// All runs together have at most this many points in a line chart and rows in a table of epochs.
constexpr size_t kMostPoints = 4000, kMostRows = 500;
constexpr size_t kMostKernels = 200, kMostRankBars = 128;

// Returns a figure: `value` is the number as the file has it, `shown` is what people read, `from`
// is where it comes from.
std::string figure(const std::string& value, const std::string& shown, const std::string& from) {
  return fmt::format(R"(<data value="{}" data-from="{}">{}</data>)", html_text(value), html_text(from),
                     html_text(shown));
}

std::string origin(const RunRecords& runs, const RunRecord& run, const std::string& place) {
  return fmt::format("{}:{}", &run - runs.data(), place);
}

std::string bytes_text(double bytes) { return human_bytes(bytes); }

std::optional<double> as_number(const std::string& text) {
  try {
    size_t used = 0;
    const double value = std::stod(text, &used);
    if (used == text.size() && std::isfinite(value)) return value;
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

// Returns the head of a table with one column for each run.
std::string run_columns(const RunRecords& runs, const char* first) {
  std::string head = fmt::format("<th scope=\"col\">{}</th>", first);
  for (const RunRecord& run : runs) head += fmt::format("<th scope=\"col\">{}</th>", html_text(run.name));
  return "<thead><tr>" + head + "</tr></thead>";
}

// Describes one row of the main figures: a key of result.json and, for runs without that key, a key
// of config.json.
struct ResultRow {
  const char* title;
  const char* key;
  const char* setting;  // key in config.json; may be null
  std::string (*shown)(double value);
  const char* recommender = nullptr;  // key in the result.json of recommenders; null: the same
};

std::string plain(double value) { return fmt::format("{:.6g}", value); }
std::string milliseconds(double value) { return human_seconds(value / 1e3); }
std::string seconds(double value) { return human_seconds(value); }
std::string mebibytes(double value) { return human_bytes(value * 1024 * 1024); }

constexpr ResultRow kResults[] = {
    {"model", "model", "model.model", nullptr},
    {"data", "data", "data.data", nullptr},
    {"metric", "metric", "training.metric", nullptr},
    {"test", "test_acc", nullptr, plain, "test"},
    {"validation", "val_acc", nullptr, plain, "val"},
    {"training", "train_acc", nullptr, plain},
    {"recall on the test pairs, last epoch", "last_recall", nullptr, plain},
    {"NDCG on the test pairs, last epoch", "last_ndcg", nullptr, plain},
    {"users with test pairs", "users", nullptr, plain},
    {"best epoch", "best_epoch", nullptr, plain},
    {"epochs", "epochs", nullptr, plain},
    {"last loss", "loss", nullptr, plain},
    {"time of an epoch, median", "epoch_ms_median", nullptr, milliseconds},
    {"time of an epoch, quantile 10 %", "epoch_ms_p10", nullptr, milliseconds},
    {"time of an epoch, quantile 90 %", "epoch_ms_p90", nullptr, milliseconds},
    {"time of the whole training", "seconds", nullptr, seconds},
    {"time of planning", "plan_s", nullptr, seconds},
    {"memory planned", "planned_mb", nullptr, mebibytes},
    {"memory at the peak", "peak_mb", nullptr, mebibytes},
    {"GPU memory at the peak", "device_peak_mb", nullptr, mebibytes},
    {"device", "device", "execution.device", nullptr},
    {"plan", "plan_source", nullptr, nullptr},
    {"seed", "seed", "training.seed", plain},
    {"stopped early", "stopped_early", nullptr, nullptr},
};

std::string result_cell(const RunRecords& runs, const RunRecord& run, const ResultRow& row) {
  const bool recommends = row.recommender != nullptr && run.result(row.key).empty();
  const std::string key = recommends ? row.recommender : row.key;
  const std::string value = run.result(key);
  if (!value.empty() && value != "null") {
    const std::optional<double> number = row.shown == nullptr ? std::nullopt : as_number(value);
    const std::string from = origin(runs, run, "result.json:" + key);
    return figure(value, number ? row.shown(*number) : value, from);
  }
  if (row.setting == nullptr || run.setting(row.setting).empty()) return "";
  const std::string setting = run.setting(row.setting);
  return figure(setting, setting, origin(runs, run, std::string("config.json:") + row.setting));
}

ChartSeries series_of(const RunRecord& run, const std::string& name, double EpochRecord::*part) {
  ChartSeries series{name, {}, {}};
  for (const EpochRecord& epoch : run.epochs) {
    series.x.push_back(epoch.epoch);
    series.y.push_back(epoch.*part);
  }
  return series;
}

// Returns the numbers of the rows that a table of epochs shows: all rows, or every k-th row and the
// last one.
std::vector<size_t> some_rows(size_t rows, size_t most) {
  std::vector<size_t> some;
  const size_t step = std::max<size_t>(1, (rows + most - 1) / most);
  for (size_t i = 0; i < rows; i += step) some.push_back(i);
  if (!some.empty() && some.back() != rows - 1) some.push_back(rows - 1);
  return some;
}

struct EpochColumn {
  const char* title;
  const char* key;
  double EpochRecord::*part;
};
constexpr EpochColumn kEpochColumns[] = {
    {"epoch", "epoch", &EpochRecord::epoch},   {"loss", "loss", &EpochRecord::loss},
    {"train", "train", &EpochRecord::train},   {"validation", "val", &EpochRecord::val},
    {"test", "test", &EpochRecord::test},      {"validation loss", "val_loss", &EpochRecord::val_loss},
    {"learning rate", "lr", &EpochRecord::lr}, {"seconds", "seconds", &EpochRecord::seconds},
};

std::string epochs_table(const RunRecords& runs, const RunRecord& run) {
  std::vector<EpochColumn> columns;
  for (const EpochColumn& column : kEpochColumns) {
    const auto has = [&](const EpochRecord& epoch) { return !std::isnan(epoch.*column.part); };
    if (std::any_of(run.epochs.begin(), run.epochs.end(), has)) columns.push_back(column);
  }
  std::string head, body;
  for (const EpochColumn& column : columns) head += fmt::format("<th scope=\"col\" class=\"n\">{}</th>", column.title);
  const std::vector<size_t> rows = some_rows(run.epochs.size(), std::max<size_t>(20, kMostRows / runs.size()));
  for (const size_t i : rows) {
    std::string cells;
    for (const EpochColumn& column : columns) {
      const double value = run.epochs[i].*column.part;
      const std::string from = origin(runs, run, fmt::format("metrics.jsonl:{}:{}", i, column.key));
      cells += "<td class=\"n\">" + (std::isnan(value) ? "" : figure(fmt::format("{}", value), plain(value), from)) +
               "</td>";
    }
    body += "<tr>" + cells + "</tr>";
  }
  const std::string all =
      rows.size() == run.epochs.size()
          ? fmt::format("{} epochs", human_count(static_cast<int64_t>(run.epochs.size())))
          : fmt::format("{} of {} epochs; metrics.jsonl has them all", human_count(static_cast<int64_t>(rows.size())),
                        human_count(static_cast<int64_t>(run.epochs.size())));
  return fmt::format(
      "<details><summary>{}: {}</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Epochs of "
      "{}\"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></details>\n",
      html_text(run.name), all, html_text(run.name), head, body);
}

std::string bill_table(const RunRecords& runs, const RunRecord& run) {
  std::string body;
  for (size_t p = 0; p < run.bill.size(); ++p) {
    for (const auto& [what, bytes] : run.bill[p].items) {
      const std::string from = origin(runs, run, fmt::format("result.json:bill:{}:{}", p, what));
      body += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td></tr>", html_text(run.bill[p].name),
                          html_text(what), figure(fmt::format("{}", bytes), bytes_text(bytes), from));
    }
  }
  return fmt::format(
      "<details><summary>{}: all parts</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Memory of {}\"><table><thead><tr><th scope=\"col\">phase</th><th scope=\"col\">part</th><th "
      "scope=\"col\" class=\"n\">memory</th></tr></thead><tbody>{}</tbody></table></div></details>\n",
      html_text(run.name), html_text(run.name), body);
}

// Returns where the seconds of a run went: planning, the steps of all epochs, and the rest of
// training (evaluation, checkpoints).
StackedBar time_bar(const RunRecords& runs, const RunRecord& run) {
  double steps = 0;
  for (const EpochRecord& epoch : run.epochs) steps += std::isnan(epoch.seconds) ? 0 : epoch.seconds;
  StackedBar bar{run.name, "", origin(runs, run, ""), {}};
  const auto add = [&](const char* name, double value, const std::string& places) {
    if (!(value > 0)) return;
    bar.from += (bar.parts.empty() ? "" : " plus ") + places;
    bar.parts.push_back({name, value, human_seconds(value), origin(runs, run, places)});
  };
  const std::string of_steps = "metrics.jsonl:*:seconds";
  add("planning", as_number(run.result("plan_s")).value_or(0), "result.json:plan_s");
  add("steps", steps, of_steps);
  add("evaluation and files", as_number(run.result("seconds")).value_or(0) - steps,
      "result.json:seconds minus " + of_steps);
  bar.label = human_seconds(bar.sum());
  return bar;
}

StackedBar rank_bar(const RunRecords& runs, const RunRecord& run, size_t number) {
  const RankRecord& rank = run.ranks[number];
  StackedBar bar{fmt::format("{}, rank {}", run.name, number), "", origin(runs, run, ""), {}};
  const auto add = [&](const char* name, double value, const char* key) {
    const std::string place = fmt::format("metrics.jsonl:*:ranks:{}:{}", number, key);
    bar.from += (bar.parts.empty() ? "" : " plus ") + place;
    bar.parts.push_back({name, value, human_seconds(value), origin(runs, run, place)});
  };
  add("computing", rank.computing, "computing_s");
  add("communication", rank.communication, "communication_s");
  add("waiting", rank.waiting, "waiting_s");
  bar.label = human_seconds(bar.sum());
  return bar;
}

StackedBar memory_bar(const RunRecords& runs, const RunRecord& run, size_t number) {
  const PhaseRecord& phase = run.bill[number];
  const std::string place = fmt::format("result.json:bill:{}:", number);
  StackedBar bar{runs.size() == 1 ? phase.name : run.name + ", " + phase.name,
                 bytes_text(phase.bytes()),
                 origin(runs, run, place + "*"),
                 {}};
  for (const auto& [what, bytes] : phase.items)
    bar.parts.push_back({what, bytes, bytes_text(bytes), origin(runs, run, place + what)});
  return bar;
}

std::string kernels_table(const RunRecords& runs, const RunRecord& run) {
  std::vector<KernelRecord> kernels = run.kernels;
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const KernelRecord& a, const KernelRecord& b) { return a.floor_bytes > b.floor_bytes; });
  const size_t all = kernels.size();
  if (kernels.size() > kMostKernels / runs.size() + 10) kernels.resize(kMostKernels / runs.size() + 10);
  std::string body;
  for (const KernelRecord& k : kernels) {
    const auto from = [&](const char* key) {
      return origin(runs, run, fmt::format("plan.json:kernels:{}:{}", k.index, key));
    };
    const auto time = [&](double ms, const char* key) {
      if (ms < 0) return std::string();
      return figure(fmt::format("{}", ms), human_seconds(ms / 1e3),
                    origin(runs, run, fmt::format("result.json:kernels:{}:{}", k.index, key)));
    };
    body += fmt::format(
        "<tr><td class=\"n\">{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"w\">{}</td><td>{}</td></tr>",
        k.index, html_text(k.operation), html_text(k.kind), time(k.ms, "ms"), time(k.floor_ms, "floor_ms"),
        figure(fmt::format("{}", k.floor_bytes), bytes_text(k.floor_bytes), from("floor_bytes")),
        figure(fmt::format("{}", k.flops), fmt::format("{:.4g}", k.flops), from("flops")),
        k.once ? "once" : "every step", html_text(k.why));
  }
  return fmt::format(
      "<h3>{}</h3><p class=\"note\">{} of {} kernels, those that must move the most memory first.</p>"
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Kernels of {}\"><table><thead><tr><th "
      "scope=\"col\" class=\"n\">number</th><th scope=\"col\">operation</th><th scope=\"col\">kernel</th><th "
      "scope=\"col\" class=\"n\">time in a step</th><th scope=\"col\" class=\"n\">least time</th><th scope=\"col\" "
      "class=\"n\">least memory traffic</th><th scope=\"col\" class=\"n\">operations</th><th "
      "scope=\"col\">runs</th><th scope=\"col\">why this "
      "kernel</th></tr></thead><tbody>{}</tbody></table></div>\n",
      html_text(run.name), kernels.size(), all, html_text(run.name), body);
}

}  // namespace

std::string html_text(const std::string& text) { return xml_text(printable(text)); }

std::string results_section(const RunRecords& runs) {
  std::string body;
  for (const ResultRow& row : kResults) {
    std::string cells;
    bool any = false;
    for (const RunRecord& run : runs) {
      const std::string cell = result_cell(runs, run, row);
      any = any || !cell.empty();
      cells += "<td>" + cell + "</td>";
    }
    if (any) body += fmt::format("<tr><th scope=\"row\">{}</th>{}</tr>\n", row.title, cells);
  }
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Table of results\"><table>{}<tbody>{}</tbody></table></div>\n",
      run_columns(runs, "figure"), body);
}

std::string curves_section(const RunRecords& runs) {
  const size_t most = std::max<size_t>(50, kMostPoints / (runs.size() * 4));
  std::string charts;
  if (runs.size() == 1) {
    const RunRecord& run = runs[0];
    charts += line_chart({"loss",
                          "epoch",
                          {series_of(run, "training loss", &EpochRecord::loss),
                           series_of(run, "validation loss", &EpochRecord::val_loss)}},
                         most);
    const std::string metric = run.result("metric").empty() ? "score" : run.result("metric");
    charts +=
        line_chart({metric,
                    "epoch",
                    {series_of(run, "training", &EpochRecord::train), series_of(run, "validation", &EpochRecord::val),
                     series_of(run, "test", &EpochRecord::test)}},
                   most);
    charts += line_chart({"seconds of an epoch", "epoch", {series_of(run, "seconds", &EpochRecord::seconds)}}, most);
    charts += line_chart({"learning rate", "epoch", {series_of(run, "learning rate", &EpochRecord::lr)}}, most);
  } else {
    const std::pair<const char*, double EpochRecord::*> parts[] = {{"training loss", &EpochRecord::loss},
                                                                   {"validation score", &EpochRecord::val},
                                                                   {"test score", &EpochRecord::test},
                                                                   {"seconds of an epoch", &EpochRecord::seconds}};
    for (const auto& [title, part] : parts) {
      LineChart chart{title, "epoch", {}};
      for (const RunRecord& run : runs) chart.series.push_back(series_of(run, run.name, part));
      charts += line_chart(chart, most);
    }
  }
  return charts.empty() ? "" : "<div class=\"charts\">\n" + charts + "</div>\n";
}

std::string epochs_section(const RunRecords& runs) {
  std::string html;
  for (const RunRecord& run : runs) {
    if (!run.epochs.empty()) html += epochs_table(runs, run);
  }
  return html;
}

std::string memory_section(const RunRecords& runs) {
  BarChart chart{"memory of the process in each phase", {}};
  std::string tables;
  for (const RunRecord& run : runs) {
    for (size_t p = 0; p < run.bill.size(); ++p) chart.bars.push_back(memory_bar(runs, run, p));
    if (!run.bill.empty()) tables += bill_table(runs, run);
  }
  return chart.bars.empty() ? "" : bar_chart(chart) + "\n" + tables;
}

std::string time_section(const RunRecords& runs) {
  BarChart whole{"where the time of a run went", {}};
  BarChart ranks{"where the time of the ranks went", {}};
  const size_t most = std::max<size_t>(4, kMostRankBars / runs.size());
  std::string notes;
  for (const RunRecord& run : runs) {
    if (StackedBar bar = time_bar(runs, run); !bar.parts.empty()) whole.bars.push_back(std::move(bar));
    const size_t shown = std::min(most, run.ranks.size());
    for (size_t r = 0; r < shown; ++r) ranks.bars.push_back(rank_bar(runs, run, r));
    if (shown < run.ranks.size()) {
      notes += fmt::format("<p class=\"note\">{}: the first {} of {} ranks; metrics.jsonl has them all.</p>\n",
                           html_text(run.name), shown, run.ranks.size());
    }
  }
  return bar_chart(whole) + bar_chart(ranks) + notes;
}

std::string kernels_section(const RunRecords& runs) {
  std::string html;
  for (const RunRecord& run : runs) {
    if (!run.kernels.empty()) html += kernels_table(runs, run);
  }
  return html;
}

std::string settings_section(const RunRecords& runs) {
  std::vector<std::string> paths;
  for (const RunRecord& run : runs) {
    for (const auto& [path, value] : run.settings) {
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
  }
  std::string body;
  for (const std::string& path : paths) {
    std::string cells;
    bool differs = false;
    for (const RunRecord& run : runs) {
      const std::string value = run.setting(path);
      differs = differs || value != runs[0].setting(path);
      cells += "<td>" + figure(value, value, origin(runs, run, "config.json:" + path)) + "</td>";
    }
    body += fmt::format("<tr{}><th scope=\"row\">{}</th>{}</tr>\n", differs ? " class=\"differs\"" : "",
                        html_text(path), cells);
  }
  const std::string control =
      runs.size() == 1 ? ""
                       : "<p class=\"controls\"><label><input type=\"checkbox\" data-table=\"all-settings\"> only "
                         "settings that differ</label></p>";
  return fmt::format(
      "{}<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of settings\"><table "
      "id=\"all-settings\">{}<tbody>{}</tbody></table></div>\n",
      control, run_columns(runs, "setting"), body);
}

std::string warnings_section(const RunRecords& runs) {
  std::string items;
  for (const RunRecord& run : runs) {
    for (const std::string& warning : run.warnings)
      items += fmt::format("<li>{}: {}</li>", html_text(run.name), html_text(warning));
  }
  return items.empty() ? "" : "<ul>" + items + "</ul>\n";
}

}  // namespace nacre
