// Gives Python the functions that train models, and those that use trained weights.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <map>
#include <optional>

#include "account.h"
#include "common.h"
#include "embedded.h"
#include "interrupt.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/trace.h"
#include "nacre/base/warnings.h"
#include "nacre/report/page.h"
#include "nacre/train/checkpoint.h"
#include "nacre/train/metrics.h"
#include "nacre/train/trained_model.h"
#include "nacre/train/trainer.h"
#include "nacre/train/vertex_model.h"
#include "options.h"
#include "recommend.h"
#include "stored_run.h"
#include "train_result.h"

namespace nacre::python {
namespace {

nb::dict report_dict(const EpochReport& report) {
  const auto number = [](double value) { return std::isnan(value) ? nb::none() : nb::object(nb::float_(value)); };
  nb::dict d;
  d["epoch"] = report.epoch;
  d["loss"] = report.loss;
  d["lr"] = report.lr;
  d["seconds"] = report.seconds;
  d["train"] = number(report.scores.train);
  d["val"] = number(report.scores.val);
  d["test"] = number(report.scores.test);
  return d;
}

// Returns a function that calls the Python function after every epoch, and that returns false if
// training should end, because the Python function has returned False. Returns null for None.
std::function<bool(const EpochReport&)> after_epoch(const nb::object& call) {
  if (call.is_none()) return nullptr;
  return [call = keep_alive(call)](const EpochReport& report) {
    const GilAcquire gil;
    if (!gil.held()) return false;
    const nb::object answer = nb::handle(static_cast<PyObject*>(call.get()))(report_dict(report));
    return !answer.is(nb::handle(Py_False));
  };
}

// Records a timeline until the end of the scope, if a file is given.
class Timeline {
 public:
  explicit Timeline(std::string file) : file_(std::move(file)) {
    if (!file_.empty()) trace_start(file_);
  }
  ~Timeline() {
    if (!file_.empty()) trace_end();
  }
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void write() const {
    if (!file_.empty()) trace_write(file_);
  }

 private:
  std::string file_;
};

struct Trained {
  std::string result;                  // the results as JSON text
  std::string folder;                  // path of the run folder
  nb::object stopped_by = nb::none();  // the exception that a signal handler has raised
  GraphData graph;
};

// Trains a model of nodes, and sets the results and the run folder of `trained`.
void train_on_nodes(Dataset dataset, cli::TrainCommand& settings, cli::MemoryAccount& account, const Timeline& timeline,
                    Trained& trained) {
  const auto session = make_session(std::move(dataset), settings.config, cli::needs_of(settings, ""));
  cli::show_session(*session);
  account.present(session->host());
  cli::take_first_weights(settings, *session);
  session->start();
  const TrainResult result = train(*session, settings.trainer);
  timeline.write();
  trained.folder = settings.trainer.run_folder;
  trained.result = cli::train_result_json(*session, result, trained.folder, account);
  cli::write_result(*session, trained.result, trained.folder, account);
}

// Trains a recommender, and sets the results and the run folder of `trained`.
void train_on_pairs(Dataset dataset, cli::TrainCommand& settings, cli::MemoryAccount& account, const Timeline& timeline,
                    Trained& trained) {
  settings.recommend.batch_size = settings.config.batch_size;
  cli::RecommendRun run{.config = settings.config, .options = settings.recommend, .trainer = settings.trainer};
  run.silent = true;
  const cli::TrainedRecommender done = cli::train_recommender(std::move(dataset), run, account);
  timeline.write();
  trained.folder = done.folder;
  trained.result = done.json;
}

Trained train_model(const GraphData* graph, const std::vector<std::string>& words, const nb::object& call) {
  refuse_after_fork();
  std::vector<std::string> all = words;
  if (graph != nullptr) all.insert(all.begin(), "--data=" + graph->spec);
  cli::TrainRequest request(all, graph != nullptr ? cli::DataAre::in_memory : cli::DataAre::to_be_read);
  cli::TrainCommand& settings = request.settings();
  settings.config.folder = std::filesystem::current_path().string();
  PythonInterrupt interrupt;
  settings.trainer.after_epoch = after_epoch(call);
  settings.trainer.interrupted = [&] { return interrupt.came(); };
  Trained trained;
  {
    const GilRelease release;
    const Timeline timeline(settings.trace);
    cli::MemoryAccount account(settings.config, purpose_of(graph, true, cli::loaded_bytes(settings)));
    Dataset dataset = data_of(graph, settings.config);
    request.check_data(dataset);
    if (graph != nullptr)
      trained.graph = *graph;
    else
      trained.graph = {dataset, settings.config.data, settings.config.load, false};
    const auto train_on = is_recommendation(dataset) ? train_on_pairs : train_on_nodes;
    train_on(std::move(dataset), settings, account, timeline, trained);
  }
  trained.stopped_by = interrupt.exception();
  return trained;
}

// Holds a model with the weights of a run, ready to score all nodes of a graph. Several threads may
// call the functions of one object; one call waits for the other.
class Predictor {
 public:
  Predictor(const GraphData* graph, const std::string& path, const std::string& device, bool embeddings) {
    refuse_after_fork();
    const GilRelease release;
    StoredRun run(graph, path, device);
    cli::MemoryAccount account(run.config, purpose_of(graph, false, run.trained.bytes()));
    Dataset dataset = data_of(graph, run.config);
    if (is_recommendation(dataset))
      throw UserError(path, "recommends items and has no scores of classes", "use run.recommend()");
    SessionNeeds needs;
    needs.training = false;
    needs.embeddings = embeddings;
    session_ = make_session(std::move(dataset), run.config, needs);
    account.present(session_->host());
    load_weights(run.trained.read_weights(), run.trained.file, session_->parameters());
    session_->start();
  }

  ~Predictor() {
    const GilRelease release;  // threads that end may still send a message, which needs
                               // the interpreter's lock
    session_.reset();
  }
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  nb::object scores() {
    const std::vector<size_t> shape = {nodes(), static_cast<size_t>(session_->config().model.out_dim)};
    return owned(alone_([&] { return copy_of(session_->predict(), shape); }), shape);
  }

  nb::object embeddings() {
    const std::vector<size_t> shape = {nodes(), static_cast<size_t>(session_->embedding_width())};
    return owned(alone_([&] {
                   session_->predict();
                   return copy_of(session_->embeddings(), shape);
                 }),
                 shape);
  }

  std::map<std::string, double> evaluate() {
    return alone_([&]() -> std::map<std::string, double> {
      const float* values = session_->predict();
      const Dataset& d = session_->dataset();
      const auto of = [&](const Array<NodeId>& ids) { return score(session_->metric(), d, values, ids.span()); };
      return {{"train", of(d.splits.train)}, {"val", of(d.splits.val)}, {"test", of(d.splits.test)}};
    });
  }

  std::string metric() const { return session_->metric(); }
  bool multilabel() const { return session_->config().model.loss == "bce"; }
  std::vector<std::string> class_names() const { return session_->config().class_names; }

 private:
  size_t nodes() const { return static_cast<size_t>(session_->dataset().num_nodes()); }

  OneAtATime alone_;
  std::unique_ptr<VertexModel> session_;
};

nb::dict read_tensors(const std::string& path) {
  const TrainedModel trained = read_trained_model(path);
  nb::dict tensors;
  for (const auto& [name, tensor] : trained.read_weights()) {
    std::vector<size_t> shape;
    for (const int64_t n : tensor.shape()) shape.push_back(static_cast<size_t>(n));
    tensors[name.c_str()] = copied(tensor.data<float>(), shape);
  }
  return tensors;
}

}  // namespace

void add_training(nb::module_& m) {
  nb::class_<Trained>(m, "Trained", "The outcome of a training run.")
      .def_ro("result", &Trained::result, "The results as JSON, as nacre train --json prints them.")
      .def_ro("folder", &Trained::folder)
      .def_ro("stopped_by", &Trained::stopped_by, "The exception of a signal handler that ended the run, or None.")
      .def_ro("graph", &Trained::graph);
  m.def("train", &train_model, nb::arg("graph").none(), nb::arg("words"), nb::arg("after_epoch").none(),
        "Trains a model. The words are options of nacre train. after_epoch(report) is called after every epoch and "
        "ends the training by returning False. The graph may be None if the words name the data.");
  nb::class_<Predictor>(m, "Predictor", "A model with the weights of a run, ready to score all nodes of a graph.")
      .def(nb::init<const GraphData*, const std::string&, const std::string&, bool>(), nb::arg("graph").none(),
           nb::arg("path"), nb::arg("device"), nb::arg("embeddings"))
      .def("scores", &Predictor::scores, "Returns the scores of all nodes and classes, float32.")
      .def("embeddings", &Predictor::embeddings, "Returns the input of the last layer of all nodes, float32.")
      .def("evaluate", &Predictor::evaluate, "Returns the scores of the training, validation and test nodes.")
      .def_prop_ro("metric", &Predictor::metric)
      .def_prop_ro("multilabel", &Predictor::multilabel)
      .def_prop_ro("class_names", &Predictor::class_names);
  m.def(
      "report",
      [](const std::vector<std::string>& folders) {
        std::vector<RunRecord> runs;
        for (const std::string& folder : folders) runs.push_back(read_run_record(folder));
        return report_page(runs);
      },
      nb::arg("folders"), nb::call_guard<GilRelease>(), "Returns an HTML page about these run folders.");
  m.def("read_weights", &read_tensors, nb::arg("path"), "Returns the weights of a run by name.");
}

}  // namespace nacre::python
