// Defines the program nacre, which runs the command line.
#include "in_python.h"
#include "nacre/model/model_file.h"
#include "program.h"

namespace {

void hand_python_models_over(nacre::cli::Arguments arguments) {
  nacre::set_python_models([arguments](const std::string& file) -> std::vector<std::string> {
    nacre::cli::run_in_python({arguments.begin(), arguments.end()}, file);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int first = argc > 0 ? 1 : 0;
  return nacre::cli::run_program({argv + first, argv + argc}, hand_python_models_over);
}
