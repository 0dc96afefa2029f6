// OwnLoop: a model that a Python program trains step by step.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <map>
#include <optional>

#include "common.h"
#include "embedded.h"
#include "nacre/base/error.h"
#include "nacre/train/checkpoint.h"
#include "nacre/train/vertex_model.h"
#include "options.h"

namespace nacre::python {
namespace {

std::vector<size_t> shape_of(const Parameter& parameter) { return {parameter.shape.begin(), parameter.shape.end()}; }

class OwnLoop {
 public:
  OwnLoop(const GraphData& graph, const std::vector<std::string>& words) {
    refuse_after_fork();
    std::vector<std::string> all = words;
    all.insert(all.begin(), "--data=" + graph.spec);
    cli::TrainRequest request(all, cli::DataAre::in_memory);
    cli::TrainCommand& settings = request.settings();
    if (is_recommendation(graph.dataset))
      throw UserError(graph.dataset.name, "has users and items, for which Python has no training yet");
    request.check_data(graph.dataset);
    if (settings.config.shuffle == "adaptive")
      throw UserError("shuffle='adaptive'",
                      "follows the accuracy during training, which a loop of your own does not report",
                      "use always or never, or nacre.train()");
    if (settings.config.staleness > 0)
      throw UserError("staleness=" + std::to_string(settings.config.staleness),
                      "lets batches compute beside each other, but the steps of a loop of your own end one by one",
                      "leave it out, or use nacre.train()");
    settings.config.data = graph.spec;
    settings.config.load = graph.load;
    settings.config.folder = std::filesystem::current_path().string();
    const nb::gil_scoped_release release;
    model_ = make_session(graph.dataset, settings.config, cli::needs_of(settings, ""));
    cli::show_session(*model_);
    cli::take_first_weights(settings, *model_);
    model_->start();
    model_->expect_epochs(model_->config().epochs);
  }

  ~OwnLoop() {
    const nb::gil_scoped_release release;  // threads that end may still send a message, which needs
                                           // the interpreter's lock
    model_.reset();
  }
  OwnLoop(const OwnLoop&) = delete;
  OwnLoop& operator=(const OwnLoop&) = delete;

  // Runs the next step and returns its loss. The steps of an epoch follow one another as in
  // nacre::train().
  double step(std::optional<double> lr) {
    refuse_after_fork();
    const nb::gil_scoped_release release;
    const RunConfig& config = model_->config();
    if (batch_ == 0) model_->begin_epoch(epoch_, 0);
    const double rate = lr ? *lr : scheduled_lr(config.schedule, config.optimizer.lr, epoch_, config.epochs);
    const double loss = model_->train_step(step_, rate);
    ++step_;
    if (++batch_ == model_->steps_per_epoch()) {
      batch_ = 0;
      ++epoch_;
    }
    return loss;
  }

  std::map<std::string, double> evaluate() {
    const nb::gil_scoped_release release;
    model_->use_average(true);
    const Scores scores = model_->evaluate(true);
    model_->use_average(false);
    return {{"train", scores.train}, {"val", scores.val}, {"test", scores.test}, {"val_loss", scores.val_loss}};
  }

  nb::object scores() {
    const float* values = nullptr;
    {
      const nb::gil_scoped_release release;
      values = model_->predict();
    }
    return copied(values, {static_cast<size_t>(model_->dataset().num_nodes()),
                           static_cast<size_t>(model_->config().model.out_dim)});
  }

  // Returns writable views of the parameters; `self` keeps their memory alive.
  static nb::dict parameters(const nb::object& self) {
    OwnLoop& loop = nb::cast<OwnLoop&>(self);
    Parameters& all = loop.model_->parameters();
    nb::dict views;
    for (const Parameter& p : all.list()) {
      const std::vector<size_t> shape = shape_of(p);
      views[p.name.c_str()] = nb::cast(nb::ndarray<nb::numpy, float>(all.data(p), shape.size(), shape.data(), self));
    }
    return views;
  }

  nb::dict state() {
    Parameters& all = model_->parameters();
    nb::dict values;
    for (const Parameter& p : all.list()) values[p.name.c_str()] = copied(all.data(p), shape_of(p));
    return values;
  }

  using Weights = std::map<std::string, nb::ndarray<const float, nb::c_contig, nb::device::cpu>>;
  void load_state(const Weights& weights) {
    NamedTensors tensors;
    for (const auto& [name, values] : weights) {
      Shape shape;
      for (size_t i = 0; i < values.ndim(); ++i) shape.push_back(static_cast<int64_t>(values.shape(i)));
      tensors.emplace_back(name, Tensor(DType::f32, shape, nullptr, const_cast<float*>(values.data())));
    }
    load_weights(tensors, "state_dict", model_->parameters());
    weights_changed();
  }

  void weights_changed() {
    const nb::gil_scoped_release release;
    model_->weights_changed();
  }

  std::vector<std::pair<std::string, int64_t>> memory() const {
    std::vector<std::pair<std::string, int64_t>> bill;
    for (const MemoryItem& item : model_->memory()) bill.emplace_back(item.what, item.bytes);
    return bill;
  }

  int64_t steps_per_epoch() const { return model_->steps_per_epoch(); }
  int epoch() const { return epoch_; }
  int64_t steps() const { return step_; }
  std::string metric() const { return model_->metric(); }
  std::string settings() const { return model_->settings_json(); }

 private:
  std::unique_ptr<VertexModel> model_;
  int epoch_ = 0;      // number of epochs done
  int64_t batch_ = 0;  // number of steps of the current epoch done
  int64_t step_ = 0;   // number of steps done
};

}  // namespace

void add_session(nb::module_& m) {
  nb::class_<OwnLoop>(m, "OwnLoop", "A model that the program trains step by step.")
      .def(nb::init<const GraphData&, const std::vector<std::string>&>(), nb::arg("graph"), nb::arg("words"))
      .def("step", &OwnLoop::step, nb::arg("lr").none() = nb::none())
      .def("evaluate", &OwnLoop::evaluate)
      .def("scores", &OwnLoop::scores)
      .def("parameters", &OwnLoop::parameters)
      .def("state", &OwnLoop::state)
      .def("load_state", &OwnLoop::load_state, nb::arg("weights"))
      .def("weights_changed", &OwnLoop::weights_changed)
      .def("memory", &OwnLoop::memory)
      .def_prop_ro("steps_per_epoch", &OwnLoop::steps_per_epoch)
      .def_prop_ro("epoch", &OwnLoop::epoch)
      .def_prop_ro("steps", &OwnLoop::steps)
      .def_prop_ro("metric", &OwnLoop::metric)
      .def_prop_ro("settings", &OwnLoop::settings);
}

}  // namespace nacre::python
