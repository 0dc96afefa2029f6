// Offers samplers by themselves, for programs that train with another library.
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <span>

#include "common.h"
#include "embedded.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/sample/sample.h"

namespace nacre::python {
namespace {

// Returns the edges of a block as an array [2, E] of local ids.
nb::object edge_list(const Graph& block) {
  const auto count = static_cast<size_t>(block.num_edges());
  auto values = std::make_unique<int64_t[]>(2 * count);
  {
    const GilRelease release;
    std::copy_n(block.col_idx().data(), count, values.get());
    int64_t* dst = values.get() + count;
    for (int64_t v = 0; v < block.num_dst(); ++v) std::fill(dst + block.row_ptr()[v], dst + block.row_ptr()[v + 1], v);
  }
  const nb::capsule owner(values.get(), [](void* p) noexcept { delete[] static_cast<int64_t*>(p); });
  const size_t shape[] = {2, count};
  return nb::cast(nb::ndarray<nb::numpy, int64_t>(values.release(), 2, shape, owner));
}

struct PySample {
  Sample sample;
};

class PySampler {
 public:
  PySampler(const GraphData& graph, const std::vector<std::string>& words) {
    refuse_after_fork();
    const cli::SampleRequest request(words);
    batch_size_ = request.config.batch_size;
    if (batch_size_ < 1) throw UserError("--batch-size", "must be at least 1");
    SampleOptions options = request.config.sampling;
    if (sampler_info(options.sampler).draws_subgraph && options.budget == 0) options.budget = batch_size_;
    const GilRelease release;
    sampler_ = std::make_unique<Sampler>(graph.dataset.graph, options);
  }

  PySample sample(const Ids& seeds, uint64_t epoch, uint64_t batch) const {
    refuse_after_fork();
    const std::vector<NodeId> ids = checked(seeds);
    std::vector<NodeId> sorted = ids;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
      throw UserError("nodes", "node " + std::to_string(*twice) + " occurs twice");
    const GilRelease release;
    std::unique_ptr<BatchSampler> idle = take_idle();
    idle->begin(ids, {epoch, batch});
    for (int hop = 0; hop < idle->hops(); ++hop) {
      idle->pick(hop);
      idle->insert(hop);
      idle->reindex(hop);
    }
    PySample drawn{idle->finish()};
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(idle));
    return drawn;
  }

  // Returns the nodes in the order in which training would take them in this epoch.
  nb::object order(const Ids& nodes, uint64_t epoch) const {
    BatchOrder order(Array<NodeId>(checked(nodes)), batch_size_, sampler_->options().seed, true);
    order.begin_epoch(epoch);
    std::vector<int64_t> all;
    for (int64_t b = 0; b < order.num_batches(); ++b) {
      const std::span<const NodeId> batch = order.batch(b);
      all.insert(all.end(), batch.begin(), batch.end());
    }
    return copied(all.data(), {all.size()});
  }

  int64_t batch_size() const { return batch_size_; }
  bool draws_seeds() const { return sampler_->draws_seeds(); }
  int layers() const { return sampler_->layers(); }

 private:
  // Returns the ids in the type that the graph stores. Throws UserError if a node does not exist.
  std::vector<NodeId> checked(const Ids& given) const {
    const int64_t nodes = sampler_->graph().num_nodes();
    return node_ids(given, nodes, [&](int64_t id, size_t) {
      throw UserError("nodes", fmt::format("node {} does not exist: the graph has {} nodes", id, human_count(nodes)),
                      "number the nodes from 0");
    });
  }

  // Returns a batch sampler that no other thread uses, because several threads may sample at once.
  // Takes one that has been used before if there is one, because it keeps its memory.
  std::unique_ptr<BatchSampler> take_idle() const {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return sampler_->make_batch_sampler();
    std::unique_ptr<BatchSampler> last = std::move(idle_.back());
    idle_.pop_back();
    return last;
  }

  std::unique_ptr<Sampler> sampler_;
  mutable std::mutex mutex_;
  // Batch samplers that no thread uses. They use sampler_, so they are declared after it, which
  // destroys them before it.
  mutable std::vector<std::unique_ptr<BatchSampler>> idle_;
  int64_t batch_size_ = 0;
};

const Graph& block_of(const PySample& s, size_t block) {
  if (block >= s.sample.blocks.size()) throw nb::index_error("there is no such block");
  return s.sample.blocks[block];
}

template <class T>
nb::object part_of(const std::vector<Array<T>>& parts, size_t block) {
  return block >= parts.size() || parts[block].empty() ? nb::none() : view(parts[block]);
}

}  // namespace

void add_sampler(nb::module_& m) {
  nb::class_<PySample>(m, "Sample", "The blocks of one mini-batch.")
      .def_prop_ro("num_blocks", [](const PySample& s) { return s.sample.blocks.size(); })
      .def_prop_ro("num_seeds", [](const PySample& s) { return s.sample.num_seeds; })
      .def_prop_ro("nodes", [](const PySample& s) { return view(s.sample.vertices); })
      .def_prop_ro(
          "loss_scale",
          [](const PySample& s) { return s.sample.loss_scale.empty() ? nb::none() : view(s.sample.loss_scale); })
      .def("edge_index", [](const PySample& s, size_t block) { return edge_list(block_of(s, block)); })
      .def("edges", [](const PySample& s, size_t block) { return part_of(s.sample.edges, block); })
      .def("scale", [](const PySample& s, size_t block) { return part_of(s.sample.scale, block); })
      .def("num_src", [](const PySample& s, size_t block) { return block_of(s, block).num_src(); })
      .def("num_dst", [](const PySample& s, size_t block) { return block_of(s, block).num_dst(); });
  nb::class_<PySampler>(m, "Sampler", "Draws the blocks of mini-batches.")
      .def(nb::init<const GraphData&, const std::vector<std::string>&>(), nb::arg("graph"), nb::arg("words"))
      .def("sample", &PySampler::sample, nb::arg("seeds"), nb::arg("epoch"), nb::arg("batch"))
      .def("order", &PySampler::order, nb::arg("nodes"), nb::arg("epoch"))
      .def_prop_ro("batch_size", &PySampler::batch_size)
      .def_prop_ro("draws_seeds", &PySampler::draws_seeds)
      .def_prop_ro("layers", &PySampler::layers);

  nb::class_<cli::PlanTexts>(m, "PlanTexts", "What nacre plan shows.")
      .def_ro("summary", &cli::PlanTexts::summary)
      .def_ro("details", &cli::PlanTexts::details)
      .def_ro("json", &cli::PlanTexts::json);
  m.def(
      "plan",
      [](const GraphData& graph, const std::vector<std::string>& words) {
        refuse_after_fork();
        std::vector<std::string> all = words;
        all.insert(all.begin(), "--data=" + graph.spec);
        return cli::plan_texts(all, {graph.dataset, graph.spec, graph.load});
      },
      nb::arg("graph"), nb::arg("words"), nb::call_guard<GilRelease>(),
      "Plans a run; the words are options of nacre plan.");
}

}  // namespace nacre::python
