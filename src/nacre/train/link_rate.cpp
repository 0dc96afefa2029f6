#include "nacre/train/link_rate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "nacre/base/log.h"
#include "nacre/base/trace.h"

namespace nacre {
namespace {

constexpr int kTimes = 10;
constexpr int64_t kMostSent = int64_t{64} << 20;  // the most bytes of rows that are exchanged
constexpr int64_t kWidest = 64;                   // the most elements of a row that is exchanged
constexpr int64_t kFewestBytes = int64_t{1} << 18;
constexpr double kUsualGpuRate = 50e9, kUsualHostRate = 5e9;

}  // namespace

double measure_link(RankLinks& links, const LocalGraph& local, Backend& backend) {
  const TraceSpan span("prepare", "measure link");
  // All ranks must send rows of the same size, so the size depends on the whole graph and not on a
  // rank's part.
  const int64_t most_rows = std::max<int64_t>(1, links.total_rows(Space::vertex(0)));
  const int64_t width = std::clamp<int64_t>(kMostSent / (most_rows * 4), 1, kWidest);
  const int64_t rows = local.num_own() + local.num_halo();
  const std::shared_ptr<void> memory = backend.allocate(std::max<int64_t>(1, rows * width * 4));
  auto* values = static_cast<float*>(memory.get());
  double fastest = INFINITY;
  for (int i = 0; i < kTimes; ++i) {
    backend.await(backend.mark());
    const double start = now_seconds();
    links.start({Op::exchange, values, values, local.num_own(), width})->finish();
    backend.await(backend.mark());
    fastest = std::min(fastest, now_seconds() - start);
  }
  const auto bytes = static_cast<double>(local.num_halo() * width * 4);
  if (bytes < kFewestBytes || fastest <= 0) return 0;
  return std::exp2(std::round(std::log2(bytes / fastest)));
}

double usual_link_rate(bool gpu) { return gpu ? kUsualGpuRate : kUsualHostRate; }

}  // namespace nacre
