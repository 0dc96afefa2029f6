// Compares optimiser steps and predictions on a GPU with those on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/gpu.h"
#include "nacre/device/null_device.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/engine/gpu/optimizer.h"

namespace nacre::test {
namespace {

class GpuOptimizerTest : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (plugin_ == nullptr || IsSkipped()) return;
    context_ = std::make_shared<GpuContext>(GpuCompiler::open(*plugin_, plugin_->open(0, 0)),
                                            std::make_shared<GraphViews>(), GpuOptions{});
  }

  template <class T>
  std::shared_ptr<void> upload(const std::vector<T>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
    auto memory = context_->allocate(bytes);
    context_->device().upload(memory.get(), values.data(), bytes);
    return memory;
  }
  template <class T>
  std::vector<T> download(const void* from, size_t count) {
    std::vector<T> values(count);
    context_->device().download(values.data(), from, static_cast<int64_t>(count * sizeof(T)));
    return values;
  }

  std::shared_ptr<GpuContext> context_;
};

struct Moments {
  double w, m, v;
};

// Updates one weight and its moments in double precision, by the formulas of the optimisers.
void step(const OptimizerOptions& o, double lr, double g, int64_t t, Moments& x) {
  const bool adamw = o.name == "adamw";
  const double grad = g + (adamw ? 0 : o.weight_decay) * x.w;
  if (o.name == "sgd") {
    x.m = t == 1 || o.momentum == 0 ? grad : o.momentum * x.m + grad;
    x.w -= lr * x.m;
    return;
  }
  x.m = o.beta1 * x.m + (1 - o.beta1) * grad;
  x.v = o.beta2 * x.v + (1 - o.beta2) * grad * grad;
  const double time = static_cast<double>(t);
  const double m = x.m / (1 - std::pow(o.beta1, time)), v = x.v / (1 - std::pow(o.beta2, time));
  x.w = x.w * (adamw ? 1 - lr * o.weight_decay : 1) - lr * m / (std::sqrt(v) + o.epsilon);
}

TEST_F(GpuOptimizerTest, FollowsTheFormulas) {
  const std::vector<OptimizerOptions> all = {
      {.name = "adam", .weight_decay = 0.1},          {.name = "adamw", .weight_decay = 0.1},
      {.name = "sgd", .weight_decay = 0.1},           {.name = "sgd", .momentum = 0.9},
      {.name = "adam", .clip_norm = 0.5, .ema = 0.9}, {.name = "sgd", .momentum = 0.5, .clip_norm = 1e6, .ema = 0.5}};
  // The third parameter has no gradient, and the second is longer than the piece of a block.
  const std::vector<int64_t> sizes = {3, 5000, 7, 1024};
  int64_t total = 0;
  for (const int64_t s : sizes) total += s;
  for (const OptimizerOptions& options : all) {
    SCOPED_TRACE(options.name);
    std::vector<float> w(static_cast<size_t>(total)), g(w.size());
    for (size_t i = 0; i < w.size(); ++i) {
      w[i] = std::sin(static_cast<float>(i));
      g[i] = std::cos(0.37F * static_cast<float>(i)) * 0.1F;
    }
    const auto values = upload(w), gradients = upload(g);
    std::vector<TrainedParameter> parameters;
    int64_t offset = 0;
    for (size_t p = 0; p < sizes.size(); ++p) {
      parameters.push_back({offset, sizes[p], p == 2 ? nullptr : static_cast<const float*>(gradients.get()) + offset});
      offset += sizes[p];
    }
    const std::vector<float> zeros(w.size());
    const auto first = upload(zeros), second = upload(zeros), average_memory = upload(w);
    const auto if_used = [](bool used, const std::shared_ptr<void>& memory) {
      return used ? static_cast<float*>(memory.get()) : nullptr;
    };
    const bool sgd = options.name == "sgd", averages = options.ema > 0;
    GpuOptimizer optimizer(context_, options, parameters,
                           {static_cast<float*>(values.get()), if_used(!sgd || options.momentum > 0, first),
                            if_used(!sgd, second), if_used(averages, average_memory), total});
    std::vector<Moments> want;
    want.reserve(w.size());
    for (const float x : w) want.push_back({x, 0, 0});
    const auto still = [](size_t i) { return i >= 5003 && i < 5010; };
    double norm = 0;
    for (size_t i = 0; i < g.size(); ++i) norm += still(i) ? 0 : static_cast<double>(g[i]) * g[i];
    norm = std::sqrt(norm);
    const double clip = options.clip_norm > 0 ? std::min(1.0, options.clip_norm / (norm + 1e-6)) : 1;
    std::vector<double> average(w.begin(), w.end());
    for (int64_t t = 1; t <= 3; ++t) {
      const double lr = 0.1 / static_cast<double>(t);
      optimizer.step(lr);
      const double kept = average_kept(options.ema, t);
      for (size_t i = 0; i < want.size(); ++i) {
        if (still(i)) continue;
        step(options, lr, clip * g[i], t, want[i]);
        average[i] = kept * average[i] + (1 - kept) * want[i].w;
      }
    }
    EXPECT_EQ(optimizer.steps(), 3);
    const std::vector<float> got = download<float>(values.get(), w.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i].w, 2e-5) << i;
    if (!averages) continue;
    optimizer.exchange_average();
    const std::vector<float> exchanged = download<float>(values.get(), w.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(exchanged[i], average[i], 2e-5) << i;
    EXPECT_EQ(download<float>(average_memory.get(), w.size()), got);
  }
}

// Counts the calls that may wait for queued work, and the uploads of few bytes, which do not wait.
class WaitingDevice : public NullDevice {
 public:
  using NullDevice::NullDevice;
  void upload(void*, const void*, int64_t) override { ++waits; }
  void download(void* to, const void* from, int64_t bytes) override {
    ++waits;
    NullDevice::download(to, from, bytes);
  }
  void await(const DeviceEvent&) override { ++waits; }
  void synchronize() override { ++waits; }
  void upload_few(void* to, const void* from, int64_t bytes) override {
    const auto* first = static_cast<const char*>(from);
    written.emplace_back(to, std::vector<char>(first, first + bytes));
  }

  int waits = 0;
  std::vector<std::pair<void*, std::vector<char>>> written;
};

TEST(GpuStep, ItsNumbersMakeNobodyWait) {
  const auto device = std::make_shared<WaitingDevice>(typical_gpu());
  const auto loader = std::make_shared<GpuCompiler>(device, [](const auto&) { return std::string(); });
  const auto context = std::make_shared<GpuContext>(loader, std::make_shared<GraphViews>(), GpuOptions{});
  const auto memory = context->allocate(400);
  auto* values = static_cast<float*>(memory.get());
  GpuOptimizer optimizer(context, {}, {{0, 10, values + 10}}, {values, values + 20, values + 30, nullptr, 10});
  device->waits = 0;
  for (uint64_t step = 0; step < 3; ++step) {
    device->written.clear();
    const std::shared_ptr<Backend> batch = make_gpu_backend(context)->scoped();
    batch->begin_step({7, step});
    batch->begin_step({7, step});  // the step is known already
    ASSERT_EQ(device->written.size(), 1);
    EXPECT_EQ(device->written[0].first, context->step());
    uint64_t words[2];
    ASSERT_EQ(device->written[0].second.size(), sizeof words);
    std::memcpy(words, device->written[0].second.data(), sizeof words);
    EXPECT_EQ(words[0], 7);
    EXPECT_EQ(words[1], step);
    optimizer.step(0.01);
    EXPECT_EQ(device->written.size(), 2);
  }
  EXPECT_EQ(device->waits, 0);
}

}  // namespace
}  // namespace nacre::test
