// Adds the options that say where the features of mini-batches lie.
#include <fmt/format.h>

#include "nacre/place/placement.h"
#include "nacre/tensor/feature_types.h"
#include "options.h"

namespace nacre::cli {
namespace {

// Sets the budget of each device from `text`, which has one size for each.
void set_feature_budget(const std::string& text, FeatureOptions& f) {
  f.budget.clear();
  for (const std::string& size : split_list(text, ',')) f.budget.push_back(parse_size("--feature-budget", size));
  if (f.budget.empty()) parse_size("--feature-budget", text);
}

// Returns the names that --placement accepts, and what they mean.
std::vector<std::string> placement_names() {
  std::vector<std::string> names = {"auto"};
  for (const PlacementMethod& method : placement_methods()) names.emplace_back(method.name);
  return names;
}
std::string placements_text() {
  std::string text;
  for (const PlacementMethod& method : placement_methods())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ",\n", method.name, method.what);
  return text + ";\nauto is the first of these";
}

}  // namespace

void add_feature_options(Command command, RunConfig& c) {
  const auto add = [](const Setting& setting) { setting.group("Mini-batches"); };
  const std::vector<Synonym> places = {{"gpu", "device"}, {"cuda", "device"}, {"cpu", "host"}};
  add(command
          .add_option("--features-on", c.features_on,
                      "where the features are: device (rows are looked up there), host (the rows of each batch are "
                      "sent) or auto")
          .one_of("place", {"auto", "device", "host"}, places)
          .show_default());
  add(command.add_call(
      "--feature-budget", [&c](const std::string& text) { set_feature_budget(text, c.features); },
      "device memory for rows of features, for example 2G; the other rows stay on the host; default: the\n"
      "device memory that is left"));
  add(command
          .add_option("--placement", c.features.placement,
                      "how the rows in device memory are chosen:\n" + placements_text())
          .one_of("placement", placement_names(), {})
          .show_default());
  add(command
          .add_option("--cache", c.features.cache,
                      "which rows are in device memory: static (always those that --placement chooses) or lookahead\n"
                      "(batches are drawn ahead, and the rows that the next ones read soonest stay)")
          .one_of("way", {"static", "lookahead"}, {{"look-ahead", "lookahead"}})
          .show_default());
  add(command
          .add_option(
              "--locality", c.features.locality,
              "how much more often samples have nodes whose rows are in device memory: a factor, for example 4;\n"
              "auto (it grows while loading takes more than a fifth of the time) or off")
          .show_default());
  add(command
          .add_option("--host-rows", c.features.host_rows,
                      "how a GPU gets rows of the host: link (its kernels read them), copy (threads of the host gather "
                      "them) or auto")
          .one_of("way", {"auto", "link", "copy"}, {})
          .show_default());
  add(command
          .add_option("--feature-type", c.features.type,
                      "type that features are stored in: f32, or bf16 and f16, which take half the memory")
          .one_of("type", feature_type_names(), float_synonyms())
          .show_default());
  add(command.add_call(
      "--host-budget", [&c](const std::string& text) { c.host_budget = parse_size("--host-budget", text); },
      "host memory for features, for example 4G; if they take more and are f32 in a .nacre file, they\n"
      "stay on disk, and rows are read before batches need them"));
  add(command
          .add_option("--pack", c.pack,
                      "whether rows that stay on disk are written next to each other for groups of batches: auto\n"
                      "(where measured rates of the disk say that it saves time), on or off")
          .one_of("choice", {"auto", "on", "off"})
          .show_default());
  add(command.add_option(
      "--pack-folder", c.pack_folder,
      "folder for the rows that --pack writes, best on a fast disk; default: the folder of the data"));
}

}  // namespace nacre::cli
