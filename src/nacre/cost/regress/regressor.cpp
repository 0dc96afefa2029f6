#include "nacre/cost/regress/regressor.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"

namespace nacre {
namespace {

using nlohmann::json;

struct Entry {
  const char* name;
  std::unique_ptr<Regressor> (*make)(uint64_t seed);
};

constexpr Entry kEntries[] = {{"linear", [](uint64_t) { return make_linear(); }},
                              {"ridge", [](uint64_t) { return make_ridge(); }},
                              {"lasso", [](uint64_t) { return make_lasso(); }},
                              {"decision-tree", [](uint64_t) { return make_decision_tree(); }},
                              {"svr", [](uint64_t) { return make_svr(); }},
                              {"adaboost", make_adaboost},
                              {"bagging", make_bagging},
                              {"random-forest", make_random_forest},
                              {"gradient-boosting", make_gradient_boosting}};

std::vector<double> numbers(const json& list, const std::string& name, const std::string& where) {
  if (!list.is_array()) throw UserError(where, fmt::format("\"{}\" is not a list", name));
  std::vector<double> values;
  values.reserve(list.size());
  for (const json& value : list) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      throw UserError(where, fmt::format("\"{}\" holds something that is not a finite number", name));
    }
    values.push_back(value.get<double>());
  }
  return values;
}

}  // namespace

std::vector<std::string> regressor_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Regressor> make_regressor(const std::string& name, uint64_t seed) {
  std::string known;
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry.make(seed);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw UserError("regressor", fmt::format("'{}' is not known", name), "choose from " + known);
}

const std::vector<double>& state_list(const NumberLists& state, const std::string& list, int64_t size,
                                      const std::string& where) {
  const auto found = state.find(list);
  if (found == state.end()) throw UserError(where, fmt::format("has no list \"{}\"", list));
  if (size >= 0 && static_cast<int64_t>(found->second.size()) != size) {
    throw UserError(where, fmt::format("\"{}\" has {} numbers instead of {}", list, found->second.size(), size));
  }
  return found->second;
}

std::string regressor_json(const Regressor& regressor) {
  json state = json::object();
  for (const auto& [name, values] : regressor.state()) state[name] = values;
  return json({{"regressor", std::string(regressor.name())}, {"state", state}}).dump();
}

std::unique_ptr<Regressor> parse_regressor(const std::string& json, const std::string& where) {
  const auto object = parse_json<nlohmann::json>(json, where);
  if (!object.is_object() || !object.contains("regressor") || !object["regressor"].is_string() ||
      !object.contains("state") || !object["state"].is_object()) {
    throw UserError(where, "is not a regressor");
  }
  NumberLists state;
  for (const auto& [name, list] : object["state"].items()) state[name] = numbers(list, name, where);
  std::unique_ptr<Regressor> regressor = make_regressor(object["regressor"].get<std::string>());
  regressor->restore(state, where);
  return regressor;
}

}  // namespace nacre
