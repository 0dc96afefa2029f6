// The program nacre: runs the command line.
#include "program.h"

int main(int argc, char** argv) {
  const int first = argc > 0 ? 1 : 0;
  return nacre::cli::run_program({argv + first, argv + argc});
}
