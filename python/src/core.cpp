// Defines nacre._core, the C++ library as Python sees it. The Python package nacre wraps it.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <atomic>

#include "common.h"
#include "embedded.h"
#include "interrupt.h"
#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/base/warnings.h"
#include "nacre/data/mapped_file.h"
#include "program.h"

namespace nacre::python {
namespace {

std::atomic<bool> g_used{false};
std::atomic<bool> g_forked{false};

}  // namespace

void refuse_after_fork() {
  if (g_forked) {
    throw UserError("nacre", "was used before this process was forked, and its threads were not copied",
                    "start processes with multiprocessing.get_context(\"spawn\"), or use nacre in the child only");
  }
  g_used = true;
}

std::shared_ptr<void> keep_alive(nb::object object) {
  return {object.release().ptr(), [](void* p) {
            if (Py_IsInitialized() == 0) return;  // the interpreter has ended
            const GilAcquire gil;
            if (!gil.held()) return;
            Py_DECREF(static_cast<PyObject*>(p));
          }};
}

}  // namespace nacre::python

NB_MODULE(_core, m) {
  using namespace nacre::python;
  m.doc() = "The C++ library of Nacre. Use the package nacre, which wraps this module.";
  nb::exception<nacre::UserError>(m, "UserError", PyExc_ValueError).doc() =
      "Wrong input or settings. The text says what is wrong, where, and what to do.";
  m.attr("__version__") = NACRE_VERSION;
  // A program may keep an exception until its end, and with it the graphs in its traceback. These
  // are no leaks, so nanobind does not warn of them.
  nb::set_leak_warnings(false);
  pthread_atfork(nullptr, nullptr, [] {
    g_forked = g_used.load();
    forget_other_threads();
  });
  nacre::guard_mapped_files();
  note_main_thread();

  m.def(
      "main",
      [](const std::vector<std::string>& arguments) {
        refuse_after_fork();
        become_program();
        std::vector<const char*> words;
        for (const std::string& argument : arguments) words.push_back(argument.c_str());
        return nacre::cli::run_program(words);
      },
      nb::arg("arguments"), nb::call_guard<GilRelease>(),
      "Runs the command line and returns its exit code. The process should end with that code.");
  m.def("options_text", &nacre::cli::options_text, nb::arg("command"),
        "Returns the options of 'train', 'load' or 'graph' as the command line describes them.");
  m.def("option_names", &nacre::cli::option_names, nb::arg("command"),
        "Returns the long names of the options of 'train', 'load' or 'graph'.");
  m.def("flag_names", &nacre::cli::flag_names, nb::arg("command"),
        "Returns the long names of the options of 'train', 'load' or 'graph' that take no value.");
  m.def("end_interpreter", &end_interpreter, "The package calls this when the interpreter ends.");
  m.def("warnings", &nacre::warnings_so_far, "Returns all distinct warnings of this process so far.");
  m.def("num_threads", &nacre::num_threads, "Returns the number of threads that loops run on.");
  add_log(m);
  add_data(m);
  add_training(m);
  add_session(m);
  add_recommender(m);
  add_sampler(m);
  add_models(m);
}
