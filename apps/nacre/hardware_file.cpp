#include "hardware_file.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/base/pending_file.h"
#include "nacre/cost/nominal.h"
#include "nacre/cost/profile.h"
#include "nacre/engine/calibrate.h"
#include "nesting.h"
#include "options.h"

namespace nacre::cli {
namespace {

constexpr int kMostDevices = 1024;
constexpr int kMostThreads = 4096;

// Reads a table of the TOML file and remembers which keys were asked for. When all known keys have
// been read, it can refuse the others.
class Table {
 public:
  Table(std::string path, const toml::table& table, std::string title)
      : path_(std::move(path)), table_(table), title_(std::move(title)) {}

  std::string text(const std::string& key, const std::string& otherwise = "") {
    const toml::node* node = find(key);
    if (node == nullptr) return otherwise;
    if (const auto* value = node->as_string()) return value->get();
    fail(*node, "'" + key + "' must be a text", "write " + key + " = \"…\"");
  }
  // Returns the number under `key`, or nothing if the table has no such key. Throws UserError if
  // the number is negative, or if it is 0 and `may_be_zero` is false.
  std::optional<double> number(const std::string& key, bool may_be_zero = false) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    double value = NAN;
    if (const auto* whole = node->as_integer()) value = static_cast<double>(whole->get());
    if (const auto* real = node->as_floating_point()) value = real->get();
    if (!std::isfinite(value) || value < 0 || (value == 0 && !may_be_zero))
      fail(*node, "'" + key + "' must be a number " + (may_be_zero ? "of at least 0" : "above 0"));
    return value;
  }
  int whole(const std::string& key, int otherwise, int most) {
    const toml::node* node = find(key);
    if (node == nullptr) return otherwise;
    const auto* value = node->as_integer();
    if (value == nullptr || value->get() < 1 || value->get() > most)
      fail(*node, fmt::format("'{}' must be a whole number from 1 to {}", key, most));
    return static_cast<int>(value->get());
  }
  int64_t size(const std::string& key, int64_t otherwise) {
    const toml::node* node = find(key);
    if (node == nullptr) return otherwise;
    if (const auto* value = node->as_string()) return parse_size(where(*node), value->get());
    fail(*node, "'" + key + "' must be a size", "write for example " + key + " = \"80G\"");
  }
  std::optional<bool> flag(const std::string& key) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    if (const auto* value = node->as_boolean()) return value->get();
    fail(*node, "'" + key + "' must be true or false");
  }
  std::optional<Table> table(const std::string& key) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    if (const toml::table* inner = node->as_table()) return Table(path_, *inner, "[" + key + "]");
    fail(*node, "'" + key + "' must be a table", "write [" + key + "]");
  }
  std::vector<Table> tables(const std::string& key) {
    std::vector<Table> list;
    const toml::node* node = find(key);
    if (node == nullptr) return list;
    const toml::array* array = node->as_array();
    if (array == nullptr || !array->is_array_of_tables())
      fail(*node, "'" + key + "' must be a list of tables", "write [[" + key + "]]");
    for (const toml::node& item : *array) list.emplace_back(path_, *item.as_table(), "[[" + key + "]]");
    return list;
  }

  [[noreturn]] void fail(const std::string& key, const std::string& what, const std::string& remedy = "") const {
    const toml::node* node = table_.get(key);
    fail(node == nullptr ? static_cast<const toml::node&>(table_) : *node, what, remedy);
  }

  void refuse_others() const {
    const std::vector<std::string> known(asked_.begin(), asked_.end());
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (asked_.contains(name)) continue;
      const std::string like = nearest_name(name, known);
      fail(node, fmt::format("{} has no key '{}'", title_, name),
           like.empty() ? "its keys are " + listed(known) : "did you mean '" + like + "'?");
    }
  }

 private:
  const toml::node* find(const std::string& key) {
    asked_.insert(key);
    return table_.get(key);
  }
  std::string where(const toml::node& node) const {
    return at_line(path_, static_cast<int64_t>(node.source().begin.line));
  }
  [[noreturn]] void fail(const toml::node& node, const std::string& what, const std::string& remedy = "") const {
    throw UserError(where(node), what, remedy);
  }

  std::string path_;
  const toml::table& table_;
  std::string title_;
  std::set<std::string> asked_;
};

// Sets the device's rates to those of `profile`: a profile file, or "machine" for what `nacre
// profile` has measured on this machine.
void take_profile(const std::string& path, Table& table, const std::string& profile, DescribedDevice& device) {
  const int threads = device.threads;
  DeviceProfile found;
  if (profile == "machine") {
    const auto stored = load_profile(machine_name(threads), kProfileVersion);
    if (!stored)
      table.fail("profile", fmt::format("this machine has not been measured with {}", counted(threads, "thread")),
                 fmt::format("run nacre profile --threads {} first", threads));
    found = *stored;
  } else {
    const std::filesystem::path file = std::filesystem::path(path).parent_path() / profile;
    found = parse_profile(read_file(file.string()), file.string());
  }
  device.model = found.model;
  device.cache_bytes = found.cache_bytes;
  device.rates = "measured on " + found.machine;
}

// Changes single rates of the device as the table [device.rates] says. The table has amounts per
// second.
void take_rates(Table rates, DescribedDevice& device) {
  std::string told;
  for (const Feature f : {Feature::flops, Feature::vector_flops, Feature::stream_bytes, Feature::near_bytes,
                          Feature::far_bytes, Feature::rows, Feature::edges, Feature::tasks}) {
    const std::string name(feature_name(f));
    const auto rate = rates.number(name);
    if (!rate) continue;
    Work one;
    one[f] = 1;
    const double now = device.model.predict(one);
    if (now <= 0) rates.fail(name, "the profile of this device has no rate of '" + name + "' that could be replaced");
    device.model.scale(f, 1 / (*rate * now));
    told += fmt::format("{}{} {:.3g} per second", told.empty() ? ", with " : ", ", name, *rate);
  }
  rates.refuse_others();
  device.rates += told;
}

DescribedDevice read_device(const std::string& path, Table table) {
  DescribedDevice device;
  device.name = table.text("name");
  if (device.name.empty()) table.fail("name", "a [[device]] needs a name", "write name = \"H200\"");
  device.count = table.whole("count", 1, kMostDevices);
  const std::string kind = table.text("kind", "gpu");
  if (kind != "gpu" && kind != "cpu") table.fail("kind", "'" + kind + "' is not a kind of device", "choose gpu or cpu");
  device.gpu = kind == "gpu";
  if (!device.gpu) device.threads = table.whole("threads", 1, kMostThreads);
  const NominalProfile& nominal = device.gpu ? nominal_gpu() : nominal_cpu();
  device.model = nominal.model;
  device.cache_bytes = nominal.cache_bytes;
  device.rates = "nominal";
  if (const std::string like = table.text("like"); !like.empty()) {
    const DescribedDevice other = named_hardware(like).devices.front();
    device.model = other.model;
    device.cache_bytes = other.cache_bytes;
    device.memory_bytes = other.memory_bytes;
    device.multiprocessors = other.multiprocessors;
    device.rates = other.rates;
  }
  if (const std::string profile = table.text("profile"); !profile.empty()) take_profile(path, table, profile, device);
  if (device.model.empty())
    table.fail("profile", "the profile of this device has no cost model",
               "write the profile again with nacre explain --save-profile");
  device.cache_bytes = table.size("cache", device.cache_bytes);
  device.memory_bytes = table.size("memory", device.memory_bytes);
  device.multiprocessors = table.whole("multiprocessors", device.multiprocessors, 4096);
  device.together = table.number("together").value_or(1);
  if (device.together > 1)
    table.fail("together", "'together' must be at most 1, because it is the share of the memory rates that is left");
  if (auto rates = table.table("rates")) take_rates(std::move(*rates), device);
  table.refuse_others();
  return device;
}

LinkRates read_link(Table table) {
  LinkRates link;
  link.bandwidth = table.number("bandwidth").value_or(0);
  link.latency = table.number("latency", true).value_or(0);
  link.message = table.number("message", true).value_or(0);
  table.refuse_others();
  return link;
}

Hardware parse(const std::string& path, const toml::table& root) {
  Table table(path, root, "the file");
  Hardware h;
  h.name = table.text("name", path);
  h.machines = table.whole("machines", 1, kMostDevices);
  for (Table& device : table.tables("device")) {
    h.devices.push_back(read_device(path, std::move(device)));
    for (size_t d = 0; d + 1 < h.devices.size(); ++d) {
      if (h.devices[d].name == h.devices.back().name)
        throw UserError(path, "has two devices named '" + h.devices[d].name + "'",
                        "give them different names, or one of them a larger count");
    }
  }
  if (h.devices.empty()) throw UserError(path, "describes no device", "add a [[device]] table");
  if (auto link = table.table("inside")) h.inside = read_link(std::move(*link));
  if (auto link = table.table("between")) h.between = read_link(std::move(*link));
  h.overlap = table.flag("overlap").value_or(h.inside.bandwidth > 0);
  table.refuse_others();
  if (h.machines > 1 && h.between.bandwidth == 0)
    throw UserError(path, "has several machines, but no bandwidth between them", "add [between] with a bandwidth");
  return h;
}

}  // namespace

Hardware read_hardware(const std::string& text) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(text, error)) return named_hardware(text);
  constexpr size_t kMostBytes = size_t{1} << 20;
  if (std::filesystem::file_size(text, error) > kMostBytes)
    throw UserError(text, "is too large for a description of hardware", "it may have at most 1 MiB");
  const std::string content = read_file(text);
  refuse_nesting(text, content, true);
  toml::table table;
  try {
    table = toml::parse(content, text);
  } catch (const toml::parse_error& problem) {
    throw UserError(at_line(text, static_cast<int64_t>(problem.source().begin.line)),
                    "is not TOML: " + std::string(problem.description()),
                    "write KEY = VALUE; texts stand in quotation marks");
  }
  return parse(text, table);
}

}  // namespace nacre::cli
