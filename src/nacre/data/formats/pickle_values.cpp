// Gives access to the values of a parsed pickle.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/data/formats/pickle.h"

namespace nacre {
namespace {

// Decodes bytes in pickles of protocol 2 that Python 3 wrote. That protocol has no bytes, so each
// byte is written as a character of a UTF-8 text.
std::shared_ptr<std::string> decode_latin1(std::string_view utf8, const std::string& where) {
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(utf8.size());
  for (size_t i = 0; i < utf8.size(); ++i) {
    auto c = static_cast<unsigned char>(utf8[i]);
    if (c >= 0x80) {
      const bool pair = (c == 0xC2 || c == 0xC3) && i + 1 < utf8.size();
      const auto low = pair ? static_cast<unsigned char>(utf8[++i]) : 0U;
      if ((low & 0xC0U) != 0x80U) throw UserError(where, "array data is not encoded as latin1");
      c = static_cast<unsigned char>((c & 3U) << 6 | (low & 0x3FU));
    }
    bytes->push_back(static_cast<char>(c));
  }
  return bytes;
}

}  // namespace

void Pickle::unexpected(Id id, const char* wanted) const {
  constexpr const char* names[] = {"nothing", "a boolean", "an integer",   "a number", "a string",
                                   "a list",  "a tuple",   "a dictionary", "a class",  "an object"};
  throw UserError(where(id),
                  std::string("holds ") + names[static_cast<size_t>(kind(id))] + " where " + wanted + " is expected");
}

const std::vector<Pickle::Id>& Pickle::items(Id id) const {
  const Kind k = kind(id);
  if (k != Kind::list && k != Kind::tuple && k != Kind::dict) unexpected(id, "a list");
  return pools_[at(id).pool];
}

std::string_view Pickle::text(Id id) const {
  if (kind(id) != Kind::text && kind(id) != Kind::global) unexpected(id, "a string");
  return {at(id).begin, static_cast<size_t>(at(id).number)};
}

int64_t Pickle::integer(Id id) const {
  if (kind(id) != Kind::integer && kind(id) != Kind::boolean) unexpected(id, "an integer");
  return at(id).number;
}

Pickle::Id Pickle::find(Id dict, std::string_view key) const {
  if (kind(dict) != Kind::dict) unexpected(dict, "a dictionary");
  const std::vector<Id>& pairs = items(dict);
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (kind(pairs[i]) == Kind::text && text(pairs[i]) == key) return pairs[i + 1];
  }
  return missing;
}

std::string Pickle::callable(Id object) const {
  return kind(object) == Kind::object ? std::string(text(pools_[at(object).pool][0])) : "";
}

Pickle::Id Pickle::arguments(Id object) const {
  if (kind(object) != Kind::object) unexpected(object, "an object");
  return pools_[at(object).pool][1];
}

Pickle::Id Pickle::state(Id object) const {
  if (kind(object) != Kind::object) unexpected(object, "an object");
  return pools_[at(object).pool][2];
}

bool Pickle::is_array(Id id) const { return callable(id).ends_with("multiarray _reconstruct"); }

// Returns a reader of the array. The state of an array is (version, shape, dtype, column-major?,
// data). A dtype is called with its name and has the state (version, byte order, …).
NpyReader Pickle::array(Id id) const {
  if (!is_array(id)) unexpected(id, "an array");
  const std::vector<Id>& parts = items(state(id));
  if (parts.size() != 5) throw UserError(where(id), "holds an array of unknown layout");
  const Id dtype = parts[2];
  if (callable(dtype) != "numpy dtype" || items(arguments(dtype)).empty()) unexpected(dtype, "a type of elements");
  const std::vector<Id>& order = items(state(dtype));
  if (order.size() < 2) throw UserError(where(id), "holds an array of unknown element type");
  NpyHeader header;
  std::string type =
      std::string(text(order[1]).substr(0, 1)) + std::string(text(items(arguments(dtype))[0]).substr(0, 20));
  for (char& c : type) c = c > 32 && c < 127 ? c : '?';  // the name may appear in a message
  header.type = parse_npy_type(type, where(id));
  header.fortran = integer(parts[3]) != 0;
  if (items(parts[1]).size() > 32) throw UserError(where(id), "holds an array of more than 32 dimensions");
  for (const Id d : items(parts[1])) {
    header.shape.push_back(integer(d));
    if (header.shape.back() < 0) throw UserError(where(id), "holds an array of negative size");
  }
  header.count = checked_npy_count(header.shape, header.type.size);
  std::string_view data;
  std::shared_ptr<const void> owner = owner_;
  if (callable(parts[4]) == "_codecs encode") {
    const std::vector<Id>& arguments_of = items(arguments(parts[4]));
    if (arguments_of.empty()) throw UserError(where(id), "array data is not encoded as latin1");
    auto decoded = decode_latin1(text(arguments_of[0]), where(id));
    data = *decoded;
    owner = std::move(decoded);
  } else {
    data = text(parts[4]);
  }
  if (header.count < 0 || header.data_bytes() != static_cast<int64_t>(data.size())) {
    throw UserError(where(id), "shape " + shape_text(header.shape) + " of " + npy_type_name(header.type) +
                                   " does not fit the " + std::to_string(data.size()) + " bytes of an array");
  }
  return {std::move(header), memory_stream(std::as_bytes(std::span(data))), where(id), std::move(owner)};
}

}  // namespace nacre
