// Defines nacre._core.OwnLoop: a model that a Python program trains step by step.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "account.h"
#include "common.h"
#include "embedded.h"
#include "nacre/base/error.h"
#include "nacre/train/checkpoint.h"
#include "nacre/train/vertex_model.h"
#include "options.h"

namespace nacre::python {
namespace {

std::vector<size_t> shape_of(const Parameter& parameter) { return {parameter.shape.begin(), parameter.shape.end()}; }

// Trains a model in steps. Several threads may call the functions of one object; one call waits for
// the other.
class OwnLoop {
 public:
  OwnLoop(const GraphData& graph, const std::vector<std::string>& words) {
    refuse_after_fork();
    std::vector<std::string> all = words;
    all.insert(all.begin(), "--data=" + graph.spec);
    cli::TrainRequest request(all, cli::DataAre::in_memory);
    cli::TrainCommand& settings = request.settings();
    if (is_recommendation(graph.dataset))
      throw UserError(graph.dataset.name, "has users and items, which a loop of your own cannot train on",
                      "use nacre.train()");
    request.check_data(graph.dataset);
    if (settings.config.shuffle == "adaptive")
      throw UserError("shuffle='adaptive'",
                      "follows the accuracy during training, which a loop of your own does not report",
                      "use always or never, or nacre.train()");
    if (settings.config.staleness > 0)
      throw UserError("staleness=" + std::to_string(settings.config.staleness),
                      "lets batches compute beside each other, but the steps of a loop of your own end one by one",
                      "leave it out, or use nacre.train()");
    refuse_files(settings);
    settings.config.data = graph.spec;
    settings.config.load = graph.load;
    settings.config.folder = std::filesystem::current_path().string();
    const GilRelease release;
    cli::MemoryAccount account(settings.config, {.trains = true, .embedded = true, .data_in_memory = true});
    SessionNeeds needs = cli::needs_of(settings, "");
    needs.predicts = true;
    model_ = make_session(graph.dataset, settings.config, needs);
    cli::show_session(*model_);
    account.present(model_->host());
    cli::take_first_weights(settings, *model_);
    model_->start();
    model_->expect_epochs(model_->config().epochs);
  }

  ~OwnLoop() {
    const GilRelease release;  // threads that end may still send a message, which needs
                               // the interpreter's lock
    model_.reset();
  }
  OwnLoop(const OwnLoop&) = delete;
  OwnLoop& operator=(const OwnLoop&) = delete;

  // Runs the next step and returns its loss. The steps of an epoch follow one another as in
  // nacre::train().
  double step(std::optional<double> lr) {
    if (lr && !std::isfinite(*lr)) throw UserError("lr", "must be a finite number");
    return alone_([&] {
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
    });
  }

  std::map<std::string, double> evaluate() {
    const Scores scores = alone_([&] {
      model_->use_average(true);
      const Scores computed = model_->evaluate(true);
      model_->use_average(false);
      return computed;
    });
    return {{"train", scores.train}, {"val", scores.val}, {"test", scores.test}, {"val_loss", scores.val_loss}};
  }

  nb::object scores() {
    const std::vector<size_t> shape = {static_cast<size_t>(model_->dataset().num_nodes()),
                                       static_cast<size_t>(model_->config().model.out_dim)};
    return owned(alone_([&] { return copy_of(model_->predict(), shape); }), shape);
  }

  // Returns writable views of the parameters; `self` keeps their memory alive.
  static nb::dict parameters(const nb::object& self) {
    OwnLoop& loop = nb::cast<OwnLoop&>(self);
    Parameters& all = loop.model_->parameters();
    std::vector<float*> memory;
    loop.alone_([&] {
      for (const Parameter& p : all.list()) memory.push_back(all.data(p));
    });
    nb::dict views;
    for (size_t i = 0; i < memory.size(); ++i) {
      const Parameter& p = all.list()[i];
      const std::vector<size_t> shape = shape_of(p);
      views[p.name.c_str()] = nb::cast(nb::ndarray<nb::numpy, float>(memory[i], shape.size(), shape.data(), self));
    }
    return views;
  }

  nb::dict state() {
    Parameters& all = model_->parameters();
    std::vector<std::unique_ptr<float[]>> copies;
    alone_([&] {
      for (const Parameter& p : all.list()) copies.push_back(copy_of<float>(all.data(p), shape_of(p)));
    });
    nb::dict values;
    for (size_t i = 0; i < copies.size(); ++i) {
      const Parameter& p = all.list()[i];
      values[p.name.c_str()] = owned(std::move(copies[i]), shape_of(p));
    }
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
    alone_([&] {
      load_weights(tensors, "state_dict", model_->parameters());
      model_->weights_changed();
    });
  }

  void weights_changed() {
    alone_([&] { model_->weights_changed(); });
  }

  std::vector<std::pair<std::string, int64_t>> memory() {
    return alone_([&] {
      std::vector<std::pair<std::string, int64_t>> bill;
      for (const MemoryItem& item : model_->memory()) bill.emplace_back(item.what, item.bytes);
      return bill;
    });
  }

  int64_t steps_per_epoch() const { return model_->steps_per_epoch(); }
  int epoch() const { return epoch_; }
  int64_t steps() const { return step_; }
  std::string metric() const { return model_->metric(); }
  std::string settings() const { return model_->settings_json(); }

 private:
  // Throws UserError if an option about files was given. A loop of the user's own writes no files,
  // so such options would have no effect.
  static void refuse_files(const cli::TrainCommand& settings) {
    const auto refuse = [](bool given, const char* option) {
      if (given)
        throw UserError(option, "is about files of a run, but a loop of your own writes and reads none",
                        "use nacre.train(); init=RUN starts with the weights of a run");
    };
    refuse(settings.trainer.resume, "--resume");
    refuse(!settings.trainer.run_folder.empty(), "--checkpoint");
    refuse(!settings.trainer.metrics_file.empty(), "--metrics");
    refuse(!settings.trainer.logs.empty(), "--log");
    refuse(!settings.trace.empty(), "--trace");
  }

  OneAtATime alone_;
  std::unique_ptr<VertexModel> model_;
  std::atomic<int> epoch_{0};     // number of epochs done
  int64_t batch_ = 0;             // number of steps of the current epoch done
  std::atomic<int64_t> step_{0};  // number of steps done
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
