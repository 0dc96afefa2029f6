#include "interrupt.h"

#include <utility>

#include "nacre/base/log.h"

namespace nacre::python {
namespace {

PyObject* g_later = nullptr;  // an exception that waits to be raised; needs the interpreter's lock
uint64_t g_main_thread = 0;

// Sets the exception that waits as Python's current one, and returns -1. Returns 0 if none waits.
int raise_waiting(void* /*unused*/) {
  PyObject* const error = std::exchange(g_later, nullptr);
  if (error == nullptr) return 0;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_DECREF(error);
  return -1;
}

}  // namespace

void note_main_thread() {
  g_main_thread = nb::cast<uint64_t>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
}

bool on_main_thread() { return PyThread_get_thread_ident() == g_main_thread; }

void raise_later(const nb::python_error& error) {
  Py_XDECREF(std::exchange(g_later, nb::handle(error.value()).inc_ref().ptr()));
  Py_AddPendingCall(&raise_waiting, nullptr);
}

bool PythonInterrupt::came() {
  if (error_) return true;
  constexpr double kPause = 0.05;
  const double now = now_seconds();
  if (now - last_ < kPause) return false;
  last_ = now;
  const GilAcquire gil;
  if (!gil.held()) return true;
  const bool raised = PyErr_CheckSignals() != 0 || (on_main_thread() && raise_waiting(nullptr) != 0);
  if (raised) error_.emplace();  // takes over the exception that is set in Python
  return raised;
}

nb::object PythonInterrupt::exception() const { return error_ ? nb::borrow(error_->value()) : nb::none(); }

}  // namespace nacre::python
