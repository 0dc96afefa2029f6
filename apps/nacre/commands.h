// The subcommands of the program. Each adds itself to the app with a callback that does the work; errors travel as
// exceptions.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 calls it
class App;
}

namespace nacre::cli {

void add_devices(CLI::App& app);
void add_data(CLI::App& app);
void add_plan(CLI::App& app);
void add_explain(CLI::App& app);
void add_profile(CLI::App& app);
void add_train(CLI::App& app);
void add_eval(CLI::App& app);
void add_predict(CLI::App& app);
void add_bench(CLI::App& app);
void add_bench_gpu(CLI::App& bench);
void add_bench_wisegraph(CLI::App& bench);

}  // namespace nacre::cli
