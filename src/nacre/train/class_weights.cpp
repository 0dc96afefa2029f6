#include "nacre/train/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"

namespace nacre {
namespace {

constexpr const char* kOption = "--class-weights";

std::vector<double> balanced(const Dataset& d) {
  std::vector<int64_t> counts(d.num_classes, 0);
  int64_t nodes = 0;
  for (const NodeId v : d.splits.train) {
    if (d.labels[v] < 0) continue;
    ++counts[d.labels[v]];
    ++nodes;
  }
  const auto present = std::count_if(counts.begin(), counts.end(), [](int64_t c) { return c > 0; });
  std::vector<double> weights;
  weights.reserve(counts.size());
  for (const int64_t count : counts) {
    // The weight of a class that no training node has does not matter.
    weights.push_back(count == 0 ? 1 : static_cast<double>(nodes) / static_cast<double>(present * count));
  }
  return weights;
}

// Returns balanced weights for data whose nodes may have several classes: the training nodes that
// have a class weigh as much together as those that do not have it. A class that all training nodes
// have, or none, weighs 1.
std::vector<double> balanced_pairs(const Dataset& d) {
  std::vector<int64_t> with(d.num_classes, 0);
  for (const NodeId v : d.splits.train) {
    const uint8_t* target = d.targets.data<uint8_t>() + static_cast<int64_t>(v) * d.num_classes;
    for (size_t c = 0; c < with.size(); ++c) with[c] += target[c] != 0 ? 1 : 0;
  }
  std::vector<double> weights;
  weights.reserve(with.size());
  for (const int64_t count : with) {
    const int64_t without = d.splits.train.size() - count;
    weights.push_back(count == 0 || without == 0 ? 1 : static_cast<double>(without) / static_cast<double>(count));
  }
  return weights;
}

// Returns the numbers in `text` between commas, semicolons, blanks and line ends. Throws a
// UserError that names `where` if something else is between them.
std::vector<double> numbers(std::string_view text, const std::string& where) {
  constexpr std::string_view between = ", ;\t\r\n";
  std::vector<double> list;
  for (size_t at = text.find_first_not_of(between); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(between, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    double value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || stop != word.data() + word.size() || !std::isfinite(value) || value < 0) {
      throw UserError(where, fmt::format("'{}' is not the weight of a class", word.substr(0, 40)),
                      "give one number that is not negative for each class");
    }
    list.push_back(value);
    at = text.find_first_not_of(between, end);
  }
  return list;
}

bool is_list(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.,eE+- ") == std::string::npos;
}

}  // namespace

std::vector<double> class_weights(std::string& text, const Dataset& d) {
  if (text.empty()) return {};
  if (text == "balanced") return d.multilabel() ? balanced_pairs(d) : balanced(d);
  const bool list = is_list(text) && !std::filesystem::exists(text);
  if (!list && !std::filesystem::exists(text)) {
    throw UserError(kOption, "there is no file '" + text + "'",
                    "write balanced, a list such as 1,0.5,2, or the name of a file of numbers");
  }
  std::vector<double> weights = numbers(list ? text : read_file(text), list ? kOption : text);
  if (static_cast<int64_t>(weights.size()) != d.num_classes) {
    throw UserError(list ? kOption : text,
                    fmt::format("gives {} weights, but there are {} classes", weights.size(), d.num_classes),
                    "give one for each class");
  }
  // If nodes may have several classes, the weights are not tested for zeros: the weight of a class
  // counts only for nodes that have it, and other pairs of a node and a class weigh 1.
  const bool any = d.multilabel() || std::any_of(d.splits.train.begin(), d.splits.train.end(), [&](NodeId v) {
                     return d.labels[v] >= 0 && weights[d.labels[v]] > 0;
                   });
  if (!any)
    throw UserError(kOption, "gives every training node the weight 0", "give a class that occurs a positive weight");
  text.clear();
  for (const double w : weights) text += (text.empty() ? "" : ",") + fmt::format("{}", w);
  return weights;
}

}  // namespace nacre
