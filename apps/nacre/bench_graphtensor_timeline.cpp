// Draws Fig. 20: which thread did what for a few batches, in the serial order and with all
// optimisations of the scheduler.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "bench_graphtensor.h"
#include "nacre/base/json_text.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/trace.h"

namespace nacre::cli {
namespace {

constexpr int kBatches = 4;

struct Span {
  std::string name;
  int thread = 0;
  double begin = 0, end = 0;  // times in milliseconds
};

// Returns the stage of a span's name without its number: "S pick 0" becomes "S pick", "compute"
// stays.
std::string stage_of(const std::string& name) {
  const size_t at = name.find_last_not_of("0123456789");
  return name.substr(0, name[at] == ' ' ? at : at + 1);
}

std::vector<Span> record(GraphTensorBench& bench, BatchSession& session) {
  run_epoch(session, 0, bench.options().batches);  // a first epoch that allocates memory
  const std::string file = bench.options().out + "/trace.json";
  trace_start();
  run_epoch(session, 1, kBatches);
  trace_write(file);
  std::vector<Span> spans;
  std::map<int, int> threads;  // threads numbered in the order in which they appear
  const auto trace = parse_json<nlohmann::json>(read_file(file), file);
  for (const auto& e : trace["traceEvents"]) {
    const std::string category = e.value("cat", "");  // events that record numbers have no category
    if (category != "batch" && category != "train") continue;
    const double begin = e["ts"].get<double>() / 1e3;
    spans.push_back({e["name"], e["tid"], begin, begin + e["dur"].get<double>() / 1e3});
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  const double origin = spans.empty() ? 0 : spans.front().begin;
  for (Span& s : spans) {
    s.thread = threads.try_emplace(s.thread, static_cast<int>(threads.size())).first->second;
    s.begin -= origin;
    s.end -= origin;
  }
  return spans;
}

constexpr double kWidth = 1000, kLeft = 130, kRow = 26, kTop = 60;

const std::map<std::string, const char*>& colours() {
  static const std::map<std::string, const char*> table = {
      {"S pick", "#4477aa"},  {"S insert", "#66ccee"}, {"R", "#228833"},      {"K", "#ccbb44"},        {"T", "#ee6677"},
      {"prepare", "#aa3377"}, {"compute", "#999999"},  {"launch", "#bbbbbb"}, {"optimizer", "#444444"}};
  return table;
}

std::string rows(const std::vector<Span>& spans, const std::string& title, double scale, double& y) {
  std::string svg = fmt::format("<text x=\"10\" y=\"{:.1f}\" font-size=\"13\">{}</text>\n", y + 12, title);
  int threads = 0;
  for (const Span& s : spans) {
    const auto colour = colours().find(stage_of(s.name));
    if (colour == colours().end()) continue;
    threads = std::max(threads, s.thread + 1);
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{} {:.2f} "
        "ms</title></rect>\n",
        kLeft + s.begin * scale, y + 20 + s.thread * kRow, std::max(0.3, (s.end - s.begin) * scale), kRow - 6,
        colour->second, s.name, s.end - s.begin);
  }
  for (int t = 0; t < threads; ++t)
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" font-size=\"11\" text-anchor=\"end\">thread {}</text>\n", kLeft - 6,
                       y + 34 + t * kRow, t);
  y += 30 + threads * kRow;
  return svg;
}

std::string timeline_svg(const std::string& title, const std::vector<std::pair<std::string, std::vector<Span>>>& runs) {
  double longest = 1e-9;
  for (const auto& [name, spans] : runs) {
    for (const Span& s : spans) longest = std::max(longest, s.end);
  }
  const double scale = (kWidth - kLeft - 20) / longest;
  std::string body;
  double x = kLeft, y = kTop;
  for (const auto& [name, colour] : colours()) {
    body += fmt::format(
        "<rect x=\"{0:.0f}\" y=\"34\" width=\"12\" height=\"12\" fill=\"{1}\"/>"
        "<text x=\"{2:.0f}\" y=\"44\" font-size=\"12\">{3}</text>\n",
        x, colour, x + 16, name);
    x += 34 + 8.0 * static_cast<double>(name.size());
  }
  for (const auto& [name, spans] : runs) {
    const double end = spans.empty() ? 0 : std::max_element(spans.begin(), spans.end(), [](auto& a, auto& b) {
                                             return a.end < b.end;
                                           })->end;
    body += rows(spans, fmt::format("{}: {} batches in {:.1f} ms", name, kBatches, end), scale, y);
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\" "
             "font-family=\"sans-serif\">\n<rect width=\"{0}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n"
             "<text x=\"10\" y=\"22\" font-size=\"16\">{2}</text>\n",
             kWidth, y + 20, title) +
         body + "</svg>\n";
}

}  // namespace

void bench_timeline(GraphTensorBench& bench) {
  Report report({"graph", "model", "variant", "thread", "name", "begin_ms", "end_ms"});
  const std::string& model = bench.options().models.front();
  int number = 0;
  for (const std::string& graph : bench.options().graphs) {
    std::vector<std::pair<std::string, std::vector<Span>>> runs;
    const auto variants = loader_variants(bench.options());
    for (const LoaderVariant& v : {variants.front(), variants.back()}) {
      RunConfig config = bench.config_for(model);
      config.loader = v.options;
      BatchSession session(bench.data(graph), config, {.evaluation = false});
      session.start();
      const std::string name = v.options.in_flight == 0 ? "serial" : "scheduled";
      runs.emplace_back(name, record(bench, session));
      for (const Span& s : runs.back().second)
        report.add({graph, model, name, std::to_string(s.thread), s.name, cell(s.begin), cell(s.end)});
    }
    bench.write(fmt::format("fig20-{}.svg", ++number), timeline_svg(graph + " " + model, runs));
    bench.say("fig. 20: " + graph + " done");
  }
  bench.keep("fig20", "", report);
}

}  // namespace nacre::cli
