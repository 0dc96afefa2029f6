// KeyedCache: stores values of any type under keys.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <utility>

namespace nacre {

// Stores values of any type, each under its type and a key. A cache with a parent also finds the
// values of the parent; values that are added to it are not visible to the parent. References to
// values stay valid as long as the cache that holds them.
class KeyedCache {
 public:
  explicit KeyedCache(const KeyedCache* parent = nullptr) : parent_(parent) {}

  // Returns the value of type T under `key` that this cache itself holds; null if there is none.
  template <class T>
  T* find_own(const std::string& key) const {
    const auto found = values_.find({std::type_index(typeid(T)), key});
    return found == values_.end() ? nullptr : static_cast<T*>(found->second.get());
  }
  // Returns the value of type T under `key` that this cache or its parent holds; null if there is
  // none.
  template <class T>
  T* find(const std::string& key) const {
    T* known = parent_ != nullptr ? parent_->find<T>(key) : nullptr;
    return known != nullptr ? known : find_own<T>(key);
  }
  // Stores `value` under `key` in this cache, replacing an earlier value, and returns the stored
  // value.
  template <class T>
  T& put(const std::string& key, T value) {
    std::shared_ptr<void>& kept = values_[{std::type_index(typeid(T)), key}];
    kept = std::make_shared<T>(std::move(value));
    return *static_cast<T*>(kept.get());
  }
  // Returns the value that find() finds; if there is none, stores and returns the value of make().
  template <class T, class Make>
  T& get(const std::string& key, const Make& make) {
    T* known = find<T>(key);
    return known != nullptr ? *known : put<T>(key, make());
  }

 private:
  const KeyedCache* parent_;
  std::map<std::pair<std::type_index, std::string>, std::shared_ptr<void>> values_;
};

}  // namespace nacre
