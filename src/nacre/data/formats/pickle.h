// Reads Python pickles of plain values, NumPy arrays and SciPy matrices. Nothing is imported,
// called or executed: classes and functions are only names, and only those listed in pickle.cpp may
// occur. Files may use protocols 1 to 4, with the opcodes that such values need.
//
// Memory grows with the size of the file only: strings and array data stay where they are.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nacre/data/mapped_file.h"
#include "nacre/data/npy.h"

namespace nacre {

class Pickle {
 public:
  enum class Kind : uint8_t { none, boolean, integer, real, text, list, tuple, dict, global, object };

  struct Value {
    Kind kind = Kind::none;
    uint32_t offset = 0;  // position of the opcode that made the value
    // Index into pools_. The list there holds the items of a list or tuple, the keys and values of
    // a dict in turn, or the callable, the arguments and the state of an object.
    uint32_t pool = 0;
    int64_t number = 0;           // value of a boolean or integer; length of a text
    double real = 0;              // value of a real number
    const char* begin = nullptr;  // first byte of a text or of a global ("module name")
  };
  using Id = uint32_t;

  // Reads a pickle. Throws UserError with the offset for anything that this reader does not know.
  // `owner` keeps `bytes` alive.
  Pickle(std::span<const std::byte> bytes, std::string where, std::shared_ptr<const void> owner);
  explicit Pickle(const std::shared_ptr<const MappedFile>& file);

  const std::string& where() const { return where_; }
  // Returns "FILE at byte N".
  std::string where(Id id) const { return where_ + " at byte " + std::to_string(at(id).offset); }
  int64_t bytes() const { return static_cast<int64_t>(bytes_.size()); }

  Id root() const { return root_; }
  Id count() const { return static_cast<Id>(values_.size()); }  // all ids are smaller
  const Value& at(Id id) const { return values_[id]; }
  Kind kind(Id id) const { return at(id).kind; }
  // Returns the elements of a list or tuple, or the keys and values of a dictionary in turn. Throws
  // UserError for other kinds.
  const std::vector<Id>& items(Id id) const;
  std::string_view text(Id id) const;
  int64_t integer(Id id) const;  // accepts booleans too
  // Returns the value under a text key, or `missing` if there is none.
  static constexpr Id missing = ~Id{0};
  Id find(Id dict, std::string_view key) const;
  // The parts of an object: the name of its class or function ("numpy.core.multiarray
  // _reconstruct"), the arguments that this got, and the state that was set later.
  std::string callable(Id object) const;
  Id arguments(Id object) const;
  Id state(Id object) const;

  bool is_array(Id id) const;
  NpyReader array(Id id) const;

 private:
  friend class PickleParser;
  [[noreturn]] void unexpected(Id id, const char* wanted) const;

  std::span<const std::byte> bytes_;
  std::string where_;
  std::shared_ptr<const void> owner_;
  std::vector<Value> values_;
  std::vector<std::vector<Id>> pools_;
  Id root_ = 0;
};

}  // namespace nacre
