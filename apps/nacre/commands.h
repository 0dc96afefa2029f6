// Declares the subcommands of the program. Each function adds a command to the app, with a callback
// that does the work and throws errors as exceptions.
#pragma once

#include "command.h"

namespace nacre::cli {

// A run that was asked to stop throws this when it has saved and printed everything. The program
// then ends with status 128 + signal.
struct Interrupted {
  int signal = 0;
};

void add_devices(Command app);
void add_data(Command app);
void add_partition(Command app);
void add_plan(Command app);
void add_explain(Command app);
void add_profile(Command app);
void add_simulate(Command app);
void add_train(Command app);
void add_eval(Command app);
void add_predict(Command app);
void add_report(Command app);
void add_bench(Command app);
void add_completions(Command app);
void add_man(Command app);
void add_bench_daha(Command bench);
void add_bench_gpu(Command bench);
void add_bench_nugnn(Command bench);
void add_bench_placement(Command bench);
void add_bench_sampling(Command bench);
void add_bench_wisegraph(Command bench);

}  // namespace nacre::cli
