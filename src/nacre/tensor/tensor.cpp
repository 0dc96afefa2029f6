#include "nacre/tensor/tensor.h"

#include <cstring>

namespace nacre {

int64_t num_elements(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)), size_(num_elements(shape_)) {
  owner_ = allocate_bytes(bytes());
  data_ = owner_.get();
}

Tensor::Tensor(DType dtype, Shape shape, std::shared_ptr<void> owner, void* data)
    : dtype_(dtype), shape_(std::move(shape)), size_(num_elements(shape_)), owner_(std::move(owner)), data_(data) {}

Tensor Tensor::zeros(DType dtype, Shape shape) {
  Tensor t(dtype, std::move(shape));
  std::memset(t.raw(), 0, static_cast<size_t>(t.bytes()));
  return t;
}

}  // namespace nacre
