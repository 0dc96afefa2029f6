#include "nacre/train/precision_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/log.h"

namespace nacre {
namespace {

// Rows of a rank that stores bf16 travel as bf16, and take this share of the bytes of f32.
constexpr double kBytesOfBf16 = 0.5;

// Returns the reports as they would be if some ranks computed in bf16.
std::vector<PartReport> in_bf16(std::vector<PartReport> parts, const std::vector<char>& bf16) {
  for (size_t r = 0; r < parts.size(); ++r) {
    if (bf16[r] == 0) continue;
    PartReport& part = parts[r];
    part.kernel_seconds *= part.bf16_part;
    part.edge_seconds *= part.bf16_part;
    part.exchange_seconds *= kBytesOfBf16;
    part.received_bytes = static_cast<int64_t>(static_cast<double>(part.received_bytes) * kBytesOfBf16);
  }
  return parts;
}

const std::vector<PartTime>& times_of(const ShareChoice& choice) { return choice.moves ? choice.then : choice.now; }

// Marks in `bf16` the ranks that can switch and take longest, up to a tolerance. Returns whether it
// has marked any.
bool add_busiest(const std::vector<PartReport>& parts, const std::vector<PartTime>& times, std::vector<char>& bf16) {
  const double longest = slowest(times);
  bool added = false;
  for (size_t r = 0; r < times.size(); ++r) {
    if (bf16[r] != 0 || parts[r].bf16_part <= 0 || times[r].total() < longest * (1 - kTolerated)) continue;
    bf16[r] = 1;
    added = true;
  }
  return added;
}

std::string names_of(const std::vector<PartReport>& parts, const std::vector<char>& bf16) {
  std::string text;
  for (size_t r = 0; r < parts.size(); ++r) {
    if (bf16[r] != 0) text += fmt::format("{}rank {} ({})", text.empty() ? "" : ", ", r, parts[r].device);
  }
  return text;
}

}  // namespace

bool PrecisionChoice::switches() const {
  return std::any_of(bf16.begin(), bf16.end(), [](char b) { return b != 0; });
}

PrecisionChoice choose_precisions(const std::vector<PartReport>& parts, const BalanceSettings& settings) {
  PrecisionChoice choice;
  choice.bf16.assign(parts.size(), 0);
  choice.shares = balance_shares(parts, settings);
  if (choice.shares.now.empty()) {
    choice.reason = "all devices keep their precision: " + choice.shares.reason;
    return choice;
  }
  const double before = slowest(times_of(choice.shares));
  std::vector<char> tried = choice.bf16;
  if (!add_busiest(parts, times_of(choice.shares), tried)) {
    choice.reason = "all devices keep their precision: those that take longest cannot switch to bf16";
    return choice;
  }
  std::string rejected;
  do {
    ShareChoice next = balance_shares(in_bf16(parts, tried), settings);
    const double now = slowest(times_of(choice.shares)), then = slowest(times_of(next));
    if (then > now * (1 - kTolerated)) {
      rejected = fmt::format(
          "with bf16 on {}, a step is predicted to take {} instead of {}, which is not worth the "
          "change",
          names_of(parts, tried), human_seconds(then), human_seconds(now));
      break;
    }
    choice.bf16 = tried;
    choice.shares = std::move(next);
  } while (add_busiest(parts, times_of(choice.shares), tried));
  if (!choice.switches()) {
    choice.reason = "all devices keep their precision: " + rejected;
    return choice;
  }
  const double after = slowest(times_of(choice.shares));
  choice.reason = fmt::format("{}: the slowest rank takes {} per step; {} are predicted", names_of(parts, choice.bf16),
                              human_seconds(before), human_seconds(after));
  if ((before - after) * settings.steps_left < settings.cost_seconds) {
    choice.reason = fmt::format(
        "all devices keep their precision: a switch to bf16 takes {}, more than the rest of the "
        "run would save",
        human_seconds(settings.cost_seconds));
    choice.bf16.assign(parts.size(), 0);
    choice.shares = balance_shares(parts, settings);
    return choice;
  }
  const auto count = std::count(choice.bf16.begin(), choice.bf16.end(), 1);
  choice.reason = (count == 1 ? "a rank switches to bf16, because it has too much work: "
                              : "ranks switch to bf16, because they have too much work: ") +
                  choice.reason;
  return choice;
}

}  // namespace nacre
