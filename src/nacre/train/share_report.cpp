#include "nacre/train/share_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/cost/gpu_profile.h"
#include "nacre/cost/nominal.h"
#include "nacre/plan/narrow.h"
#include "nacre/plan/work.h"
#include "nacre/train/gpu_device.h"
#include "nacre/train/link_rate.h"
#include "nacre/train/step_features.h"
#include "nacre/train/step_model.h"

namespace nacre {
namespace {

// GPUs of this compute capability and of later ones have units for bf16.
constexpr int kFirstArchOfBf16 = 80;

}  // namespace

void RankSession::keep_kernel_times(const std::vector<KernelTime>& before) {
  const Plan& plan = train_->plan();
  double all = 0, edges = 0;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel& kernel = plan.kernels[k];
    const double seconds = train_->times()[k].seconds - before[k].seconds;
    if (kernel.kind == KernelKind::exchange || seconds <= 0) continue;
    all += seconds;
    if (kernel_work(kernel, plan, *blocks_, 0)[Feature::edges] > 0) edges += seconds;
  }
  // Keeps the times of the fastest timed step only, because other programs can make steps longer,
  // but not shorter.
  if (kernel_seconds_ > 0 && all >= kernel_seconds_) return;
  kernel_seconds_ = all;
  edge_seconds_ = edges;
}

double RankSession::bf16_part() const {
  if (device().on_host() || device().gpu()->info().arch < kFirstArchOfBf16) return 0;
  GpuContext& gpu = gpu_of(device());
  const DeviceInfo& info = gpu.device().info();
  const auto stored = load_gpu_profile(gpu_label(info.name, info.multiprocessors));
  const auto seconds = [&](const Plan& plan, GemmType precision) {
    CostModel model = nominal_gpu().model;
    int64_t cache = nominal_gpu().cache_bytes;
    if (stored) {
      const DeviceProfile profile = planning_profile(*stored, precision);
      model = profile.model;
      cache = profile.cache_bytes;
    }
    double sum = 0;
    for (const Kernel& kernel : plan.kernels) {
      if (kernel.once || kernel.kind == KernelKind::exchange) continue;
      sum += model.predict(kernel_work(kernel, plan, *blocks_, cache));
    }
    return sum;
  };
  DeviceTraits bf16 = device().backend()->traits();
  bf16.products = GemmType::bf16;
  Plan narrow = train_->plan();
  if (!narrow.options.disabled_passes.contains("store_as_bf16")) mark_narrow(narrow, bf16);
  const double now = seconds(train_->plan(), gpu.options().precision);
  return now > 0 ? std::min(1.0, seconds(narrow, GemmType::bf16) / now) : 0;
}

std::vector<std::string> RankSession::describe_parts(bool only_modelled) const {
  NACRE_CHECK(train_ != nullptr, "the part of a rank that does not train has no features of a training step");
  const auto model = load_step_model(step_model_key(setup_.config, setup_.threads));
  if (only_modelled) {
    const std::vector<std::string> known = setup_.control.all_gather(model ? "yes" : "");
    if (std::any_of(known.begin(), known.end(), [](const std::string& word) { return word.empty(); })) return {};
  }
  const std::vector<double> features = step_features({.model = setup_.run.config.model,
                                                      .plan = train_->plan(),
                                                      .blocks = *blocks_,
                                                      .own = local_->num_own(),
                                                      .gpu = !device().on_host()});
  const nlohmann::json part = {
      {"features", features}, {"model", model ? model->json() : ""}, {"bf16_part", bf16_part()}, {"link", link_}};
  return setup_.control.all_gather(part.dump());
}

std::vector<PartReport> part_reports(const std::vector<RankDevice>& devices, const std::vector<RankFigures>& planned,
                                     const std::vector<RankFigures>& figures, const std::vector<std::string>& parts) {
  std::vector<PartReport> reports;
  for (size_t r = 0; r < devices.size(); ++r) {
    const RankFigures& now = figures[r];
    const auto part = parse_json<nlohmann::json>(parts[r], "the part of a rank");
    PartReport report;
    report.device = devices[r].text;
    report.vertices = now.vertices;
    report.edges = now.edges;
    report.halo = now.halo;
    report.features = part.at("features").get<std::vector<double>>();
    const auto model = part.at("model").get<std::string>();
    if (!model.empty()) report.model = PerformanceModel::parse(model, "the performance model of a rank");
    report.kernel_seconds = now.kernel_seconds;
    report.edge_seconds = now.edge_seconds;
    report.received_bytes = now.planned_received;
    report.memory_bytes = planned[r].device_bytes;
    report.memory_limit = planned[r].memory_limit;
    if (devices[r].automatic && devices[r].precision != "bf16") report.bf16_part = part.at("bf16_part").get<double>();
    const auto measured = part.at("link").get<double>();
    const double link = measured > 0 ? measured : usual_link_rate(devices[r].device != "cpu");
    report.exchange_seconds = now.times.count > 0 ? now.times.exchanging() / static_cast<double>(now.times.count)
                                                  : static_cast<double>(now.planned_received) / link;
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace nacre
