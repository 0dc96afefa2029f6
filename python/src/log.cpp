// Passes the library's messages to a Python function.
#include <nanobind/stl/string.h>

#include <mutex>

#include "common.h"
#include "interrupt.h"
#include "nacre/base/log.h"

namespace nacre::python {
namespace {

class PythonLog final : public LogSink {
 public:
  explicit PythonLog(nb::object call) : call_(keep_alive(std::move(call))) {}

  void line(LogKind kind, const std::string& text) override {
    const GilAcquire gil;
    if (!gil.held()) return;
    // These numbers are the levels of Python's module logging.
    const int level = kind == LogKind::warning ? 30 : kind == LogKind::info ? 20 : 10;
    try {
      nb::handle(static_cast<PyObject*>(call_.get()))(level, text);
    } catch (nb::python_error& error) {
      // An exception must not end the work in the middle of a message. The module logging catches
      // the exceptions of its own handlers, so an exception on the main thread comes from a signal
      // handler; raise_later() lets it end the training or the call.
      if (on_main_thread()) {
        raise_later(error);
        return;
      }
      error.discard_as_unraisable("nacre: a message could not be logged");
    }
  }

 private:
  std::shared_ptr<void> call_;
};

}  // namespace

void add_log(nb::module_& m) {
  m.def(
      "set_log",
      [](nb::object call) { set_log_sink(call.is_none() ? nullptr : std::make_shared<PythonLog>(std::move(call))); },
      nb::arg("call").none(),
      "Calls call(level, text) for every message, from any thread. The levels are those of the module logging. "
      "None drops the messages.");
}

}  // namespace nacre::python
