#include "nacre/train/share_balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/train/step_features.h"

namespace nacre {
namespace {

// A step must become shorter by this share of its time before a device is left out.
constexpr double kWorthLeavingOut = 0.05;
// If parts have this many vertices on average, they move by 1 − 1/e of the way to the shares that
// balance. Smaller parts move less, because their measured times predict less.
constexpr double kVerticesOfDecay = 2000;
// The work of a row counts as at least one edge, and at most as this many edges.
constexpr double kMostRowWork = 100;

// Predicts what a part would be like if its device had another share.
class Forecast {
 public:
  Forecast(const std::vector<PartReport>& parts, double row_work) : parts_(parts) {
    for (const PartReport& part : parts) {
      work_.push_back(row_work * static_cast<double>(part.vertices) + static_cast<double>(part.edges));
      vertices_ += static_cast<double>(part.vertices);
    }
    const double sum = std::accumulate(work_.begin(), work_.end(), 0.0);
    for (double& work : work_) work /= sum;
  }

  // Returns the share of the work that each part has before any work is moved.
  const std::vector<double>& shares() const { return work_; }

  PartLoad part(size_t rank, double share) const {
    const PartReport& now = parts_[rank];
    const double grown = share / work_[rank];
    const double halo = halo_growth(rank, share);
    const double own_rows = static_cast<double>(now.vertices), halo_rows = static_cast<double>(now.halo);
    const double rows = (own_rows * grown + halo_rows * halo) / std::max(1.0, own_rows + halo_rows);
    PartLoad load;
    load.features = scaled_features(now.features, {.rows = grown, .halo = halo});
    load.memory_bytes = std::llround(static_cast<double>(now.memory_bytes) * std::max(grown, rows));
    load.sent_bytes = static_cast<double>(now.received_bytes) * halo;
    return load;
  }

  // Returns the predicted seconds of the kernels of a part. If the kernels of the present part were
  // measured, their seconds are scaled by the ratio of the predictions for both parts, so a device
  // that is slower than predicted stays slower.
  double seconds(size_t rank, const PartLoad& load) const {
    const PartReport& now = parts_[rank];
    const double then = predicted(now, load.features);
    return now.kernel_seconds > 0 ? now.kernel_seconds * then / predicted(now, now.features) : then;
  }

  std::vector<PartTime> times(const std::vector<double>& shares) const {
    std::vector<PartTime> times;
    for (size_t r = 0; r < parts_.size(); ++r) {
      if (shares[r] <= 0) {
        times.emplace_back();
        continue;
      }
      times.push_back({seconds(r, part(r, shares[r])), parts_[r].exchange_seconds * halo_growth(r, shares[r])});
    }
    return times;
  }

 private:
  static double predicted(const PartReport& part, const std::vector<double>& features) {
    return std::max(1e-9, part.model ? part.model->predict(features) : counted_seconds(features));
  }

  // Returns how many times as large the halo becomes. The number of edges between a part and the
  // rest is taken to follow share × (1 − share), and a halo has no more vertices than the rest.
  double halo_growth(size_t rank, double share) const {
    const double now = work_[rank] * (1 - work_[rank]);
    const auto halo = static_cast<double>(parts_[rank].halo);
    if (now <= 1e-12 || halo <= 0) return 0;
    return std::clamp(share * (1 - share) / now, 0.0, (1 - share) * vertices_ / halo);
  }

  const std::vector<PartReport>& parts_;
  std::vector<double> work_;  // the share of each part in the work
  double vertices_ = 0;
};

// Returns how many edges the work of a row counts as, by the seconds of kernels that walk edges and
// of kernels that do not.
double measured_row_work(const std::vector<PartReport>& parts, double before) {
  double rows = 0, edges = 0, row_seconds = 0, edge_seconds = 0;
  for (const PartReport& part : parts) {
    rows += static_cast<double>(part.vertices);
    edges += static_cast<double>(part.edges);
    edge_seconds += part.edge_seconds;
    row_seconds += part.kernel_seconds - part.edge_seconds;
  }
  if (rows <= 0 || edges <= 0 || edge_seconds <= 0 || row_seconds <= 0) return before;
  return std::clamp((row_seconds / rows) / (edge_seconds / edges), 1.0, kMostRowWork);
}

std::vector<ShareDevice> devices_of(const std::vector<PartReport>& parts) {
  std::vector<ShareDevice> devices;
  for (const PartReport& part : parts) {
    const bool moves = part.exchange_seconds > 0 && part.received_bytes > 0;
    devices.push_back(
        {.name = part.device,
         .memory_bytes = part.memory_limit,
         .link_bytes_per_second = moves ? static_cast<double>(part.received_bytes) / part.exchange_seconds : 0});
  }
  return devices;
}

// Returns shares between `from` and `to`, the shares that balance, by the exponential decay of the
// νGNN paper. `vertices` is the number of vertices of all parts.
std::vector<double> decayed(const std::vector<double>& from, const std::vector<double>& to, double vertices) {
  const double left = std::exp(-vertices / static_cast<double>(from.size()) / kVerticesOfDecay);
  std::vector<double> shares;
  for (size_t r = 0; r < to.size(); ++r) shares.push_back(to[r] <= 0 ? 0 : (from[r] - to[r]) * left + to[r]);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

std::string table(const std::vector<PartReport>& parts, const ShareChoice& choice) {
  std::string text;
  for (size_t r = 0; r < parts.size(); ++r) {
    text += fmt::format("{}{} {:.1f} % ({} computing, {} exchanging)", r == 0 ? "" : "; ", parts[r].device,
                        100 * choice.shares[r], human_seconds(choice.then[r].compute),
                        human_seconds(choice.then[r].communicate));
  }
  return text;
}

// Returns why the times of the parts cannot be compared; an empty text if they can.
std::string obstacle(const std::vector<PartReport>& parts) {
  const bool measured =
      std::any_of(parts.begin(), parts.end(), [](const PartReport& part) { return part.kernel_seconds > 0; });
  for (const PartReport& part : parts) {
    if (part.vertices == 0) return part.device + " has no nodes, so its speed is not known";
    if (measured ? part.kernel_seconds <= 0 : !part.model) return part.device + " has not been timed";
  }
  return "";
}

}  // namespace

double slowest(const std::vector<PartTime>& times) {
  double most = 0;
  for (const PartTime& time : times) most = std::max(most, time.total());
  return most;
}

ShareChoice balance_shares(const std::vector<PartReport>& parts, const BalanceSettings& settings) {
  ShareChoice choice;
  choice.row_work = settings.moves_shares ? measured_row_work(parts, settings.row_work) : settings.row_work;
  const Forecast forecast(parts, choice.row_work);
  choice.shares = forecast.shares();
  if (const std::string why = obstacle(parts); !why.empty()) {
    choice.reason = why;
    return choice;
  }
  choice.now = choice.then = forecast.times(choice.shares);
  if (!settings.moves_shares) {
    choice.reason = "the shares were given";
    return choice;
  }
  const CutByShares cut = [&](std::span<const double> shares) {
    std::vector<PartLoad> loads;
    for (size_t r = 0; r < parts.size(); ++r) loads.push_back(shares[r] > 0 ? forecast.part(r, shares[r]) : PartLoad());
    return loads;
  };
  const PredictPart predict = [&](size_t rank, const PartLoad& load) { return forecast.seconds(rank, load); };
  ShareResult found;
  try {
    found = search_shares(devices_of(parts), cut, predict, {.first = choice.shares, .worthwhile = kWorthLeavingOut});
  } catch (const UserError& error) {
    choice.reason = error.what();
    return choice;
  }
  double vertices = 0;
  for (const PartReport& part : parts) vertices += static_cast<double>(part.vertices);
  const std::vector<double> wanted = decayed(choice.shares, found.shares, vertices);
  const std::vector<PartTime> then = forecast.times(wanted);
  const double before = slowest(choice.now), after = slowest(then);
  choice.reason = fmt::format("the slowest rank takes {} per step; {} are predicted with other shares",
                              human_seconds(before), human_seconds(after));
  if (after > before * (1 - kTolerated)) {
    choice.reason += ", which is not worth the change";
    return choice;
  }
  if ((before - after) * settings.steps_left < settings.cost_seconds) {
    choice.reason += fmt::format(", but cutting the graph again takes {}, more than the rest of the run would save",
                                 human_seconds(settings.cost_seconds));
    return choice;
  }
  choice.moves = true;
  choice.shares = wanted;
  choice.then = then;
  choice.reason += ": " + table(parts, choice);
  choice.left_out = found.notes;
  return choice;
}

}  // namespace nacre
