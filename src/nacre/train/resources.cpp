#include "nacre/train/resources.h"

#include <fmt/format.h>

#include <algorithm>

namespace nacre {
namespace {

std::string entry(const Resource& resource, int threads) {
  return fmt::format("{} {:.0f} %{}", resource.name, resource.percent,
                     resource.name == "host threads" ? fmt::format(" of {}", threads) : "");
}

}  // namespace

ResourceUse resource_use(const StepTimes& steps, const LoaderTimes& loader, int threads, bool sent) {
  ResourceUse use;
  use.threads = threads;
  const double seconds = steps.all();
  if (steps.steps == 0 || seconds <= 0) return use;
  const auto share = [&](double busy, double of) { return 100 * busy / of; };
  const double all_threads = seconds * threads;
  use.stages = {{"S", share(loader.sample_pick + loader.sample_insert, all_threads)},
                {"R", share(loader.reindex, all_threads)},
                {"K", share(loader.lookup, all_threads)},
                {"T", share(loader.transfer, all_threads)},
                {"making ready", share(loader.prepare, all_threads)}};
  double host = 0;
  for (const Resource& stage : use.stages) host += stage.percent;
  use.all = {{"device", share(steps.device, seconds)},
             {"host threads", host},
             {"launching thread", share(steps.host - steps.awaited, seconds)}};
  if (sent) use.all.push_back({"link", share(loader.copied, seconds)});
  std::stable_sort(use.all.begin(), use.all.end(),
                   [](const Resource& a, const Resource& b) { return a.percent > b.percent; });
  return use;
}

std::string ResourceUse::text() const {
  if (all.empty()) return "";
  std::string line = "fullest: ";
  for (const Resource& resource : all) {
    line += (&resource == &all.front() ? "" : "; ") + entry(resource, threads);
    if (resource.name != "host threads") continue;
    std::string parts;
    for (const Resource& stage : stages) parts += (parts.empty() ? "" : ", ") + entry(stage, threads);
    line += " (" + parts + ")";
  }
  return line;
}

double ResourceUse::percent(const std::string& name) const {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Resource& r) { return r.name == name; });
  return found != all.end() ? found->percent : -1;
}

}  // namespace nacre
