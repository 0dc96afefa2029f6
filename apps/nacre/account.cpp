#include "account.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/train/device.h"
#include "nacre/train/estimate.h"

namespace nacre::cli {
namespace {

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

}  // namespace

MemoryAccount::MemoryAccount(RunConfig& config, const RunPurpose& purpose) : purpose_(purpose) {
  config.program_bytes = program_bytes();
  config_ = config;
  const std::optional<DataSizes> sizes = data_sizes(config.data, config.load);
  if (!sizes) return;
  mapped_ = sizes->mapped;
  bill_ = bill_before_reading(config, *sizes, purpose);
  require_fit(bill_, host_bound(config, choose_device(config.device, config.precision).gpu));
  require_device(config, *sizes, purpose.trains);
}

void MemoryAccount::reckon(HostMemory session) {
  session.trains = purpose_.trains;
  if (purpose_.loaded > 0) session.loading.push_back({"weights of the checkpoint", purpose_.loaded});
  bill_ = bill_of(session, bill_, mapped_);
}

void MemoryAccount::present(const HostMemory& session) {
  reckon(session);
  std::string text = bill_.text();
  text.pop_back();
  const MemoryBound bound = host_bound(config_, session.gpu);
  log_info(fmt::format("memory{}, of {} ({}):\n{}", session.gpu ? " of the host" : "", size_of(bound.bytes), bound.by,
                       text));
  require_fit(bill_, bound);
}

std::string MemoryAccount::phases_json() const {
  nlohmann::ordered_json phases = nlohmann::ordered_json::object();
  for (const MemoryPhase& phase : bill_.phases) phases[phase.name] = static_cast<double>(phase.bytes()) / (1 << 20);
  return phases.dump();
}

std::string MemoryAccount::closing_line() const {
  return fmt::format("memory: {} planned, {} at the peak of the process", size_of(planned()), size_of(peak_memory()));
}

void show_estimate(const RunConfig& config) {
  const std::optional<DataSizes> sizes = data_sizes(config.data, config.load);
  if (!sizes || !sizes->counted) {
    throw UserError("--bill", "the sizes of " + config.data + " are not known before it is read",
                    "leave --bill out, or convert the data to a .nacre file");
  }
  const MemoryBound bound = host_bound(config, false);
  fmt::print("memory of a run, estimated without loading the data, of {} ({}):\n{}", size_of(bound.bytes), bound.by,
             estimate_bill(config, *sizes).text());
}

}  // namespace nacre::cli
