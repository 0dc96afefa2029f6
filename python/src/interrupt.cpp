#include "interrupt.h"

#include "nacre/base/log.h"

namespace nacre::python {

bool PythonInterrupt::came() {
  if (error_) return true;
  constexpr double kPause = 0.05;
  const double now = now_seconds();
  if (now - last_ < kPause) return false;
  last_ = now;
  const GilAcquire gil;
  if (!gil.held()) return true;
  if (PyErr_CheckSignals() == 0) return false;
  error_.emplace();  // takes over the exception that is set in Python
  return true;
}

nb::object PythonInterrupt::exception() const { return error_ ? nb::borrow(error_->value()) : nb::none(); }

}  // namespace nacre::python
