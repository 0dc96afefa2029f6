// Writes and reads cost models and device profiles as JSON. Numbers are written with as many digits
// as it takes to read the same bits back. Reading is strict: a file in which anything is missing,
// unknown or impossible is refused as a whole.
//
//   model    {"all": COEFFICIENTS, "kinds": {KIND: COEFFICIENTS, …}}
//            There is no "all" if nothing was ever fitted.
//   profile  {"format": "nacre-profile", "machine": …, "kernels": VERSION, "cache_bytes": …, …,
//            "model": {…}}
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/cost/profile.h"

namespace nacre {
namespace {

using nlohmann::json;

constexpr const char* kProfileFormat = "nacre-profile";

json parse_object(const std::string& text, const std::string& where) {
  json object = parse_json<json>(text, where);
  if (!object.is_object()) throw UserError(where, "is not a JSON object");
  return object;
}

const json& member(const json& object, const std::string& key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) throw UserError(where, fmt::format("has no \"{}\"", key));
  return *found;
}

std::string text_member(const json& object, const std::string& key, const std::string& where) {
  const json& value = member(object, key, where);
  if (!value.is_string()) throw UserError(where, fmt::format("\"{}\" is not a text", key));
  return value.get<std::string>();
}

double amount_member(const json& object, const std::string& key, const std::string& where) {
  const json& value = member(object, key, where);
  const double amount = value.is_number() ? value.get<double>() : -1;
  if (!(amount >= 0) || !std::isfinite(amount)) {
    throw UserError(where, fmt::format("\"{}\" is not a number of at least 0", key));
  }
  return amount;
}

int64_t count_member(const json& object, const std::string& key, const std::string& where) {
  const json& value = member(object, key, where);
  const uint64_t count = value.is_number_unsigned() ? value.get<uint64_t>() : std::numeric_limits<uint64_t>::max();
  if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    throw UserError(where, fmt::format("\"{}\" is not a whole number of at least 0", key));
  }
  return static_cast<int64_t>(count);
}

std::string name_of(size_t feature) { return std::string(feature_name(static_cast<Feature>(feature))); }

json coefficients_json(const Coefficients& coefficients) {
  json object = json::object();
  for (size_t f = 0; f < kFeatures; ++f) object[name_of(f)] = coefficients[f];
  return object;
}

Coefficients parse_coefficients(const json& object, const std::string& where) {
  if (!object.is_object()) throw UserError(where, "is not an object of coefficients");
  Coefficients coefficients{};
  for (size_t f = 0; f < kFeatures; ++f) coefficients[f] = amount_member(object, name_of(f), where);
  if (object.size() != kFeatures) throw UserError(where, "holds a feature this program does not know");
  return coefficients;
}

// Returns the text of a JSON value. Names may hold any bytes, but JSON must be UTF-8, so bytes that
// are not UTF-8 are replaced.
std::string text_of(const json& j) { return j.dump(2, ' ', false, json::error_handler_t::replace); }

}  // namespace

std::string CostModel::json() const {
  nlohmann::json model = {{"kinds", nlohmann::json::object()}};
  for (const auto& [kind, coefficients] : kinds_) {
    (kind.empty() ? model["all"] : model["kinds"][kind]) = coefficients_json(coefficients);
  }
  return text_of(model);
}

CostModel CostModel::parse(const std::string& json, const std::string& where) {
  const nlohmann::json object = parse_object(json, where);
  const nlohmann::json& kinds = member(object, "kinds", where);
  if (!kinds.is_object()) throw UserError(where, "\"kinds\" is not an object");
  CostModel model;
  if (object.contains("all")) model.kinds_[""] = parse_coefficients(object["all"], where + ": all");
  for (const auto& [kind, coefficients] : kinds.items()) {
    if (kind.empty()) throw UserError(where, "holds a kind without a name");
    model.kinds_[kind] = parse_coefficients(coefficients, fmt::format("{}: kinds: {}", where, kind));
  }
  if (!model.empty() && !object.contains("all"))
    throw UserError(where, "has no coefficients \"all\" for kinds that were never timed");
  return model;
}

std::string profile_json(const DeviceProfile& profile) {
  return text_of({{"format", kProfileFormat},
                  {"machine", profile.machine},
                  {"kernels", profile.version},
                  {"cache_bytes", profile.cache_bytes},
                  {"gemm_flops", profile.gemm_flops},
                  {"stream_bytes", profile.stream_bytes},
                  {"near_gather_bytes", profile.near_gather_bytes},
                  {"far_gather_bytes", profile.far_gather_bytes},
                  {"launch_seconds", profile.launch_seconds},
                  {"model", parse_json<json>(profile.model.json(), "cost model")}});
}

DeviceProfile parse_profile(const std::string& json, const std::string& where) {
  const nlohmann::json object = parse_object(json, where);
  if (object.value("format", nlohmann::json()) != kProfileFormat) throw UserError(where, "is not a device profile");
  DeviceProfile profile;
  profile.machine = text_member(object, "machine", where);
  profile.version = text_member(object, "kernels", where);
  profile.cache_bytes = count_member(object, "cache_bytes", where);
  profile.gemm_flops = amount_member(object, "gemm_flops", where);
  profile.stream_bytes = amount_member(object, "stream_bytes", where);
  profile.near_gather_bytes = amount_member(object, "near_gather_bytes", where);
  profile.far_gather_bytes = amount_member(object, "far_gather_bytes", where);
  profile.launch_seconds = amount_member(object, "launch_seconds", where);
  profile.model = CostModel::parse(member(object, "model", where).dump(), where + ": model");
  return profile;
}

}  // namespace nacre
