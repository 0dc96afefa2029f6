// nacre eval and nacre predict: from a run folder or a weights file.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/train/checkpoint.h"
#include "nacre/train/metrics.h"
#include "nacre/train/safetensors.h"
#include "options.h"

namespace nacre::cli {
namespace {

struct EvalCommand {
  RunConfig config;
  std::string checkpoint;
  std::string output = "predictions.csv";
  bool scores = false;
  bool json = false;
};

// The final weights of a run folder, or the file itself.
std::string weights_file(const std::string& checkpoint) {
  namespace fs = std::filesystem;
  if (fs::is_regular_file(checkpoint)) return checkpoint;
  std::string final_weights = checkpoint + "/model.safetensors";
  if (fs::exists(final_weights)) return final_weights;
  throw UserError("--checkpoint", "there are no weights in '" + checkpoint + "'",
                  "name a run folder of a finished training, or a .safetensors file");
}

// Weights carry the settings they were trained with.
std::unique_ptr<Session> open_session(EvalCommand& c) {
  apply_execution(c.config);
  const std::string file = weights_file(c.checkpoint);
  Metadata metadata;
  read_safetensors(file, &metadata);
  const auto settings =
      std::find_if(metadata.begin(), metadata.end(), [](const auto& m) { return m.first == "nacre.config"; });
  if (settings == metadata.end())
    throw UserError(file, "does not say how the model was built", "use the model.safetensors of a run folder");
  apply_config_json(settings->second, file, c.config);
  auto session = std::make_unique<Session>(open_data(c.config), c.config, SessionNeeds{.training = false});
  show_session(*session);
  load_weights(file, session->parameters());
  session->start();
  return session;
}

void run_eval(EvalCommand& c) {
  const auto session = open_session(c);
  const Dataset& d = session->dataset();
  const float* scores = session->predict();
  const auto of = [&](const Array<NodeId>& nodes) {
    return json_number(score(session->metric(), d, scores, nodes.span()));
  };
  const std::string train = of(d.splits.train);
  const std::string val = of(d.splits.val);
  const std::string test = of(d.splits.test);
  fmt::print("{}: train {}, validation {}, test {}\n", session->metric(), train, val, test);
  if (c.json) {
    fmt::print(R"({{"test_acc":{},"val_acc":{},"train_acc":{},"metric":"{}"}})"
               "\n",
               test, val, train, session->metric());
  }
}

void write_csv(const EvalCommand& c, const Session& session, const float* scores) {
  const int64_t classes = session.config().model.out_dim;
  std::string header = "node,prediction";
  for (int64_t k = 0; c.scores && k < classes; ++k) header += fmt::format(",score_{}", k);
  PendingFile file(c.output);
  file.append(header + "\n");
  std::string lines;
  for (int64_t v = 0; v < session.dataset().num_nodes(); ++v) {
    const float* row = scores + v * classes;
    lines += fmt::format("{},", v);
    if (session.config().model.loss == "bce") {
      std::string set;
      for (int64_t k = 0; k < classes; ++k) {
        if (row[k] > 0) set += (set.empty() ? "" : " ") + std::to_string(k);
      }
      lines += set;
    } else {
      lines += std::to_string(std::max_element(row, row + classes) - row);
    }
    for (int64_t k = 0; c.scores && k < classes; ++k) lines += fmt::format(",{}", row[k]);
    lines += '\n';
    if (lines.size() > (1 << 20)) {
      file.append(lines);
      lines.clear();
    }
  }
  file.append(lines);
  file.commit();
}

void run_predict(EvalCommand& c) {
  if (!c.output.ends_with(".safetensors") && !c.output.ends_with(".csv")) {
    throw UserError("--output", "'" + c.output + "' has an unknown ending", "use .csv or .safetensors");
  }
  const auto session = open_session(c);
  const float* scores = session->predict();
  if (c.output.ends_with(".safetensors")) {
    const Shape shape = {session->dataset().num_nodes(), session->config().model.out_dim};
    write_safetensors(c.output, {{"scores", Tensor(DType::f32, shape, nullptr, const_cast<float*>(scores))}}, {});
  } else {
    write_csv(c, *session, scores);
  }
  fmt::print("predictions for {} vertices: {}\n", human_count(session->dataset().num_nodes()), c.output);
}

std::shared_ptr<EvalCommand> add_common(Command command) {
  auto c = std::make_shared<EvalCommand>();
  add_data_options(command, c->config, false);
  add_execution_options(command, c->config);
  add_talk_options(command);
  command.add_option("--checkpoint", c->checkpoint, "run folder or .safetensors file").required();
  return c;
}

}  // namespace

void add_eval(Command app) {
  Command command = app.add_subcommand("eval", "score a trained model");
  const auto c = add_common(command);
  command.add_flag("--json", c->json, "end stdout with one JSON object");
  command.callback([c] { run_eval(*c); });
}

void add_predict(Command app) {
  Command command = app.add_subcommand("predict", "write a trained model's predictions");
  const auto c = add_common(command);
  command.add_option("--output,-o", c->output, "a .csv or .safetensors file").show_default();
  command.add_flag("--scores", c->scores, "csv: also every class's score");
  command.callback([c] { run_predict(*c); });
}

}  // namespace nacre::cli
