// nacre plan: what a run would do, and what it would cost, without doing it.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "emit_cuda.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/warnings.h"
#include "nacre/device/null_device.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/gtask/picture.h"
#include "nacre/plan/explain.h"
#include "neighbourhood.h"
#include "options.h"

namespace nacre::cli {
namespace {

// A GPU that need not be here: plans are found by rules, kernels written out, nothing runs.
constexpr const char* kTypical = "cuda:typical";

struct PlanCommand {
  RunConfig config;
  std::string output;
  std::string cuda;  // folder
  std::string picture;
  std::string table;
  PictureOptions square;
  bool json = false;
};

// Edges of a square of vertices, coloured by gTask.
void draw(const PlanCommand& c, const Session& session, const Plan& plan) {
  const PartitionTable table = c.table.empty() ? main_table(plan, session.blocks()) : PartitionTable::parse(c.table);
  PictureOptions options = c.square;
  options.title = fmt::format("{} on {}", session.config().model.model, session.dataset().name);
  const auto tasks = session.views()->tasks(session.dataset().graph, table);
  if (c.square.first < 0) {
    options.first = 0;
    options.title += fmt::format(", {} vertices around the busiest", options.vertices);
    write_file(c.picture, partition_svg(among_neighbours(*tasks, options.vertices), options));
  } else {
    write_file(c.picture, partition_svg(*tasks, options));
  }
  log_info(fmt::format("picture of {}: {}", table.text(), c.picture));
}

void check(const PlanCommand& c) {
  if (!c.table.empty()) {
    PartitionTable::parse(c.table);  // told before the data are read
    if (c.picture.empty()) throw UserError("--table", "needs --picture FILE");
  }
  if (!c.picture.empty() && !c.picture.ends_with(".svg"))
    throw UserError("--picture", "'" + c.picture + "' does not end in .svg", "pictures are written as SVG");
  for (const std::string& file : {c.output, c.picture}) {
    if (!file.empty()) const PendingFile probe(file);
  }
  if (!c.cuda.empty()) check_folder(c.cuda);
}

// The plan that rules find for a GPU.
PlanAnswer plan_for(const DeviceInfo& gpu, const RunConfig& asked, const Session& session) {
  const auto loader = std::make_shared<GpuLoader>(make_null_device(gpu), [](const auto&) { return std::string(); });
  const auto context =
      std::make_shared<GpuContext>(loader, session.views(), GpuOptions{.precision = gemm_precision(asked.precision)});
  PlanRequest request;
  request.plan = asked.plan;
  request.deterministic = true;
  request.epochs = session.config().epochs;
  return plan_training(written_dfg(session), session.blocks(), make_gpu_backend(context), request, {});
}

// What a run on a GPU takes besides the plan's own memory.
void add_run_memory(Session& session, std::vector<MemoryItem>& memory) {
  const Dataset& data = session.dataset();
  const int64_t weights = session.parameters().bytes();
  memory.insert(memory.begin() + 1, {{"features", data.features.bytes()},
                                     {"labels and loss weights", data.targets.bytes() + data.num_nodes() * 8},
                                     {"parameters and optimiser state", weights + session.optimizer().bytes()}});
}

GpuListing listing_of(const PlanCommand& c, const Session& session, const Plan& plan, const DeviceInfo& gpu) {
  ListingOptions options;
  options.gpu = gpu;
  options.precision = gemm_precision(c.config.precision);
  options.title = session.config().model.model + " on " + session.dataset().name;
  return list_gpu_kernels(plan, session.blocks(), session.views(), options);
}

// What is shown: the session's own plan and bill, or those of a GPU that is not here.
struct Shown {
  Plan plan;
  std::vector<Dropped> dropped;
  std::string found;
  std::vector<MemoryItem> memory;
  size_t cuda_files = 0;
};

Shown make_shown(const PlanCommand& c, Session& session) {
  const DeviceInfo gpu = session.gpu() != nullptr ? session.gpu()->device().info() : typical_gpu();
  const bool typical = c.config.device == kTypical;
  Shown shown;
  const PlanAnswer answer = typical ? plan_for(gpu, c.config, session) : session.planning();
  shown.plan = typical ? answer.plan : session.plan();
  shown.dropped = answer.dropped;
  shown.found = typical ? "for " + gpu.name : how_found(session.planning());
  if (!typical) shown.memory = session.memory();
  if (!typical && c.cuda.empty()) return shown;
  GpuListing listing = listing_of(c, session, shown.plan, gpu);
  shown.cuda_files = listing.files.size();
  if (!c.cuda.empty()) write_listing(listing, c.cuda);
  if (typical) {
    shown.memory = std::move(listing.memory);
    add_run_memory(session, shown.memory);
  }
  return shown;
}

// How the session is opened: a GPU that is not here needs no search, and nothing of a device.
RunConfig session_config(const PlanCommand& c) {
  RunConfig config = c.config;
  if (config.device != kTypical) return config;
  gemm_precision(config.precision);
  check_plan(config);
  config.device = "cpu";
  config.precision = "f32";
  config.plan = "off";
  return config;
}

void run(PlanCommand& c) {
  const RunConfig config = session_config(c);
  apply_execution(config);
  check(c);
  Session session(open_data(config), config);
  for (const std::string& note : session.notes()) log_note(note);
  const Shown shown = make_shown(c, session);
  if (!c.output.empty()) write_file(c.output, plan_json(shown.plan) + "\n");
  if (!c.picture.empty()) draw(c, session, shown.plan);
  if (c.json) {
    fmt::print("{}\n", plan_json(shown.plan));
    return;
  }
  fmt::print("{}\nmemory of a run:\n{}{}{}", plan_text(shown.plan, session.blocks()), memory_text(shown.memory),
             peak_text(shown.plan, live_at_peak(shown.plan, session.blocks())), dropped_text(shown.dropped));
  fmt::print("plan {}; ready in {}:", shown.found, human_seconds(session.plan_seconds()));
  for (const PassTime& pass : shown.plan.passes) fmt::print(" {} {}", pass.pass, human_seconds(pass.seconds));
  fmt::print("\n");
  if (!c.output.empty()) fmt::print("plan file: {}\n", c.output);
  if (!c.picture.empty()) fmt::print("picture: {}\n", c.picture);
  if (!c.cuda.empty()) fmt::print("CUDA source: {} files and kernels.txt in {}\n", shown.cuda_files, c.cuda);
}

}  // namespace

void add_plan(Command app) {
  Command command = app.add_subcommand("plan", "show the plan of a run: DFG, kernels, memory");
  const auto c = std::make_shared<PlanCommand>();
  add_data_options(command, c->config, true);
  add_model_options(command, c->config);
  add_execution_options(command, c->config);
  add_planned_epochs(command, c->config);
  add_talk_options(command);
  command.add_option("--output,-o", c->output, "write the plan as JSON, for nacre train --plan FILE");
  command.add_option("--emit-cuda", c->cuda,
                     "write the CUDA source of the plan's kernels into this folder; needs no GPU (see --device " +
                         std::string(kTypical) + ")");
  command.get_option("--device")
      .add_help(";\n" + std::string(kTypical) + ": what would run on a GPU, whether or not there is one");
  command.add_option("--picture,--emit-svg", c->picture, "write a picture of the partition as SVG").group("Picture");
  command.add_option("--table", c->table, "picture of this partition table; default: the one the plan uses most")
      .group("Picture");
  command.add_option("--vertices", c->square.vertices, "side of the square shown").show_default().group("Picture");
  c->square.first = -1;
  command.add_option("--first", c->square.first, "its first vertex; default: vertices around the busiest one are shown")
      .not_negative()
      .group("Picture");
  command.add_flag("--json", c->json, "print JSON instead of text");
  command.callback([c] { run(*c); });
}

}  // namespace nacre::cli
