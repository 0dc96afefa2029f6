#include "nacre/train/disk_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/printable.h"
#include "nacre/train/feature_options.h"

namespace nacre {
namespace {

constexpr int64_t kPage = 4096;
// The budget divided by the first number is for evaluation, and divided by the second for packing.
constexpr int64_t kEvaluationPart = 4, kPackPart = 4;
constexpr int64_t kLeastRows = 64;  // the fewest rows of a block of evaluation

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

RowLayout layout_of(const StoredRows& rows) { return {rows.offset, rows.row_bytes, rows.rows, kPage}; }

void add_to(DiskCounters& sum, const DiskCounters& more) {
  sum.batches += more.batches;
  sum.from_memory += more.from_memory;
  sum.from_disk += more.from_disk;
  sum.not_seated += more.not_seated;
  sum.read.reads += more.read.reads;
  sum.read.pages += more.read.pages;
  sum.read.bytes += more.read.bytes;
  sum.packed += more.packed;
  sum.gathered.bytes += more.gathered.bytes;
  sum.written += more.written;
}

}  // namespace

std::optional<StoredRows> rows_on_disk(const RunConfig& config, const Dataset& dataset) {
  if (config.host_budget <= 0) return std::nullopt;
  if (config.mode != "minibatch")
    throw UserError("--host-budget", "is for mini-batches, but this run trains on the whole graph",
                    "add --mode minibatch, or leave it out");
  // To narrow features, all rows would have to be in memory, so --feature-type must be f32.
  if (config.features.type != "f32") check_feature_options(config);
  if (dataset.heterogeneous() && !dataset.features.defined()) check_kind_options(config);
  if (!dataset.features.defined())
    throw UserError("--host-budget", "limits the memory of features, but this run has none that are read from a file",
                    "leave it out");
  if (bytes_on_disk(config, dataset.features.bytes()) == 0) return std::nullopt;
  std::optional<StoredRows> rows;
  if (config.load.features_file.empty()) rows = stored_features(config.data);
  if (!rows || rows->bytes() != dataset.features.bytes()) {
    throw UserError("--host-budget",
                    fmt::format("the features take {}, and only f32 features of a .nacre file can stay on disk",
                                size_of(dataset.features.bytes())),
                    "write such a file with nacre data convert, or raise --host-budget");
  }
  return rows;
}

int64_t bytes_on_disk(const RunConfig& config, int64_t feature_bytes) {
  return config.host_budget > 0 && feature_bytes > config.host_budget ? feature_bytes : 0;
}

DiskTier::DiskTier(const RunConfig& config, const StoredRows& rows)
    : budget_(config.host_budget), file_(std::make_shared<RowFile>(rows.path, layout_of(rows))) {
  // Packing gains little if a row fills most of a page, because little else is read with it.
  const bool gains = rows.row_bytes * 2 <= kPage;
  pack_.how = config.pack == "on" ? Packing::on : config.pack == "auto" && gains ? Packing::automatic : Packing::off;
  if (pack_.how == Packing::off) return;
  pack_.memory = budget_ / kPackPart;
  pack_.folder = config.pack_folder;
  if (pack_.folder.empty()) pack_.folder = std::filesystem::absolute(rows.path).parent_path().string();
  std::error_code ignored;
  if (!std::filesystem::is_directory(pack_.folder, ignored))
    throw UserError("--pack-folder", "'" + pack_.folder + "' is not a folder", "name a folder that exists");
}

// A block gets a third of the seats of evaluation, so that the next block is read while one is
// computed.
int64_t DiskTier::block_bytes() const {
  const int64_t seats = divide_budget(budget_ / kEvaluationPart, row_bytes(), 0).seats;
  return std::max(kLeastRows, seats / 3) * row_bytes();
}

void DiskTier::divide(int64_t batch_rows, bool evaluates) {
  batch_rows_ = batch_rows;
  evaluates_ = evaluates;
  const int64_t for_blocks = evaluates ? budget_ / kEvaluationPart : 0;
  sizes_ = divide_budget(budget_ - for_blocks - pack_.memory, row_bytes(), batch_rows);
  evaluation_sizes_ = divide_budget(for_blocks, row_bytes(), block_bytes() / row_bytes());
  if (sizes_.seats >= batch_rows) return;
  int64_t least = least_budget(row_bytes(), batch_rows);
  const double part = 1 - (evaluates ? 1.0 / kEvaluationPart : 0) - (pack_.memory > 0 ? 1.0 / kPackPart : 0);
  least = static_cast<int64_t>(static_cast<double>(least) / part);
  throw UserError("--host-budget",
                  fmt::format("{} cannot hold the rows of a batch (up to {}) and the look-ahead", size_of(budget_),
                              human_count(batch_rows)),
                  fmt::format("give at least {}M, or use a smaller --batch-size or --fanout", (least >> 20) + 1));
}

Tensor DiskTier::read(std::span<const NodeId> ids) const {
  Tensor rows(DType::f32, {static_cast<int64_t>(ids.size()), row_bytes() / 4});
  read_rows(*file_, ids, rows.raw(), row_bytes());
  return rows;
}

RowSource* DiskTier::source(const Sampler& sampler, const BatchOrder& order, const WantedRows& wanted) {
  if (!source_) {
    if (!drawer_) drawer_ = sampler.make_batch_sampler();
    source_ =
        std::make_unique<DiskRows>(file_, sampled_batches(sampler, std::move(drawer_), order, wanted), sizes_, pack_);
  }
  return source_.get();
}

std::unique_ptr<DiskRows> DiskTier::evaluation_source(std::unique_ptr<BatchSequence> blocks) const {
  auto source = std::make_unique<DiskRows>(file_, std::move(blocks), evaluation_sizes_);
  source->begin({0, 0}, false);
  return source;
}

void DiskTier::count(const DiskRows& evaluation) { add_to(evaluation_, evaluation.counters()); }

std::vector<MemoryItem> DiskTier::memory(int in_flight) const {
  const RowLayout& layout = file_->layout();
  int64_t tables = DiskRows::table_bytes(layout, sizes_, batch_rows_, in_flight);
  tables += layout.rows * 12;  // tables of the sampler that looks ahead, and the order of its
                               // batches
  if (evaluates_) tables += DiskRows::table_bytes(layout, evaluation_sizes_, block_bytes() / row_bytes(), 1);
  return {{"feature rows in memory, the others on disk", budget_}, {"tables to look ahead with", tables}};
}

std::string DiskTier::note() const {
  const int64_t bytes = file_->layout().rows * row_bytes();
  const int64_t ahead = std::max<int64_t>(1, sizes_.rows_ahead / std::max<int64_t>(1, batch_rows_));
  std::string note = fmt::format(
      "features ({}) stay on disk; their rows are read by {}{}, and the rows of about {} batches ahead are known",
      size_of(bytes), make_read_queue(1)->name(), file_->direct() ? "" : " through the page cache", human_count(ahead));
  if (pack_.how != Packing::off) {
    note += fmt::format("; packed rows {} up to {} of disk space in {}", pack_.how == Packing::on ? "take" : "may take",
                        size_of(DiskRows::pack_bytes(pack_, row_bytes())), printable(pack_.folder));
  }
  return note;
}

DiskCounters since(const DiskCounters& after, const DiskCounters& before) {
  DiskCounters difference = after;
  difference.batches -= before.batches;
  difference.from_memory -= before.from_memory;
  difference.from_disk -= before.from_disk;
  difference.not_seated -= before.not_seated;
  difference.read.reads -= before.read.reads;
  difference.read.pages -= before.read.pages;
  difference.read.bytes -= before.read.bytes;
  difference.packed -= before.packed;
  difference.gathered.bytes -= before.gathered.bytes;
  difference.written -= before.written;
  return difference;
}

std::string disk_json(const DiskCounters& c, int64_t row_bytes, double waited) {
  const auto useful = static_cast<double>(c.from_disk * row_bytes);
  const auto moved = static_cast<double>(c.read.bytes + c.gathered.bytes);
  nlohmann::ordered_json j = {{"rows_from_memory", c.from_memory},
                              {"rows_from_disk", c.from_disk},
                              {"pages", c.read.pages},
                              {"bytes", c.read.bytes},
                              {"amplification", useful > 0 ? moved / useful : 0.0}};
  if (c.written > 0) {
    j["rows_packed"] = c.packed;
    j["packing_bytes_read"] = c.gathered.bytes;
    j["packing_bytes_written"] = c.written;
  }
  if (waited >= 0) j["wait_seconds"] = waited;
  return j.dump();
}

}  // namespace nacre
