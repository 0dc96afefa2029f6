#include "nacre/data/npy_header.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "nacre/base/error.h"
#include "nacre/base/log.h"

namespace nacre {
namespace {

// NumPy's own headers take 64 to a few hundred bytes. Only record types need more, and those are
// refused anyway.
constexpr int64_t kMaxHeader = 64 << 10;
constexpr size_t kMaxRank = 32;
constexpr const char* kRewrite = "write it again with numpy.save";

struct Fields {
  std::string descr;
  bool fortran = false;
  Shape shape;
};

// Parses '{' (string ':' value ','?)* '}' by recursive descent.
class DictParser {
 public:
  // `first` is the offset of the text in the file.
  DictParser(std::string_view text, const std::string& where, int64_t first)
      : text_(text), where_(where), first_(first) {}

  Fields parse() {
    Fields fields;
    unsigned seen = 0;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      const unsigned bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
      if (bit == 0) fail("unknown key '" + key.substr(0, 40) + "'");
      if ((seen & bit) != 0) fail("key '" + key + "' appears twice");
      seen |= bit;
      if (bit == 1) fields.descr = descr();
      if (bit == 2) fields.fortran = boolean();
      if (bit == 4) fields.shape = shape();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (seen != 7) fail("descr, fortran_order or shape is missing");
    skip_blank();
    if (at_ != text_.size()) fail("text follows the dictionary");
    return fields;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(place(), "bad .npy header: " + what, kRewrite);
  }

  std::string place() const { return where_ + " at byte " + std::to_string(first_ + static_cast<int64_t>(at_)); }

  void skip_blank() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }

  char peek() {
    skip_blank();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'");
  }

  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a string");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string does not end");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    if (value.find('\\') != std::string_view::npos) fail("a string holds an escape");
    at_ = end + 1;
    return std::string(value);
  }

  std::string descr() {
    if (peek() == '[' || peek() == '(') {
      throw UserError(place(), "holds records (a structured array)", "save each field as an array of its own");
    }
    return string();
  }

  bool boolean() {
    skip_blank();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    }
    fail("fortran_order must be True or False");
  }

  int64_t dimension() {
    skip_blank();
    int64_t value = 0;
    const char* end = text_.data() + text_.size();
    const auto [next, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc() || value < 0) fail("a dimension is not a whole number in range");
    at_ = static_cast<size_t>(next - text_.data());
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers with an L
    return value;
  }

  Shape shape() {
    Shape dims;
    expect('(');
    while (!accept(')')) {
      if (dims.size() == kMaxRank) fail("more than 32 dimensions");
      dims.push_back(dimension());
      if (!accept(',')) {
        // "(3)" is a number in Python, not a shape. A shape of one dimension is written "(3,)".
        if (dims.size() == 1) fail("shape is not a tuple");
        expect(')');
        break;
      }
    }
    return dims;
  }

  std::string_view text_;
  const std::string& where_;
  int64_t first_;
  size_t at_ = 0;
};

void read_exactly(ByteStream& stream, void* to, int64_t bytes, const std::string& where) {
  if (stream.read(to, bytes) != bytes) throw UserError(where, "the .npy header is cut off", kRewrite);
}

std::string at_byte(const std::string& where, int64_t byte) { return where + " at byte " + std::to_string(byte); }

}  // namespace

NpyType parse_npy_type(const std::string& descr, const std::string& where) {
  const auto refuse = [&](const std::string& what, const std::string& remedy) {
    throw UserError(where, "holds " + what + " (dtype '" + descr.substr(0, 40) + "')", remedy);
  };
  std::string_view text = descr;
  NpyType type;
  if (!text.empty() && std::strchr("<>|=", text[0]) != nullptr) {
    type.swap = text[0] == '>';
    text.remove_prefix(1);
  }
  if (text == "O" || text == "O8" || text == "O4") {
    refuse("Python objects", "they could run code when read: convert with astype to a numeric type");
  }
  if (text == "?") text = "b1";
  type.kind = text.empty() ? '\0' : text[0];
  type.size = 0;
  if (!text.empty()) std::from_chars(text.data() + 1, text.data() + text.size(), type.size);
  const bool plain = text.size() == 2 && (type.size == 1 || type.size == 2 || type.size == 4 || type.size == 8);
  const bool known = plain && ((type.kind == 'f' && type.size >= 2) || type.kind == 'i' || type.kind == 'u' ||
                               (type.kind == 'b' && type.size == 1));
  if (!known) {
    refuse(type.kind == 'U' || type.kind == 'S' ? "text" : "an unsupported element type",
           "convert with astype to a float, integer or boolean type");
  }
  return type;
}

// Dimensions of 0 are skipped, so that no partial product can overflow unnoticed.
int64_t checked_npy_count(const Shape& shape, int element_size) {
  int64_t bytes = element_size;
  bool empty = false;
  for (const int64_t d : shape) {
    empty = empty || d == 0;
    if (d != 0 && __builtin_mul_overflow(bytes, d, &bytes)) return -1;
  }
  return empty ? 0 : bytes / element_size;
}

NpyHeader read_npy_header(ByteStream& stream, int64_t total_bytes, const std::string& where) {
  unsigned char prefix[12] = {};
  if (total_bytes < 10) throw UserError(at_byte(where, total_bytes), "is too short for an .npy array", kRewrite);
  read_exactly(stream, prefix, 8, at_byte(where, total_bytes));
  if (std::memcmp(prefix, "\x93NUMPY", 6) != 0) throw UserError(at_byte(where, 0), "is not an .npy array", kRewrite);
  const int version = prefix[6];
  if (version < 1 || version > 3 || prefix[7] != 0) {
    throw UserError(at_byte(where, 6),
                    "unknown .npy version " + std::to_string(version) + "." + std::to_string(prefix[7]), kRewrite);
  }
  const int64_t length_bytes = version == 1 ? 2 : 4;
  read_exactly(stream, prefix + 8, length_bytes, at_byte(where, total_bytes));
  int64_t length = prefix[8] | (prefix[9] << 8);
  if (version > 1) length |= (int64_t{prefix[10]} << 16) | (int64_t{prefix[11]} << 24);
  const int64_t data_offset = 8 + length_bytes + length;
  if (length > kMaxHeader) {
    throw UserError(at_byte(where, 8),
                    "the .npy header claims to be " + human_bytes(static_cast<double>(length)) + " long", kRewrite);
  }
  if (data_offset > total_bytes) throw UserError(at_byte(where, total_bytes), "the .npy header is cut off", kRewrite);
  std::string text(static_cast<size_t>(length), '\0');
  read_exactly(stream, text.data(), length, at_byte(where, total_bytes));

  Fields fields = DictParser(text, where, 8 + length_bytes).parse();
  NpyHeader header;
  header.type = parse_npy_type(fields.descr, at_byte(where, 8 + length_bytes));
  header.fortran = fields.fortran;
  header.shape = std::move(fields.shape);
  header.count = checked_npy_count(header.shape, header.type.size);
  header.data_offset = data_offset;
  const int64_t held = total_bytes - data_offset;
  if (header.count < 0 || header.data_bytes() != held) {
    throw UserError(at_byte(where, data_offset),
                    "shape " + shape_text(header.shape) + " of " + npy_type_name(header.type) + " does not fit the " +
                        human_count(held) + " bytes that follow the header",
                    "the array is truncated or damaged: " + std::string(kRewrite));
  }
  return header;
}

std::string npy_type_name(const NpyType& type) {
  if (type.kind == 'b') return "bool";
  return std::string(1, type.kind) + std::to_string(type.size * 8);
}

}  // namespace nacre
