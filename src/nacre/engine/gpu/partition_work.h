// This header declares the steps of GpuPartitioner. Only its sources and its tests use this header.
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "nacre/engine/gpu/context.h"
#include "nacre/gtask/pattern.h"
#include "nacre/kernel/cuda/partition.h"

namespace nacre {

// Owns an array in device memory.
template <class T>
class PartitionArray {
 public:
  PartitionArray() = default;
  PartitionArray(std::shared_ptr<Device> device, int64_t count)
      : memory_(device->allocate(std::max<int64_t>(16, count * static_cast<int64_t>(sizeof(T)))),
                [device](void* memory) { device->release(memory); }) {}
  T* data() const { return static_cast<T*>(memory_.get()); }

 private:
  std::shared_ptr<void> memory_;
};

// Holds the edges in some order, in device memory, and how many values their fields can have.
struct PartitionColumns {
  int64_t count = 0;
  PartitionArray<uint32_t> src, dst, src_degree, dst_degree;
  PartitionArray<uint16_t> type;  // empty in a graph without types
  int64_t num_src = 0, num_dst = 0, num_types = 1;
  int64_t most_src = 0, most_dst = 0;  // the largest src_degree and dst_degree
};
cuda::EdgeField field_of(const PartitionColumns& columns, Location location, Attribute attribute, int64_t block);

class PartitionWork {
 public:
  explicit PartitionWork(GpuCompiler& compiler) : compiler_(compiler), device_(compiler.device()) {}

  template <class T>
  PartitionArray<T> array(int64_t count) {
    return {device_, count};
  }
  template <class T>
  PartitionArray<T> zeros(int64_t count) {
    PartitionArray<T> a = array<T>(count);
    device_->fill(a.data(), 0, count * static_cast<int64_t>(sizeof(T)));
    return a;
  }
  template <class T>
  PartitionArray<T> upload(const T* host, int64_t count) {
    PartitionArray<T> a = array<T>(count);
    send(a.data(), host, count * static_cast<int64_t>(sizeof(T)));
    return a;
  }
  template <class T>
  Array<T> read(const PartitionArray<T>& a, int64_t count) {
    Buffer<T> host(count);
    fetch(host.data(), a.data(), count * static_cast<int64_t>(sizeof(T)));
    return std::move(host).freeze();
  }
  // Returns a[at].
  template <class T>
  T value_at(const PartitionArray<T>& a, int64_t at) {
    T value{};
    device_->download(&value, a.data() + at, sizeof value);
    return value;
  }
  // Launches one thread for each of `units` units.
  void launch(const cuda::Source& source, int64_t units, cuda::LaunchParams params);

  PartitionColumns place(const Graph& graph);
  PartitionColumns take(const PartitionColumns& from, const PartitionArray<uint32_t>& order);

  struct Sorted {
    PartitionArray<uint32_t> values;
    PartitionArray<uint64_t> keys;  // keys of 64 bits if `long_keys`, otherwise of 32
    bool long_keys = false;
  };
  // Returns the positions of the edges in `order` (0, 1, 2 … if it is null), sorted by the edges'
  // fields. All fields of an edge must fit into one word.
  Sorted sort_by(const PartitionColumns& columns, std::span<const cuda::EdgeField> fields, const uint32_t* order);
  // Holds, for each position, the nearest positions before and after it whose edges have the same
  // values of the fields. `after` is empty unless link() is asked for it.
  struct Links {
    PartitionArray<uint32_t> before, after;
  };
  Links link(const PartitionColumns& columns, std::span<const cuda::EdgeField> fields, bool after);
  // Returns count + 1 elements: element i is the sum of the first i of `ones`, which are 0 or 1.
  PartitionArray<int64_t> sums(const PartitionArray<uint32_t>& ones, int64_t count);

  void bound_by_runs(const PartitionColumns& columns, std::span<const cuda::EdgeField> fields, int64_t limit,
                     const PartitionArray<uint32_t>& next);
  void bound_by_values(const PartitionColumns& columns, const cuda::EdgeField& field, int64_t limit,
                       const PartitionArray<uint32_t>& next);
  // Returns 0, next[0], next[next[0]] … up to count.
  Array<int64_t> follow(PartitionArray<uint32_t> next, int64_t count);

 private:
  void send(void* to, const void* host, int64_t bytes);
  void fetch(void* host, const void* from, int64_t bytes);
  char* stage();

  GpuCompiler& compiler_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<void> stage_;
};

// Does what find_patterns() of gtask/pattern.h does, on the device. `columns` are the edges of the
// gTasks.
PatternReport patterns_on(PartitionWork& work, const PartitionColumns& columns, const GTasks& tasks);

}  // namespace nacre
