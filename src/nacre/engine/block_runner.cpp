#include "nacre/engine/block_runner.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/trace.h"

namespace nacre {

BlockRunner::BlockRunner(Plan plan, std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {
  computes_once_ = std::any_of(plan.kernels.begin(), plan.kernels.end(), [](const Kernel& k) { return k.once; });
  plan_ = std::make_shared<const Plan>(std::move(plan));
}

void* BlockRunner::Memory::at_least(int64_t wanted, Backend& backend) {
  if (data && wanted <= bytes) return data.get();
  data.reset();
  bytes = bytes == 0 ? wanted : wanted + wanted / 4;
  data = backend.allocate(bytes);
  return data.get();
}

void BlockRunner::share(Blocks blocks, const std::vector<LeafValue>& leaves) {
  shared_.executor = std::make_unique<Executor>(plan_, std::move(blocks), backend_);
  bind_ready(shared_, leaves, {}, {});
  shared_.executor->prepare();
  shared_.executor->run_once({});
}

// Throws if the plan computes something once and share() was not called: the constants of the first
// batch would then be used for all batches.
void BlockRunner::require_shared() const {
  NACRE_CHECK(!computes_once_ || shared_.executor, "the plan computes something once, and share() was not called");
}

std::unique_ptr<Executor> BlockRunner::prepare(Blocks blocks) const {
  return std::make_unique<Executor>(plan_, std::move(blocks), backend_->scoped());
}

void* BlockRunner::bind_output(const std::string& output, void* data) {
  const auto value = [&](const std::string& name) { return plan_->alias[plan_->dfg.output(name)]; };
  for (const auto& [name, place] : outputs_) {
    if (name != output && value(name) == value(output)) return place;
  }
  return outputs_[output] = data;
}

void* BlockRunner::place(const LeafValue& leaf) {
  if (backend_->on_host()) return const_cast<void*>(leaf.values.raw());
  void* memory = leaves_[leaf.name].at_least(leaf.values.bytes(), *backend_);
  backend_->write(memory, leaf.values.raw(), leaf.values.bytes());
  return memory;
}

BlockRunner::Ready BlockRunner::make_ready(Blocks blocks, const std::vector<LeafValue>& leaves,
                                           const std::map<std::string, int64_t>& room, const Places& places) {
  require_shared();
  Ready ready;
  {
    const TraceSpan span("batch", "plan memory");
    ready.executor = prepare(std::move(blocks));
  }
  bind_ready(ready, leaves, room, places);
  return ready;
}

// Binds the leaves of bind() and the outputs of bind_output() where they lie for every batch or,
// with `places`, where that function says.
void BlockRunner::bind_kept(Executor& batch, const Places& places) const {
  const auto at = [&](void* place) { return places ? places(place) : place; };
  for (const auto& [name, data] : bound_) batch.bind(name, at(data));
  for (const auto& [name, data] : outputs_) batch.bind_output(name, at(data));
}

void BlockRunner::bind_ready(Ready& ready, const std::vector<LeafValue>& leaves,
                             const std::map<std::string, int64_t>& room, const Places& places) {
  Executor& batch = *ready.executor;
  Backend& backend = batch.backend();
  {
    const TraceSpan span("batch", "send leaves");
    for (const auto& [name, bytes] : room) ready.leaves[name] = backend.allocate(bytes);
    for (const LeafValue& leaf : leaves)
      ready.leaves[leaf.name] = backend.place(leaf.values.raw(), leaf.values.bytes());
  }
  bind_kept(batch, places);
  for (const auto& [name, memory] : ready.leaves) batch.bind(name, memory.get());
  const TraceSpan span("batch", "bind kernels");
  batch.allocate(arena(batch.arena_bytes()), constants_);
  backend.flush();
}

void BlockRunner::run(Executor& batch, const std::vector<LeafValue>& leaves,
                      const std::map<std::string, void*>& in_place, const StepContext& step) {
  require_shared();
  bind_kept(batch, {});
  for (const auto& [name, data] : in_place) batch.bind(name, data);
  for (const LeafValue& leaf : leaves) batch.bind(leaf.name, place(leaf));
  arena_.at_least(batch.arena_bytes(), *backend_);
  batch.allocate(arena_.data, constants_);
  batch.run_once(step);
}

void BlockRunner::run_on(Track& track, const Places& places, Executor& batch, const std::vector<LeafValue>& leaves,
                         const std::map<std::string, void*>& in_place, const StepContext& step) const {
  NACRE_CHECK(backend_->on_host() && !computes_once_, "batches on tracks share nothing that is computed once");
  bind_kept(batch, places);
  for (const auto& [name, data] : in_place) batch.bind(name, data);
  for (const LeafValue& leaf : leaves) batch.bind(leaf.name, const_cast<void*>(leaf.values.raw()));
  track.arena_.at_least(batch.arena_bytes(), *backend_);
  ConstantPool none;
  batch.allocate(track.arena_.data, none);
  batch.run_once(step);
}

std::shared_ptr<void> BlockRunner::arena(int64_t bytes) {
  // If this replaces the arena by a larger one, batches that are already bound keep the old one
  // alive.
  const std::lock_guard lock(mutex_);
  arena_.at_least(bytes, *backend_);
  return arena_.data;
}

void BlockRunner::release() {
  const std::lock_guard lock(mutex_);
  arena_ = {};
  leaves_.clear();
}

int64_t BlockRunner::bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t sum = arena_.bytes;
  for (const auto& [name, memory] : leaves_) sum += memory.bytes;
  return sum;
}

}  // namespace nacre
