// Array<T>: a read-only, contiguous run of values with shared ownership. The memory may be a
// vector, an arena or a mapped file. Whoever holds an Array keeps the memory alive, and copying an
// Array costs a reference count.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace nacre {

template <class T>
class Array {
 public:
  Array() = default;
  Array(std::vector<T> values) {  // NOLINT(google-explicit-constructor): a vector is an array
    auto owner = std::make_shared<std::vector<T>>(std::move(values));
    data_ = owner->data();
    size_ = static_cast<int64_t>(owner->size());
    owner_ = std::move(owner);
  }
  Array(std::shared_ptr<const void> owner, const T* data, int64_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}

  const T* data() const { return data_; }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](int64_t i) const { return data_[i]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::span<const T> span() const { return {data_, static_cast<size_t>(size_)}; }

 private:
  std::shared_ptr<const void> owner_;
  const T* data_ = nullptr;
  int64_t size_ = 0;
};

// A newly allocated block of trivially copyable values that is aligned to 64 bytes and NOT
// initialised. Fill it in parallel, then freeze() it into an Array. (std::vector would fill the
// block with zeros on one thread first.)
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t size);
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_.get()[i]; }
  const T& operator[](int64_t i) const { return data_.get()[i]; }
  T* begin() { return data_.get(); }
  T* end() { return data_.get() + size_; }
  Array<T> freeze() && {
    const T* p = data_.get();
    return Array<T>(std::shared_ptr<const void>(std::move(data_)), p, std::exchange(size_, 0));
  }

 private:
  std::shared_ptr<T[]> data_;
  int64_t size_ = 0;
};

// Returns aligned memory. Throws RuntimeError naming the size if there is not enough.
std::shared_ptr<void> allocate_bytes(int64_t bytes);

template <class T>
Buffer<T>::Buffer(int64_t size) : size_(size) {
  auto memory = allocate_bytes(size * static_cast<int64_t>(sizeof(T)));
  data_ = std::shared_ptr<T[]>(memory, static_cast<T*>(memory.get()));
}

}  // namespace nacre
