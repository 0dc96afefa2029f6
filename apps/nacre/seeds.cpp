#include "seeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "nacre/base/error.h"
#include "options.h"

namespace nacre::cli {
namespace {

constexpr uint64_t kMostSeeds = 10'000;

uint64_t seed_of(std::string_view text, const std::string& all) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UserError("--seeds", "'" + all + "' is not a list of seeds", "write for example 0-9 or 0,3,7");
  return value;
}

}  // namespace

std::vector<uint64_t> parse_seeds(const std::string& text) {
  std::vector<uint64_t> seeds;
  if (text.empty()) seed_of(text, text);  // refuses an empty text
  for (const std::string& part : split_list(text)) {
    const size_t dash = part.find('-');
    const uint64_t first = seed_of(std::string_view(part).substr(0, dash), text);
    const uint64_t last = dash == std::string::npos ? first : seed_of(std::string_view(part).substr(dash + 1), text);
    if (last < first) throw UserError("--seeds", "'" + part + "' ends before it begins", "write for example 0-9");
    if (last - first >= kMostSeeds || seeds.size() + (last - first) >= kMostSeeds)
      throw UserError("--seeds", fmt::format("asks for more than {} runs", kMostSeeds), "write for example 0-9");
    for (uint64_t k = 0; k <= last - first; ++k) {
      if (std::find(seeds.begin(), seeds.end(), first + k) != seeds.end())
        throw UserError("--seeds", fmt::format("names the seed {} twice", first + k));
      seeds.push_back(first + k);
    }
  }
  return seeds;
}

std::string folder_of_seed(const std::string& parent, uint64_t seed) { return fmt::format("{}/seed-{}", parent, seed); }

Spread spread_of(const std::vector<double>& scores) {
  double sum = 0;
  int64_t count = 0;
  for (const double s : scores) {
    if (!(s >= 0)) continue;
    sum += s;
    ++count;
  }
  if (count == 0) return {NAN, NAN};
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (const double s : scores) squares += s >= 0 ? (s - mean) * (s - mean) : 0;
  return {mean, count < 2 ? NAN : std::sqrt(squares / static_cast<double>(count - 1))};
}

std::string spread_text(const Spread& spread) {
  if (std::isnan(spread.mean)) return "–";
  if (std::isnan(spread.deviation)) return fmt::format("{:.4f}", spread.mean);
  return fmt::format("{:.4f} ± {:.4f}", spread.mean, spread.deviation);
}

}  // namespace nacre::cli
