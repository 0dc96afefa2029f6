// Fuzzes whole layouts, folders and files. The input is text: "FORMAT" in its first line, then the
// files of the set, each behind a line "--- NAME" and followed by one line end. This reaches
// tables, JSON, YAML, Matrix Market and the fitting together of parts, and the blocks in which
// conversions read edges and features.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz.h"
#include "nacre/data/formats/format.h"
#include "nacre/data/load.h"

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "\n--- ";

// Returns whether a name stays inside the folder and has nothing that a shell or a terminal
// would stumble over.
bool usable(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-' || c == '/';
  };
  return !name.empty() && name.size() < 100 && name.front() != '/' && name.back() != '/' &&
         name.find("..") == std::string_view::npos && name.find("//") == std::string_view::npos &&
         std::all_of(name.begin(), name.end(), good);
}

void write_files(std::string_view text, const fs::path& folder) {
  for (size_t at = text.find(kMark); at != std::string_view::npos;) {
    const size_t next = text.find(kMark, at + 1);
    std::string_view part = text.substr(at, next == std::string_view::npos ? next : next - at);
    part.remove_prefix(kMark.size());
    const size_t line = part.find('\n');
    at = next;
    if (line == std::string_view::npos || !usable(part.substr(0, line))) continue;
    const fs::path path = folder / part.substr(0, line);
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    const std::string_view body = part.substr(line + 1);
    std::ofstream(path, std::ios::binary).write(body.data(), static_cast<std::streamsize>(body.size()));
  }
}

// Does what a conversion does with a set that may be larger than memory.
void stream(const nacre::DataSource& data_source, const nacre::Choice& choice) {
  if (choice.format->open == nullptr) return;
  const auto opened = choice.format->open(data_source, choice.variant, {});
  if (!opened) return;
  const nacre::DatasetBuilder& set = *opened;
  for (const auto& input : set.edge_inputs()) {
    const auto source = input.edges.open();
    std::vector<nacre::EdgePart> parts;
    while (source->next(parts)) {
    }
  }
  for (int k = 0; k < set.num_types(); ++k) {
    const auto& input = set.feature_inputs()[static_cast<size_t>(k)];
    if (!input || !input->stream || set.count(k) == 0) continue;
    const nacre::native::RowSource rows = input->stream(set.count(k));
    for (int64_t row = 0; row < rows.rows; ++row) rows.get(row, 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const fs::path folder = fs::temp_directory_path() / ("nacre-fuzz-" + std::to_string(getpid()));
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder);
  write_files(text, folder);
  const std::string format(text.substr(0, std::min(text.find('\n'), size_t{40})));
  // A set of one file is that file.
  fs::path path = folder;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    ++files;
    path = entry.path();
  }
  if (files != 1 || fs::is_directory(path)) path = folder;
  nacre::fuzz::run([&] { nacre::load_dataset(path.string(), {.format = format}).fingerprint(); });
  nacre::fuzz::run([&] {
    stream(nacre::DataSource(path.string()), nacre::choose_format(nacre::DataSource(path.string()), format));
  });
  fs::remove_all(folder, error);
  return 0;
}
