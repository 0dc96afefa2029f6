// Draws Fig. 15: how the edges are cut into gTasks, by destination and by the plan of each model.
#include <fmt/format.h>

#include "bench_wisegraph.h"
#include "nacre/gtask/picture.h"
#include "nacre/plan/explain.h"
#include "neighbourhood.h"

namespace nacre::cli {

void bench_pictures(WiseBench& bench) {
  Report report({"graph", "model", "plan", "table", "gtasks", "edges_per_gtask", "underfill", "overfill", "frequent"});
  const std::string& graph = bench.options().graphs.front();
  const auto draw = [&](Workbench& work, const std::string& model, const std::string& plan,
                        const PartitionTable& table) {
    const GTasks tasks = partition(work.graph(), table);
    const Patterns p = find_patterns(tasks).patterns;
    PictureOptions options;
    options.title = fmt::format("{}: {}, nodes around the one with most edges",
                                plan == "vertex" ? "vertex-centric" : model, table.text());
    bench.keep_svg("fig15-" + (plan == "vertex" ? plan : model),
                   partition_svg(among_neighbours(tasks, options.vertices), options));
    report.add({bench.graph_for(graph, model), model, plan, table.text(), std::to_string(p.tasks),
                cell(p.edge_id.unique_mean), std::to_string(p.underfill), std::to_string(p.overfill),
                std::to_string(p.frequent)});
  };
  for (const std::string& model : bench.options().models) {
    Workbench work = bench.open(graph, model);
    if (&model == &bench.options().models.front()) draw(work, model, "vertex", PartitionTable::parse("dst-id=1"));
    const PartitionTable table = main_table(work.answer("auto").plan, work.blocks());
    draw(work, model, "auto", table.empty() ? PartitionTable::parse("dst-id=1") : table);
  }
  bench.keep("fig15", "Fig. 15: partitions", report);
}

}  // namespace nacre::cli
