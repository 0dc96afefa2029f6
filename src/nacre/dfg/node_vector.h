// NodeVector<T>: holds one value for each node of a Dfg, indexed by NodeRef.
#pragma once

#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre {

template <class T>
class NodeVector : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  // Makes one copy of `value` for each node of `dfg`.
  explicit NodeVector(const Dfg& dfg, const T& value = T()) { assign(dfg, value); }

  void assign(const Dfg& dfg, const T& value) { std::vector<T>::assign(static_cast<size_t>(dfg.size()), value); }
  // Returns whether there is a value for every node of `dfg`.
  bool covers(const Dfg& dfg) const { return this->size() == static_cast<size_t>(dfg.size()); }

  T& operator[](NodeRef i) { return this->data()[i]; }
  const T& operator[](NodeRef i) const { return this->data()[i]; }
};

}  // namespace nacre
