#include "nacre/engine/gpu/feature_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/engine/gpu/staging.h"
#include "nacre/kernel/cuda/keep_rows.h"
#include "nacre/kernel/cuda/rows.h"

namespace nacre {
namespace {

constexpr int64_t kPieceBytes = int64_t{32} << 20;  // bytes that are laid out and sent at a time
constexpr int64_t kChunkBytes = int64_t{1} << 18;

// Names rows of a table: those of the listed vertices, in the order of the list, or the rows of all
// vertices if the list is empty.
struct RowList {
  const Tensor& features;
  std::span<const NodeId> vertices;

  int64_t size() const { return vertices.empty() ? features.rows() : static_cast<int64_t>(vertices.size()); }
  int64_t vertex(int64_t i) const { return vertices.empty() ? i : vertices[static_cast<size_t>(i)]; }
};

// Writes rows [begin, end) of the list to `to`, as far apart as the format says. Bytes between rows
// are zeros.
void lay_out(const RowList& list, const cuda::RowFormat& format, int64_t begin, int64_t end, char* to) {
  NACRE_CHECK(list.features.dtype() == format.type && list.features.row_size() == format.width,
              "features are not stored in the format of their store");
  const int64_t stride = format.stride(), bytes = format.bytes();
  const auto* from = static_cast<const char*>(list.features.raw());
  parallel_for(end - begin, std::max<int64_t>(1, kChunkBytes / stride), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      char* row = to + i * stride;
      std::memcpy(row, from + list.vertex(begin + i) * bytes, static_cast<size_t>(bytes));
      std::memset(row + bytes, 0, static_cast<size_t>(stride - bytes));
    }
  });
}

std::shared_ptr<void> rows_on(const std::shared_ptr<Device>& device, const RowList& list,
                              const cuda::RowFormat& format) {
  const TraceSpan span("prepare", "features to the device");
  const int64_t stride = format.stride(), rows = list.size();
  std::shared_ptr<void> memory = allocate_on(device, rows * stride);
  const int64_t piece = std::max<int64_t>(1, kPieceBytes / stride);
  std::vector<char> host(static_cast<size_t>(std::min(piece, rows) * stride));
  for (int64_t begin = 0; begin < rows; begin += piece) {
    const int64_t end = std::min(rows, begin + piece);
    lay_out(list, format, begin, end, host.data());
    device->upload(static_cast<char*>(memory.get()) + begin * stride, host.data(), (end - begin) * stride);
  }
  return memory;
}

template <class T>
std::shared_ptr<void> copy_on(const std::shared_ptr<Device>& device, const std::vector<T>& values) {
  const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
  std::shared_ptr<void> memory = allocate_on(device, bytes);
  if (bytes > 0) device->upload(memory.get(), values.data(), bytes);
  return memory;
}

uint64_t address_of(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

}  // namespace

HostRows::HostRows(const std::shared_ptr<Device>& device, const cuda::RowFormat& format, const Tensor& features,
                   std::span<const NodeId> vertices) {
  const TraceSpan span("prepare", "page-locked features");
  const RowList list{features, vertices};
  bytes_ = list.size() * format.stride();
  memory_ = {device->allocate_pinned(std::max<int64_t>(bytes_, 16)), [device](void* p) { device->release_pinned(p); }};
  lay_out(list, format, 0, list.size(), static_cast<char*>(memory_.get()));
}

FeatureStore::FeatureStore(std::shared_ptr<Device> device, const cuda::RowFormat& format, const Tensor& features,
                           bool on_device)
    : device_(std::move(device)), format_(format), only_tier_(on_device ? RowTier::local : RowTier::host) {
  (on_device ? rows_on_device_ : rows_on_host_) = features.rows();
  if (on_device) own_ = rows_on(device_, {features, {}}, format_);
}

FeatureStore::FeatureStore(std::shared_ptr<Device> device, const cuda::RowFormat& format, const Tensor& features,
                           const Tables& tables)
    : device_(std::move(device)), format_(format), reader_(tables.reader) {
  rows_on_device_ = static_cast<int64_t>(tables.own_rows.size());
  if (rows_on_device_ > 0) own_ = rows_on(device_, {features, tables.own_rows}, format_);
  place_tables(tables);
}

FeatureStore::FeatureStore(std::shared_ptr<Device> device, const cuda::RowFormat& format, const Tensor& features,
                           std::span<const NodeId> contents)
    : device_(std::move(device)), format_(format), caches_(true) {
  NACRE_CHECK(!contents.empty(), "a store without seats caches nothing");
  NACRE_CHECK(features.rows() < int64_t{cuda::kNotCached}, "there are too many rows for their places");
  rows_on_device_ = static_cast<int64_t>(contents.size());
  rows_on_host_ = features.rows();
  own_ = rows_on(device_, {features, contents}, format_);
  addresses_ = {address_of(own_.get())};
  buffers_ = copy_on(device_, addresses_);
}

void FeatureStore::place_tables(const Tables& tables) {
  const size_t count = tables.dev_num.size();
  NACRE_CHECK(tables.buf_pos.size() == count, "the two tables of a placement differ in length");
  std::vector<uint8_t> holder(count);
  auto tiers = std::make_shared<std::vector<uint8_t>>(count);
  int most = reader_;
  for (size_t v = 0; v < count; ++v) {
    const int held = tables.dev_num[v];  // NOLINT(bugprone-signed-char-misuse): a number, not a character
    NACRE_CHECK(held >= -1, "the row of a node lies on disk, which a device cannot read");
    holder[v] = static_cast<uint8_t>(held + 1);
    most = std::max(most, held);
    (*tiers)[v] = static_cast<uint8_t>(held < 0 ? RowTier::host : held == reader_ ? RowTier::local : RowTier::peer);
    rows_on_host_ += held < 0 ? 1 : 0;
  }
  tiers_ = std::move(tiers);
  addresses_.assign(static_cast<size_t>(most) + 1, 0);
  holds_for_us_.assign(addresses_.size(), 0);
  for (const uint8_t h : holder) {
    if (h > 0) holds_for_us_[h - 1U] = 1;
  }
  addresses_[static_cast<size_t>(reader_)] = address_of(own_.get());
  holder_ = copy_on(device_, holder);
  position_ = allocate_on(device_, static_cast<int64_t>(count) * 4);
  if (count > 0) device_->upload(position_.get(), tables.buf_pos.data(), static_cast<int64_t>(count) * 4);
  buffers_ = copy_on(device_, addresses_);
  table_bytes_ = static_cast<int64_t>(count) * 5;
}

void FeatureStore::read_peers(const std::vector<const FeatureStore*>& peers) {
  for (size_t d = 0; d < addresses_.size(); ++d) {
    if (static_cast<int>(d) == reader_ || holds_for_us_[d] == 0) continue;
    NACRE_CHECK(d < peers.size() && peers[d] != nullptr, fmt::format("the store of device {} is missing", d));
    if (!device_->reaches(*peers[d]->device_))
      throw UserError("--placement", fmt::format("device {} cannot read the memory of device {}", reader_, d),
                      "choose a placement in which devices do not read each other's rows");
    addresses_[d] = address_of(peers[d]->own_.get());
  }
  buffers_ = copy_on(device_, addresses_);
}

cuda::RowPlaces FeatureStore::places() const {
  if (caches_) return gathers() ? cuda::RowPlaces::cached_gathered : cuda::RowPlaces::cached;
  if (holder_) return gathers() ? cuda::RowPlaces::gathered : cuda::RowPlaces::by_tables;
  return gathers() ? cuda::RowPlaces::in_order : cuda::RowPlaces::by_vertex;
}

const GpuFunction& FeatureStore::function(GpuCompiler& compiler) const {
  const std::string key =
      fmt::format("load_rows {} {} {}", dtype_name(format_.type), format_.width, static_cast<int>(places()));
  return compiler.function(key, [&] { return cuda::RowSource{cuda::load_rows(format_, places()), 1}; });
}

const GpuFunction& FeatureStore::keep_function(GpuCompiler& compiler) const {
  const std::string key = fmt::format("keep_rows {} {}", dtype_name(format_.type), format_.width);
  return compiler.function(key, [&] { return cuda::RowSource{cuda::keep_rows(format_), 1}; });
}

void FeatureStore::ask_for_kernels(GpuCompiler& compiler) const {
  function(compiler);
  if (caches_) keep_function(compiler);
}

void FeatureStore::load(GpuCompiler& compiler, const Rows& rows) const {
  if (rows.count == 0) return;
  const void* base = gathers() ? rows.gathered : by_link() ? host_->data() : own_.get();
  cuda::LaunchParams params = cuda::LoadRowsParams{.base = address_of(base),
                                                   .buffers = buffers_.get(),
                                                   .holder = holder_.get(),
                                                   .position = position_.get(),
                                                   .ids = rows.ids,
                                                   .gathered = rows.positions,
                                                   .out = rows.out,
                                                   .rows = rows.count};
  const GpuFunction& kernel = function(compiler);
  cuda::check_params(kernel.code->source(), params);
  Device& device = *compiler.device();
  const int64_t blocks = cuda::load_blocks(format_, rows.count, device.info().multiprocessors);
  device.launch(kernel.code->get(), {blocks, kernel.threads, kernel.shared_bytes}, params.pointers());
}

void FeatureStore::keep(GpuCompiler& compiler, const Keeps& keeps) const {
  if (keeps.count == 0) return;
  cuda::LaunchParams params = cuda::KeepRowsParams{
      .rows = keeps.rows, .from = keeps.from, .to = keeps.to, .seats = addresses_.front(), .count = keeps.count};
  const GpuFunction& kernel = keep_function(compiler);
  cuda::check_params(kernel.code->source(), params);
  Device& device = *compiler.device();
  const int64_t blocks = cuda::keep_blocks(format_, keeps.count, device.info().multiprocessors);
  device.launch(kernel.code->get(), {blocks, kernel.threads, kernel.shared_bytes}, params.pointers());
}

}  // namespace nacre
