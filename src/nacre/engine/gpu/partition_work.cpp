#include "nacre/engine/gpu/partition_work.h"

#include <bit>
#include <cstring>

#include "nacre/base/parallel.h"

namespace nacre {
namespace {

// Large arrays are copied through page-locked memory, because the link is several times as fast
// with it, and all threads can fill it and touch the pages of new memory.
constexpr int64_t kStage = int64_t{64} << 20;
constexpr int64_t kWorthStaging = int64_t{16} << 20;

void copy_by_threads(char* to, const char* from, int64_t bytes) {
  parallel_for(bytes, 1 << 20,
               [&](int64_t b, int64_t e) { std::memcpy(to + b, from + b, static_cast<size_t>(e - b)); });
}

int bits_of(int64_t largest) { return std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(largest)))); }

int bits_of(std::span<const cuda::EdgeField> fields) {
  int bits = 0;
  for (const cuda::EdgeField& field : fields) bits += field.bits;
  return bits;
}

cuda::EdgeColumnsParams params_of(const PartitionColumns& columns) {
  return {.src = columns.src.data(),
          .dst = columns.dst.data(),
          .type = columns.type.data(),
          .src_degree = columns.src_degree.data(),
          .dst_degree = columns.dst_degree.data()};
}

}  // namespace

cuda::EdgeField field_of(const PartitionColumns& columns, Location location, Attribute attribute, int64_t block) {
  using Field = cuda::EdgeField;
  const bool src = location == Location::src;
  if (attribute == Attribute::type) return {Field::type, 1, bits_of(columns.num_types - 1)};
  if (attribute == Attribute::degree) {
    return {src ? Field::src_degree : Field::dst_degree, 1, bits_of(src ? columns.most_src : columns.most_dst)};
  }
  const int64_t last = std::max<int64_t>(0, (src ? columns.num_src : columns.num_dst) - 1);
  return {src ? Field::src_id : Field::dst_id, block, bits_of(last / block)};
}

char* PartitionWork::stage() {
  if (!stage_) {
    stage_ = std::shared_ptr<void>(device_->allocate_pinned(kStage),
                                   [device = device_](void* memory) { device->release_pinned(memory); });
  }
  return static_cast<char*>(stage_.get());
}

void PartitionWork::send(void* to, const void* host, int64_t bytes) {
  if (bytes < kWorthStaging) return device_->upload(to, host, bytes);
  for (int64_t first = 0; first < bytes; first += kStage) {
    const int64_t some = std::min(kStage, bytes - first);
    copy_by_threads(stage(), static_cast<const char*>(host) + first, some);
    device_->upload(static_cast<char*>(to) + first, stage(), some);
    device_->synchronize();
  }
}

void PartitionWork::fetch(void* host, const void* from, int64_t bytes) {
  if (bytes < kWorthStaging) return device_->download(host, from, bytes);
  for (int64_t first = 0; first < bytes; first += kStage) {
    const int64_t some = std::min(kStage, bytes - first);
    device_->download(stage(), static_cast<const char*>(from) + first, some);
    copy_by_threads(static_cast<char*>(host) + first, stage(), some);
  }
}

void PartitionWork::launch(const cuda::Source& source, int64_t units, cuda::LaunchParams params) {
  cuda::check_params(source, params);
  if (units == 0) return;
  const int64_t blocks = (units + source.threads - 1) / source.threads;
  device_->launch(compiler_.function(source), {blocks, source.threads, source.shared_bytes}, params.pointers());
}

PartitionColumns PartitionWork::place(const Graph& graph) {
  PartitionColumns c;
  c.count = graph.num_edges();
  c.num_src = graph.num_src();
  c.num_dst = graph.num_dst();
  c.num_types = graph.num_edge_types();
  c.src = upload(graph.col_idx().data(), c.count);
  c.dst = upload(graph.edge_dst().data(), c.count);
  if (graph.typed()) c.type = upload(graph.edge_type().data(), c.count);
  const auto degrees = [&](const PartitionArray<uint32_t>& ends, int64_t vertices, int64_t& most) {
    PartitionArray<uint32_t> degree = zeros<uint32_t>(vertices);
    launch(cuda::count_values(), c.count,
           cuda::CountValuesParams{.values = ends.data(), .counts = degree.data(), .count = c.count});
    const Array<uint32_t> host = read(degree, vertices);
    most = host.empty() ? 0 : *std::max_element(host.begin(), host.end());
    return degree;
  };
  c.src_degree = degrees(c.src, c.num_src, c.most_src);
  c.dst_degree = degrees(c.dst, c.num_dst, c.most_dst);
  return c;
}

PartitionColumns PartitionWork::take(const PartitionColumns& from, const PartitionArray<uint32_t>& order) {
  PartitionColumns c = from;
  const bool typed = from.type.data() != nullptr;
  c.src = array<uint32_t>(c.count);
  c.dst = array<uint32_t>(c.count);
  if (typed) c.type = array<uint16_t>(c.count);
  const cuda::TakeColumnsParams params = {.order = order.data(),
                                          .src = from.src.data(),
                                          .dst = from.dst.data(),
                                          .type = from.type.data(),
                                          .to_src = c.src.data(),
                                          .to_dst = c.dst.data(),
                                          .to_type = c.type.data(),
                                          .count = c.count};
  launch(cuda::take_columns(typed), c.count, params);
  return c;
}

PartitionWork::Sorted PartitionWork::sort_by(const PartitionColumns& columns, std::span<const cuda::EdgeField> fields,
                                             const uint32_t* order) {
  const int bits = bits_of(fields);
  Sorted sorted;
  sorted.long_keys = bits > 32;
  sorted.values = array<uint32_t>(columns.count);
  sorted.keys = array<uint64_t>(sorted.long_keys ? columns.count : (columns.count + 1) / 2);
  const cuda::KeyPacking packing = cuda::packing_of(fields);
  cuda::LaunchParams params(params_of(columns));
  params.then(cuda::PackKeysParams{.order = order,
                                   .keys = sorted.keys.data(),
                                   .values = sorted.values.data(),
                                   .count = columns.count,
                                   .shifts = packing.shifts,
                                   .src_block = packing.src_block,
                                   .dst_block = packing.dst_block});
  launch(cuda::pack_keys(fields, sorted.long_keys), columns.count, params);
  if (sorted.long_keys) {
    device_->sort_pairs(sorted.keys.data(), sorted.values.data(), columns.count, bits);
  } else {
    device_->sort_pairs(reinterpret_cast<uint32_t*>(sorted.keys.data()), sorted.values.data(), columns.count, bits);
  }
  return sorted;
}

PartitionWork::Links PartitionWork::link(const PartitionColumns& columns, std::span<const cuda::EdgeField> fields,
                                         bool after) {
  const Sorted sorted = sort_by(columns, fields, nullptr);
  Links links;
  links.before = array<uint32_t>(columns.count);
  if (after) links.after = array<uint32_t>(columns.count);
  const cuda::LinkEqualParams params = {.keys = sorted.keys.data(),
                                        .values = sorted.values.data(),
                                        .before = links.before.data(),
                                        .after = links.after.data(),
                                        .count = columns.count};
  launch(cuda::link_equal(sorted.long_keys), columns.count, params);
  return links;
}

PartitionArray<int64_t> PartitionWork::sums(const PartitionArray<uint32_t>& ones, int64_t count) {
  PartitionArray<int64_t> sums = array<int64_t>(count + 1);
  device_->exclusive_sum(ones.data(), sums.data(), count);
  return sums;
}

void PartitionWork::bound_by_runs(const PartitionColumns& columns, std::span<const cuda::EdgeField> fields,
                                  int64_t limit, const PartitionArray<uint32_t>& next) {
  const int64_t count = columns.count;
  const PartitionArray<uint8_t> flags = array<uint8_t>(count);
  const PartitionArray<uint32_t> ones = array<uint32_t>(count);
  cuda::LaunchParams params(params_of(columns));
  params.then(cuda::StartRunsParams{.flags = flags.data(), .ones = ones.data(), .count = count});
  launch(cuda::start_runs(fields), count, params);
  const PartitionArray<int64_t> before = sums(ones, count);
  const PartitionArray<uint32_t> starts = array<uint32_t>(count);
  const int64_t runs = device_->positions_of(flags.data(), starts.data(), count);
  const cuda::BoundByRunsParams bound = {.next = next.data(),
                                         .runs_before = before.data(),
                                         .starts = starts.data(),
                                         .num_runs = runs,
                                         .limit = limit,
                                         .count = count};
  launch(cuda::bound_by_runs(), count, bound);
}

void PartitionWork::bound_by_values(const PartitionColumns& columns, const cuda::EdgeField& field, int64_t limit,
                                    const PartitionArray<uint32_t>& next) {
  // If the limit is at least the number of values that the field can have, no gTask exceeds it.
  if (field.bits < 63 && limit >= int64_t{1} << field.bits) return;
  const Links links = link(columns, {&field, 1}, true);
  const int64_t windows = (columns.count + cuda::kWindowStarts - 1) / cuda::kWindowStarts;
  const cuda::BoundByValuesParams params = {.next = next.data(),
                                            .before = links.before.data(),
                                            .after = links.after.data(),
                                            .limit = limit,
                                            .count = columns.count};
  launch(cuda::bound_by_values(), windows, params);
}

Array<int64_t> PartitionWork::follow(PartitionArray<uint32_t> next, int64_t count) {
  const PartitionArray<uint8_t> marks = zeros<uint8_t>(count);
  device_->fill(marks.data(), 1, 1);
  PartitionArray<uint32_t> other = array<uint32_t>(count);
  while (true) {
    launch(cuda::mark_next(), count, cuda::MarkNextParams{.marks = marks.data(), .next = next.data(), .count = count});
    uint32_t first = 0;
    device_->download(&first, next.data(), sizeof first);
    if (first >= count) break;  // the last gTask has been reached
    launch(cuda::double_next(), count, cuda::DoubleNextParams{.next = next.data(), .to = other.data(), .count = count});
    std::swap(next, other);
  }
  const int64_t tasks = device_->positions_of(marks.data(), other.data(), count);
  const Array<uint32_t> starts = read(other, tasks);
  Buffer<int64_t> task_ptr(tasks + 1);
  parallel_for(tasks, 1 << 18, [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e; ++t) task_ptr[t] = starts[t];
  });
  task_ptr[tasks] = count;
  return std::move(task_ptr).freeze();
}

}  // namespace nacre
