#include "nacre/train/scorer.h"

#include "nacre/base/trace.h"
#include "nacre/train/metrics.h"

namespace nacre {
namespace {

// Scores predictions that are in host memory.
class HostScorer : public Scorer {
 public:
  explicit HostScorer(const RunData& run) : run_(run) {}

  int64_t device_bytes(bool) const override { return 0; }
  int64_t host_bytes() const override { return 0; }
  Scores score(Executor& executor, bool with_loss) override {
    const TraceSpan span("evaluate", "scores");
    return score_splits(run_.metric, run_.dataset, executor.output("logits"), with_loss);
  }

 private:
  void prepare(const void*) override {}

  const RunData& run_;
};

}  // namespace

std::unique_ptr<Scorer> make_host_scorer(const RunData& run) { return std::make_unique<HostScorer>(run); }

}  // namespace nacre
