// Declares what the parts of the Python module share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gil.h"
#include "nacre/data/dataset.h"
#include "nacre/data/load.h"
#include "nacre/train/config.h"

namespace nacre::python {

namespace nb = nanobind;

// Holds a data set of a Python program, which was made from arrays or read from files.
struct GraphData {
  Dataset dataset;
  std::string spec;  // what the program would give as --data, or "memory:NAME"
  LoadOptions load;
  bool in_memory = false;  // true if made from arrays; then it cannot be read again
};

// Throws UserError in a child of fork() whose parent has used Nacre: fork() does not copy the
// threads of a process, so the child would wait for them forever. Every function that may start
// threads calls this first.
void refuse_after_fork();

// Runs the work of one thread at a time, and gives up the interpreter's lock meanwhile. An object
// whose functions several threads may call has a OneAtATime, so that one call waits for the other.
class OneAtATime {
 public:
  // Returns what `work` returns. Throws UserError in a process that was forked.
  template <class Work>
  auto operator()(const Work& work) {
    refuse_after_fork();
    const GilRelease released;
    const std::lock_guard lock(mutex_);
    return work();
  }

 private:
  std::mutex mutex_;
};

// Returns a shared owner of a Python object. Any thread may drop the last copy of it.
std::shared_ptr<void> keep_alive(nb::object object);

// Returns a shared owner of an array that Python has passed.
template <class NdArray>
std::shared_ptr<void> keep_array(const NdArray& array) {
  return {new NdArray(array), [](void* p) {
            if (Py_IsInitialized() == 0) return;
            const GilAcquire gil;
            if (!gil.held()) return;
            delete static_cast<NdArray*>(p);
          }};
}

// Returns a read-only NumPy array that shows the memory at `data`, which `owner` keeps alive.
template <class T>
nb::object view(const T* data, std::vector<size_t> shape, std::shared_ptr<const void> owner) {
  auto* kept = new std::shared_ptr<const void>(std::move(owner));
  const nb::capsule capsule(kept, [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, const T>(data, shape.size(), shape.data(), capsule));
}
template <class T>
nb::object view(const Array<T>& array) {
  return view(array.data(), {static_cast<size_t>(array.size())}, std::make_shared<Array<T>>(array));
}

// Returns a copy of the values. The caller need not hold the interpreter's lock.
template <class T>
std::unique_ptr<T[]> copy_of(const T* data, const std::vector<size_t>& shape) {
  size_t size = 1;
  for (const size_t n : shape) size *= n;
  auto values = std::make_unique<T[]>(size);
  std::copy_n(data, size, values.get());
  return values;
}

// Returns a NumPy array that owns the values.
template <class T>
nb::object owned(std::unique_ptr<T[]> values, const std::vector<size_t>& shape) {
  const nb::capsule owner(values.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
  T* memory = values.release();
  return nb::cast(nb::ndarray<nb::numpy, T>(memory, shape.size(), shape.data(), owner));
}

// Returns a new NumPy array with a copy of the values.
template <class T>
nb::object copied(const T* data, const std::vector<size_t>& shape) {
  return owned(copy_of(data, shape), shape);
}

using Ids = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Returns the ids in the type that graphs store. For the first id that is not from 0 to count - 1,
// calls refuse(id, position), which must throw.
template <class Refuse>
std::vector<NodeId> node_ids(const Ids& ids, int64_t count, const Refuse& refuse) {
  std::vector<NodeId> nodes(ids.shape(0));
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int64_t id = ids.data()[i];
    if (id < 0 || id >= count) refuse(id, i);
    nodes[i] = static_cast<NodeId>(id);
  }
  return nodes;
}

// Each of these functions adds a part of the Python module to `m`.
void add_log(nb::module_& m);
void add_data(nb::module_& m);
void add_training(nb::module_& m);
void add_session(nb::module_& m);
void add_recommender(nb::module_& m);
void add_sampler(nb::module_& m);
void add_models(nb::module_& m);

// Notes that this process is the command line. A mistake in a model is then reported in one line.
void become_program();

}  // namespace nacre::python
