#include "nacre/train/placed_batches.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "nacre/base/log.h"
#include "nacre/base/trace.h"

namespace nacre {

// The learner of the host never updates its weights, so an optimiser without state is enough.
HostShare::HostShare(Parameters parameters, Plan plan, std::shared_ptr<Backend> backend, Learner& main)
    : backend_(std::move(backend)),
      main_(main),
      learner_(std::move(parameters), backend_),
      runner_(std::move(plan), backend_) {
  OptimizerOptions none;
  none.name = "sgd";
  none.momentum = 0;
  learner_.optimize_with(none, static_cast<int>(main_.tracks()));
}

int64_t HostShare::bytes() const {
  return learner_.parameter_bytes() * (1 + main_.tracks()) + learner_.parameter_bytes() * (1 + copies());
}

GradientMemory HostShare::gradients() const {
  return {static_cast<char*>(gradients_.get()), learner_.parameter_bytes()};
}

void HostShare::start() {
  const int64_t bytes = learner_.parameter_bytes() * (1 + copies());
  gradients_ = backend_->allocate(bytes);
  backend_->clear(gradients_.get(), bytes);
  auto* const first = static_cast<float*>(gradients_.get());
  std::vector<const float*> places;
  for (const Parameter& p : learner_.list()) {
    runner_.bind(p.name, learner_.place(p));
    float* place = nullptr;
    if (runner_.plan().dfg.find_output("grad:" + p.name) >= 0) {
      place = static_cast<float*>(runner_.bind_output("grad:" + p.name, first + p.offset));
      if (place != first + p.offset) shared_.push_back({place - first, p.offset, p.size});
    }
    places.push_back(place);
  }
  learner_.start(places);
}

float* HostShare::weights_of(Learner& learner, int64_t number) const {
  if (learner.list().empty()) return nullptr;
  const Parameter& first = learner.list().front();
  return static_cast<float*>(learner.on_track(learner.place(first), number)) - first.offset;
}

void HostShare::fetch_weights(Backend& device, int64_t number) {
  const TraceSpan span("train", "fetch weights");
  if (learner_.parameter_bytes() > 0)
    device.read(weights_of(learner_, number), weights_of(main_, number), learner_.parameter_bytes());
}

void HostShare::send_results(Backend& device, int64_t number, void* gradient) {
  const TraceSpan span("train", "send gradients");
  const int64_t bytes = learner_.parameter_bytes();
  if (bytes == 0) return;
  char* own = static_cast<char*>(gradients_.get());
  if (main_.tracks() > 0) own = static_cast<char*>(gradients().on_track(own, number % main_.tracks()));
  auto* const values = reinterpret_cast<float*>(own);
  for (const Shared& s : shared_) std::copy_n(values + s.from, s.size, values + s.to);
  device.write(gradient, own, bytes);
  int64_t trained = 0;
  for (const Parameter& p : learner_.list()) trained += p.trained ? p.size : 0;
  device.write(weights_of(main_, number) + trained, weights_of(learner_, number) + trained, bytes - trained * 4);
}

struct PlacedBatches::HostBatch : PreparedBatch {
  HostBatch(PlacedBatches& a, std::shared_ptr<PreparedBatch> b, Tensor x)
      : all(a), inner(std::move(b)), rows(std::move(x)) {}
  void run(const Batch& batch, int64_t step, Finish finish) override { all.run(*this, batch, step, finish); }

  PlacedBatches& all;
  std::shared_ptr<PreparedBatch> inner;
  Tensor rows;  // features of the batch's vertices
};

PlacedBatches::PlacedBatches(const BatchParts& parts, std::unique_ptr<BatchComputer> own, HostShare& share,
                             std::shared_ptr<Backend> device, BatchPlaces places)
    : parts_(parts), own_(std::move(own)), share_(share), device_(std::move(device)), places_(std::move(places)) {
  host_ = make_host_batches({.run = parts.run,
                             .inputs = parts.inputs,
                             .dfg = parts.dfg,
                             .runner = share.runner(),
                             .learner = share.learner(),
                             .gradients = share.gradients(),
                             .gradient_tracks = parts.learner.tracks() > 0,
                             .weights = parts.weights});
  losses_ = device_->allocate(std::max<int64_t>(1, parts_.learner.tracks()) * 4);
}

std::shared_ptr<PreparedBatch> PlacedBatches::prepare(const Sample& sample, const SampleKey& key) {
  if (!on_host(static_cast<int64_t>(key.batch))) return own_->prepare(sample, key);
  return std::make_shared<HostBatch>(*this, host_->prepare(sample, key),
                                     gather_rows(parts_.run.dataset.features, sample.vertices.span()));
}

RowReads PlacedBatches::rows_read() {
  RowReads reads = own_->rows_read();
  reads += host_->rows_read();
  return reads;
}

char* PlacedBatches::loss_place(int64_t number) const {
  const int64_t tracks = parts_.learner.tracks();
  return static_cast<char*>(losses_.get()) + (tracks > 0 ? number % tracks * 4 : 0);
}

const void* PlacedBatches::keep_loss(int64_t number, const void* loss) {
  device_->copy(loss_place(number), loss, 4);
  return loss_place(number);
}

const void* PlacedBatches::send_results(int64_t number, const void* loss) {
  share_.send_results(*device_, number, parts_.gradients.begin);
  device_->write(loss_place(number), loss, 4);
  return loss_place(number);
}

void PlacedBatches::run(const HostBatch& own, const Batch& batch, int64_t step, PreparedBatch::Finish finish) {
  const bool alone = parts_.learner.tracks() == 0;
  if (alone) fetch_weights(batch.index);
  const double start = now_seconds();
  const Batch here{batch.index, batch.sample, const_cast<void*>(own.rows.raw()), nullptr};
  own.inner->run(here, step, [&](const void* loss) {
    host_seconds_ += now_seconds() - start;
    ++host_batches_;
    finish(alone ? send_results(batch.index, loss) : loss);
  });
}

}  // namespace nacre
