// Does the work of nacre data list, make, convert, verify and export.
#include <fmt/format.h>

#include <filesystem>

#include "data_work.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/printable.h"
#include "nacre/base/warnings.h"
#include "nacre/data/native.h"
#include "nacre/data/native_floats.h"
#include "nacre/data/npz_write.h"
#include "nacre/data/npz_write_layouts.h"
#include "nacre/data/twin.h"
#include "options.h"

namespace nacre::cli {
namespace {

// Only a .nacre file records how it was made, so these options are refused for .npz.
void refuse_for_npz(const DataCommand& c) {
  for (const auto& [given, option] :
       {std::pair{c.convert.self_loops, "--self-loops"}, std::pair{c.reorder != "none", "--reorder"},
        std::pair{c.feature_dtype != "f32", "--feature-dtype"}, std::pair{c.memory_given, "--memory"}}) {
    if (given)
      throw UserError(option, "is only for .nacre outputs", "convert to a .nacre file, then export that to .npz");
  }
}

// Throws UserError if the output is a file that exists and --force is not given, because hours of
// work must not be lost to a name that was used before.
void refuse_existing(const DataCommand& c) {
  if (!c.force && std::filesystem::is_regular_file(c.output))
    throw UserError(c.output, "exists", "choose another name, or add --force to replace it");
}

void write_archive(const DataCommand& c) {
  refuse_for_npz(c);
  const Dataset dataset = open_data(c.config);
  for (const std::string& note : dataset.notes) log_note(note);
  write_npz(dataset, c.output);
}

}  // namespace

void list_twins() {
  fmt::print("{:<12} {:>12} {:>14} {:>9} {:>8}  {}\n", "twin:", "nodes", "edges", "features", "classes", "stands for");
  for (const TwinSpec& s : twin_specs()) {
    fmt::print("{:<12} {:>12} {:>14} {:>9} {:>8}  {}\n", s.name, human_count(s.num_nodes), human_count(s.num_edges),
               human_count(s.num_features), human_count(s.num_classes), s.about);
  }
}

void make_data(DataCommand& c) {
  if (!c.config.data.starts_with("twin:"))
    throw UserError(c.config.data, "is not a twin", "nacre data list shows the twins; nacre data convert reads files");
  convert_data(c);
}

void convert_data(DataCommand& c) {
  c.convert.reorder = parse_reorder(c.reorder);
  c.convert.feature_type = native::parse_float(c.feature_dtype);
  c.convert.load = c.config.load;
  refuse_existing(c);
  // An output that cannot be written must be refused before the data are read, which may take an
  // hour.
  if (c.output.ends_with(".npz")) {
    write_archive(c);
  } else if (c.output.ends_with(".nacre")) {
    if (std::filesystem::is_directory(c.output)) throw UserError(c.output, "is a folder", "name a file");
    PendingFile::check(c.output);
    const double start = now_seconds();
    const ConvertReport report = convert_dataset(c.config.data, c.output, c.convert);
    for (const std::string& note : report.notes) log_note(note);
    const double seconds = now_seconds() - start;
    std::string line = fmt::format("{} nodes, {} edges in {}", human_count(report.vertices), human_count(report.edges),
                                   human_seconds(seconds));
    if (seconds > 1) line += fmt::format(", {:.1f} M edges/s", static_cast<double>(report.edges) / seconds / 1e6);
    if (report.runs > 0) line += fmt::format(", {} sorted runs on disk", report.runs);
    log_info(line);
  } else {
    throw UserError(c.output, "has an unknown ending", "write .nacre (Nacre's own format) or .npz");
  }
  fmt::print("written: {}\n", printable(c.output));
}

void verify_data(const DataCommand& c) {
  const auto file = MappedFile::open(c.config.data);
  const double start = now_seconds();
  verify_native(file);
  const double seconds = now_seconds() - start;
  fmt::print("{}: whole; {} in {} sections checked in {}\n", printable(c.config.data),
             human_bytes(static_cast<double>(file->size())), native_contents(file).sections.size(),
             human_seconds(seconds));
}

void export_data(const DataCommand& c) {
  void (*write)(const Dataset&, const std::string&) = nullptr;
  if (c.layout == "npz") write = write_npz;
  if (c.layout == "ogb") write = write_ogb;
  if (c.layout == "saint") write = write_saint;
  if (write == nullptr) throw UserError("--format", "unknown layout '" + c.layout + "'", "choose npz, ogb or saint");
  refuse_existing(c);
  if (c.layout != "npz" && std::filesystem::exists(c.output)) {
    throw UserError(c.output, "exists already", "name a new folder; --force replaces files only");
  }
  const Dataset dataset = open_data(c.config);
  if (!dataset.original_ids.empty() || !dataset.node_names.empty()) {
    log_info("note: the nodes have Nacre's numbers, not those of their source");
  }
  write(dataset, c.output);
  fmt::print("written: {}\n", printable(c.output));
}

}  // namespace nacre::cli
