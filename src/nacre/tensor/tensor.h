// Tensor: a dense row-major block of values in host memory, owned or borrowed (a mapped file, a
// piece of an arena). Copying a Tensor shares the memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/tensor/array.h"
#include "nacre/tensor/dtype.h"

namespace nacre {

using Shape = std::vector<int64_t>;

int64_t num_elements(const Shape& shape);
std::string shape_text(const Shape& shape);  // returns for example "[3, 4]"

class Tensor {
 public:
  Tensor() = default;
  // Allocates memory for the values and leaves it uninitialised.
  Tensor(DType dtype, Shape shape);
  // Makes a tensor of memory that `owner` keeps alive.
  Tensor(DType dtype, Shape shape, std::shared_ptr<void> owner, void* data);
  static Tensor zeros(DType dtype, Shape shape);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t rows() const { return shape_.empty() ? 1 : shape_[0]; }
  int64_t size() const { return size_; }  // number of elements
  int64_t bytes() const { return size_ * dtype_size(dtype_); }
  // Returns the number of elements in a row.
  int64_t row_size() const { return rows() == 0 ? 0 : size_ / rows(); }
  bool empty() const { return size_ == 0; }
  bool defined() const { return data_ != nullptr; }

  void* raw() { return data_; }
  const void* raw() const { return data_; }
  template <class T>
  T* data() {
    NACRE_CHECK(DTypeOf<T>::value == dtype_, "the tensor holds " + std::string(dtype_name(dtype_)));
    return static_cast<T*>(data_);
  }
  template <class T>
  const T* data() const {
    NACRE_CHECK(DTypeOf<T>::value == dtype_, "the tensor holds " + std::string(dtype_name(dtype_)));
    return static_cast<const T*>(data_);
  }
  template <class T>
  std::span<const T> span() const {
    return {data<T>(), static_cast<size_t>(size_)};
  }
  template <class T>
  std::span<T> span() {
    return {data<T>(), static_cast<size_t>(size_)};
  }

 private:
  DType dtype_ = DType::f32;
  Shape shape_;
  int64_t size_ = 0;
  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
};

}  // namespace nacre
