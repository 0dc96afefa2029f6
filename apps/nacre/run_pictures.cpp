#include "run_pictures.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/pending_file.h"
#include "nacre/cost/profile.h"
#include "nacre/engine/calibrate.h"
#include "nacre/gtask/picture.h"
#include "nacre/plan/explain.h"
#include "nacre/plan/work.h"
#include "nacre/report/page.h"
#include "nacre/train/session.h"

namespace nacre::cli {
namespace {

// Largest number of edges of a graph that is cut again for a picture. For more edges this would
// take too long.
constexpr int64_t kMostEdges = 4'000'000;
constexpr int64_t kMostPictureVertices = 200;  // the picture is a square of this many nodes

}  // namespace

std::string kernel_times_json(VertexModel& session) {
  nlohmann::json all = nlohmann::json::array();
  auto* whole = dynamic_cast<Session*>(&session);
  if (whole == nullptr || !session.device().on_host()) return all.dump();
  Executor& executor = whole->trainer();
  const auto profile = load_profile(machine_name(num_threads()), kProfileVersion);
  for (size_t k = 0; k < executor.plan().kernels.size(); ++k) {
    const KernelTime& time = executor.times()[k];
    nlohmann::json kernel = {{"ms", nullptr}, {"floor_ms", nullptr}};
    if (time.runs > 0) kernel["ms"] = time.seconds / static_cast<double>(time.runs) * 1e3;
    if (profile) {
      const Kernel& planned = executor.plan().kernels[k];
      const Work work = kernel_work(planned, executor.plan(), executor.blocks(), profile->cache_bytes);
      kernel["floor_ms"] = kernel_floor(planned, work, *profile) * 1e3;
    }
    all.push_back(std::move(kernel));
  }
  return all.dump();
}

void write_partition_picture(VertexModel& session, const std::string& folder) {
  auto* whole = dynamic_cast<Session*>(&session);
  if (whole == nullptr || folder.empty() || !session.device().on_host()) return;
  const PartitionTable table = main_table(whole->plan(), whole->blocks());
  const Graph& graph = whole->blocks().layer(0);
  if (table.empty() || graph.num_edges() > kMostEdges) return;
  PictureOptions options;
  options.vertices = std::min(kMostPictureVertices, graph.num_nodes());
  options.title = "gTasks of " + table.text();
  write_file(folder + "/partition.svg", partition_svg(*whole->views()->tasks(graph, table), options));
}

std::string write_run_report(const std::string& folder) {
  std::string path = folder + "/report.html";
  try {
    write_file(path, report_page({read_run_record(folder)}));
    return path;
  } catch (const std::exception& error) {
    log_warning(std::string("the report was not written: ") + error.what());
    return "";
  }
}

}  // namespace nacre::cli
