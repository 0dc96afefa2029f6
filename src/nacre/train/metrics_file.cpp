#include "nacre/train/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"

namespace nacre {
namespace {

// Returns the epoch that a line describes, or nothing if it describes none.
std::optional<uint64_t> epoch_of(const std::string& line) {
  const auto j = parse_json_or_discard<nlohmann::json>(line);
  const auto epoch = j.is_object() ? j.value("epoch", nlohmann::json()) : nlohmann::json();
  return epoch.is_number_unsigned() ? std::optional(epoch.get<uint64_t>()) : std::nullopt;
}

// Returns the lines that `path` has of the epochs up to `last`, and then `unwritten` if they lack
// the epoch that `unwritten` describes.
std::string lines_up_to(const std::string& path, int last, const std::string& unwritten) {
  std::istringstream lines(read_file(path));
  std::string kept;
  std::string added = unwritten.empty() ? "" : unwritten + "\n";
  const std::optional<uint64_t> missing = epoch_of(unwritten);
  int strange = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::optional<uint64_t> epoch = epoch_of(line);
    if (!epoch) {
      ++strange;
    } else if (*epoch <= static_cast<uint64_t>(last)) {
      kept += line + "\n";
      if (epoch == missing) added.clear();
    }
  }
  if (strange == 1) log_warning(path + ": dropped a line that does not describe an epoch");
  if (strange > 1) log_warning(fmt::format("{}: dropped {} lines that do not describe an epoch", path, strange));
  return kept + added;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path, int resumed_epoch, const std::string& unwritten) : path_(path) {
  if (path.empty()) return;
  regular_ = !writes_straight(path);
  if (regular_) {
    std::error_code ignored;
    const bool goes_on = resumed_epoch > 0 && std::filesystem::exists(path, ignored);
    const std::string alone = unwritten.empty() ? "" : unwritten + "\n";
    write_file(path, goes_on ? lines_up_to(path, resumed_epoch, unwritten) : alone);
  }
  fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
  if (fd_ < 0) throw UserError(path, std::string("cannot be written: ") + std::strerror(errno));
  if (!regular_ && !unwritten.empty()) add(unwritten);
}

MetricsFile::~MetricsFile() {
  if (fd_ >= 0) close(fd_);
}

void MetricsFile::add(const std::string& line) {
  if (fd_ < 0) return;
  const std::string text = line + "\n";
  const off_t before = regular_ ? lseek(fd_, 0, SEEK_END) : 0;
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd_, text.data() + done, text.size() - done);
    if (n > 0) {
      done += static_cast<size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    const std::string why = n == 0 ? "nothing is taken any more" : std::strerror(errno);
    // Cuts off the half-written line, so that every line that is left in the file is whole JSON.
    const bool mended = !regular_ || before < 0 || ftruncate(fd_, before) == 0;
    throw RuntimeError(path_, "cannot be written: " + why + (mended ? "" : "; its last line is incomplete"));
  }
}

void MetricsFile::sync() {
  if (fd_ < 0 || !regular_ || fsync(fd_) == 0) return;
  throw RuntimeError(path_, std::string("cannot be written: ") + std::strerror(errno));
}

}  // namespace nacre
