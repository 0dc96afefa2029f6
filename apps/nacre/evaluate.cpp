// Defines nacre eval and nacre predict, which use a run folder or a weights file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "account.h"
#include "commands.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/printable.h"
#include "nacre/data/npz_write_arrays.h"
#include "nacre/train/checkpoint.h"
#include "nacre/train/metrics.h"
#include "nacre/train/safetensors.h"
#include "nacre/train/trained_model.h"
#include "options.h"
#include "recommend.h"
#include "vertex_names.h"

namespace nacre::cli {
namespace {

struct EvalCommand {
  RunConfig config;
  std::string checkpoint;
  std::string output = "predictions.csv";
  bool scores = false;
  bool embeddings = false;
  int64_t top = 0;  // number of items of --top; 0 if the option was not given
  bool json = false;
  bool predicts = false;  // whether the command is nacre predict
};

// Points to the values that are written: a row of `width` numbers for every vertex.
struct Rows {
  const float* values = nullptr;
  int64_t width = 0;
  const char* name = "scores";
  const float* of(int64_t v) const { return values + v * width; }
};

// Reads the trained model and sets the settings of the command to those that its weights were
// trained with. The weights file carries these settings.
TrainedModel read_settings(EvalCommand& c) {
  apply_execution(c.config);
  TrainedModel trained = read_trained_model(c.checkpoint);
  apply_config_json(trained.config_json, trained.file, c.config);
  return trained;
}

// Returns the bytes that are held besides the session while predictions are written: the order of
// the rows, copies of the names of nodes and, for a .safetensors file of nodes with ids of their
// own, a copy of the rows in the order of these ids.
int64_t writing_bytes(const EvalCommand& c, const Dataset& d, int64_t width) {
  int64_t bytes = d.num_nodes() * 8;
  for (const std::string& name : d.node_names) bytes += static_cast<int64_t>(sizeof(std::string) + name.capacity());
  if (!c.output.ends_with(".safetensors") || d.original_ids.empty()) return bytes;
  return bytes + d.num_nodes() * (8 + width * 4);
}

std::unique_ptr<VertexModel> open_session(const EvalCommand& c, Dataset dataset, const TrainedModel& trained,
                                          MemoryAccount& account) {
  auto session = make_session(std::move(dataset), c.config, {.training = false, .embeddings = c.embeddings});
  show_session(*session);
  HostMemory host = session->host();
  const ModelOptions& model = session->config().model;
  const int64_t width = c.embeddings ? static_cast<int64_t>(model.hidden) : model.out_dim;
  if (c.predicts) host.writing = {{"rows being written", writing_bytes(c, session->dataset(), width)}};
  account.present(host);
  load_weights(trained.read_weights(), trained.file, session->parameters());
  session->start();
  return session;
}

// Throws RuntimeError if not all numbers of the rows are finite: the weights are finite, but too
// large to compute with.
void require_numbers(const EvalCommand& c, const Dataset& d, const float* values, int64_t width) {
  const auto wrong = std::count_if(values, values + d.num_nodes() * width, [](float x) { return !std::isfinite(x); });
  if (wrong == 0) return;
  throw RuntimeError(c.checkpoint,
                     fmt::format("its model computes values for {} that are not numbers; train again with a lower --lr",
                                 printable(d.name)));
}

void run_eval(EvalCommand& c) {
  const TrainedModel trained = read_settings(c);
  MemoryAccount account(c.config, {.trains = false, .loaded = trained.bytes()});
  Dataset dataset = open_data(c.config);
  if (is_recommendation(dataset)) return evaluate_recommender(std::move(dataset), c.config, {trained, account}, c.json);
  const auto session = open_session(c, std::move(dataset), trained, account);
  const Dataset& d = session->dataset();
  const float* scores = session->predict();
  require_numbers(c, d, scores, session->config().model.out_dim);
  const auto of = [&](const Array<NodeId>& nodes) { return score(session->metric(), d, scores, nodes.span()); };
  const double train = of(d.splits.train);
  const double val = of(d.splits.val);
  const double test = of(d.splits.test);
  if (std::isnan(train) && std::isnan(val) && std::isnan(test)) {
    throw UserError(c.config.data, "has no labelled training, validation or test nodes to score",
                    "give them with --labels and --split or --splits, or use nacre predict");
  }
  say_line(c.json, fmt::format("{}: train {}, validation {}, test {}", session->metric(), score_text(train),
                               score_text(val), score_text(test)));
  if (c.json) {
    fmt::print(R"({{"test_acc":{},"val_acc":{},"train_acc":{},"metric":"{}"}})"
               "\n",
               json_number(test), json_number(val), json_number(train), session->metric());
  }
}

// Returns the vertex of each row of the output. If the source numbered the vertices otherwise, the
// rows are in the order of its numbers.
std::vector<int64_t> row_order(const Dataset& d) {
  std::vector<int64_t> rows(d.num_nodes());
  std::iota(rows.begin(), rows.end(), int64_t{0});
  if (!d.original_ids.empty() && !d.heterogeneous()) {
    std::sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) { return d.original_ids[a] < d.original_ids[b]; });
  }
  return rows;
}

std::string predicted(const ModelOptions& model, const Dataset& d, const float* row, int64_t classes) {
  if (model.loss != "bce") return csv_class(d, std::max_element(row, row + classes) - row);
  std::string set;
  for (int64_t k = 0; k < classes; ++k) {
    if (row[k] > 0) set += (set.empty() ? "" : " ") + std::to_string(k);
  }
  return set;
}

void write_csv(const EvalCommand& c, const Dataset& d, const Rows& rows) {
  const bool numbers = c.scores || c.embeddings;
  std::string header = d.heterogeneous() ? "kind,node" : "node";
  if (!c.embeddings) header += ",prediction";
  for (int64_t k = 0; numbers && k < rows.width; ++k)
    header += fmt::format(",{}_{}", c.embeddings ? "embedding" : "score", k);
  PendingFile file(c.output);
  file.append(header + "\n");
  std::string lines;
  for (const int64_t v : row_order(d)) {
    const float* row = rows.of(v);
    if (d.heterogeneous()) lines += d.node_types[kind_of(d, v)] + ",";
    lines += csv_name(d, v);
    if (!c.embeddings) lines += "," + predicted(c.config.model, d, row, rows.width);
    for (int64_t k = 0; numbers && k < rows.width; ++k) lines += fmt::format(",{}", row[k]);
    lines += '\n';
    if (lines.size() > (1 << 20)) {
      file.append(lines);
      lines.clear();
    }
  }
  file.append(lines);
  file.commit();
}

// Writes the rows as .npy. Unless row i belongs to node i of the source for every i, also writes a
// file with the ids of the rows.
void write_npy_rows(const EvalCommand& c, const Dataset& d, const Rows& rows) {
  const std::vector<int64_t> order = row_order(d);
  write_npy<float>(c.output, {d.num_nodes(), rows.width},
                   [&](int64_t i) { return rows.of(order[i / rows.width])[i % rows.width]; });
  bool plain = true;
  for (int64_t i = 0; i < d.num_nodes(); ++i) plain = plain && original_id(d, order[i]) == i;
  if (plain) return;
  const std::string ids = c.output.substr(0, c.output.size() - 4) + ".ids.npy";
  write_npy<int64_t>(ids, {d.num_nodes()}, [&](int64_t i) { return original_id(d, order[i]); });
  log_info("the ids of the rows are in " + ids);
}

void write_tensors(const EvalCommand& c, const Dataset& d, const Rows& rows) {
  const Shape shape = {d.num_nodes(), rows.width};
  if (d.original_ids.empty()) {
    write_safetensors(c.output, {{rows.name, Tensor(DType::f32, shape, nullptr, const_cast<float*>(rows.values))}}, {});
    return;
  }
  Tensor ids(DType::i64, {d.num_nodes()});
  Tensor sorted(DType::f32, shape);
  const std::vector<int64_t> order = row_order(d);
  for (int64_t i = 0; i < d.num_nodes(); ++i) {
    ids.data<int64_t>()[i] = original_id(d, order[i]);
    std::copy_n(rows.of(order[i]), shape[1], sorted.data<float>() + i * shape[1]);
  }
  write_safetensors(c.output, {{"ids", ids}, {rows.name, sorted}}, {});
}

using Write = void (*)(const EvalCommand&, const Dataset&, const Rows&);

Write writer_of(const std::string& output) {
  if (output.ends_with(".csv")) return write_csv;
  if (output.ends_with(".npy")) return write_npy_rows;
  if (output.ends_with(".safetensors")) return write_tensors;
  throw UserError("--output", "'" + output + "' has an unknown ending", "use .csv, .npy or .safetensors");
}

void say_written(const EvalCommand& c, const Dataset& d) {
  fmt::print("{} of {} nodes: {}\n", c.embeddings ? "embeddings" : "predictions", human_count(d.num_nodes()),
             printable(c.output));
}

void recommend(const EvalCommand& c, Dataset dataset, const TrainedModel& trained, MemoryAccount& account) {
  if (c.scores)
    throw UserError("--scores", "is for models that predict classes",
                    "leave it out; recommended items are written with their scores");
  if (!c.embeddings)
    return write_best_items(std::move(dataset), c.config, {trained, account}, {c.output, c.top > 0 ? c.top : 20});
  const auto bytes = [&](const RecommendSession& s) { return writing_bytes(c, s.dataset(), s.embedding_width()); };
  const auto session = open_recommender(std::move(dataset), c.config, {trained, account, bytes});
  writer_of(c.output)(c, session->dataset(), {session->embeddings(), session->embedding_width(), "embeddings"});
  say_written(c, session->dataset());
}

void run_predict(EvalCommand& c) {
  const Write write = writer_of(c.output);
  if (c.scores && (c.embeddings || !c.output.ends_with(".csv")))
    throw UserError("--scores", "is only for predictions in .csv files",
                    "leave it out; other files always hold the scores");
  if (c.top > 0 && c.embeddings)
    throw UserError("--top", "is for recommended items and has no effect with --embeddings", "leave one of them out");
  const TrainedModel trained = read_settings(c);
  MemoryAccount account(c.config, {.trains = false, .loaded = trained.bytes()});
  Dataset dataset = open_data(c.config);
  if (is_recommendation(dataset)) return recommend(c, std::move(dataset), trained, account);
  if (c.top > 0) throw UserError("--top", "is for recommenders", "leave it out");
  const auto session = open_session(c, std::move(dataset), trained, account);
  Rows rows{session->predict(), session->config().model.out_dim};
  if (c.embeddings) {
    const float* values = session->embeddings();
    rows = {values, session->embedding_width(), "embeddings"};
  }
  require_numbers(c, session->dataset(), rows.values, rows.width);
  c.config.model = session->config().model;
  Dataset named = session->dataset();
  // If the data have no class names, the class names that the model was trained with are written.
  if (named.class_names.empty()) named.class_names = session->config().class_names;
  write(c, named, rows);
  write_names(c.output, named, c.output.ends_with(".csv"), !c.embeddings);
  say_written(c, session->dataset());
}

std::shared_ptr<EvalCommand> add_common(Command command) {
  auto c = std::make_shared<EvalCommand>();
  add_data_options(command, c->config, false);
  add_execution_options(command, c->config);
  // These options are for training: a trained model keeps its edges, and its forward pass is
  // planned by rules.
  command.without({"--undirected", "--plan", "--recompute", "--reorder", "--no-plan-cache"});
  add_talk_options(command);
  command.add_option("--checkpoint", c->checkpoint, "run folder, one of its epoch-… folders, or a .safetensors file")
      .required();
  return c;
}

}  // namespace

void add_eval(Command app) {
  Command command = app.add_subcommand("eval", "score a trained model");
  const auto c = add_common(command);
  command.add_flag("--json", c->json, "print one JSON object on stdout, and nothing else");
  command.callback([c, command] {
    refuse_without_data(command);
    run_eval(*c);
  });
}

void add_predict(Command app) {
  Command command = app.add_subcommand("predict", "write a trained model's predictions");
  const auto c = add_common(command);
  command.without({"--splits", "--split", "--split-seed"});  // every node is predicted
  command.add_option("--output,-o", c->output, "a .csv, .npy or .safetensors file, with the node ids of the source")
      .show_default();
  command.add_flag("--scores", c->scores, "add the score of every class to a .csv file");
  command.add_flag("--embeddings", c->embeddings, "write the input of the last layer instead of predictions");
  command.add_option("--top", c->top, "recommenders: number of items for each user; default: 20").positive();
  command.callback([c, command] {
    refuse_without_data(command);
    c->predicts = true;
    run_predict(*c);
  });
}

}  // namespace nacre::cli
