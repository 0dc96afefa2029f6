#include "nacre/data/formats/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {
namespace {

// Lists all names that a pickle may use. Names that have moved are listed with their old and their
// new module.
constexpr std::array<std::string_view, 27> kNames = {
    "numpy.core.multiarray _reconstruct",
    "numpy._core.multiarray _reconstruct",
    "numpy ndarray",
    "numpy dtype",
    "scipy.sparse.csr csr_matrix",
    "scipy.sparse._csr csr_matrix",
    "collections defaultdict",
    "collections OrderedDict",
    "__builtin__ list",
    "builtins list",
    "__builtin__ object",
    "builtins object",
    "copy_reg _reconstructor",
    "copyreg _reconstructor",
    "_codecs encode",
    "torch._utils _rebuild_tensor_v2",
    "torch LongStorage",
    "torch IntStorage",
    "torch ShortStorage",
    "torch CharStorage",
    "torch ByteStorage",
    "torch BoolStorage",
    "torch FloatStorage",
    "torch DoubleStorage",
    "torch HalfStorage",
    "numpy.core.multiarray scalar",
    "numpy._core.multiarray scalar",
};

}  // namespace

class PickleParser {
 public:
  explicit PickleParser(Pickle& pickle)
      : p_(pickle),
        begin_(reinterpret_cast<const char*>(pickle.bytes_.data())),
        at_(begin_),
        end_(begin_ + pickle.bytes_.size()) {}

  void parse() {
    if (p_.bytes_.size() >= 0xFFFFFFF0U)
      throw UserError(p_.where_, "is too large", "pickles of at most 4 GiB are supported");
    while (true) {
      op_at_ = at_;
      const auto op = static_cast<unsigned char>(*take(1));
      if (op == '.') break;
      step(op);
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("the pickle ends with more or less than one value");
    p_.root_ = stack_[0];
  }

 private:
  using Kind = Pickle::Kind;
  using Id = Pickle::Id;
  using Value = Pickle::Value;

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(p_.where_ + " at byte " + std::to_string(op_at_ - begin_), what,
                    "the pickle is damaged, or not of the kind this format uses");
  }

  const char* take(int64_t bytes) {
    if (bytes > end_ - at_) fail("the pickle is cut off");
    return std::exchange(at_, at_ + bytes);
  }

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }

  std::string_view line() {
    const void* found = at_ == end_ ? nullptr : std::memchr(at_, '\n', static_cast<size_t>(end_ - at_));
    if (found == nullptr) fail("the pickle is cut off");
    const char* first = at_;
    at_ = static_cast<const char*>(found) + 1;
    return {first, static_cast<size_t>(at_ - first - 1)};
  }

  Id make(const Value& value) {
    p_.values_.push_back(value);
    p_.values_.back().offset = static_cast<uint32_t>(op_at_ - begin_);
    return static_cast<Id>(p_.values_.size() - 1);
  }

  void push(const Value& value) { stack_.push_back(make(value)); }

  void push_pool(Kind kind, std::vector<Id> items) {
    p_.pools_.push_back(std::move(items));
    push({.kind = kind, .pool = static_cast<uint32_t>(p_.pools_.size() - 1)});
  }

  void push_integer(int64_t value) { push({.kind = Kind::integer, .number = value}); }

  void push_text(int64_t length) {
    if (length < 0) fail("a string has a negative length");
    push({.kind = Kind::text, .number = length, .begin = take(length)});
  }

  // Removes the value at the top of the stack and returns it. Values below the last mark belong to
  // what was begun before the mark, so pop() does not take them.
  Id pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("an instruction takes a value that is not there");
    const Id id = stack_.back();
    stack_.pop_back();
    return id;
  }

  Id top() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("an instruction needs a value that is not there");
    return stack_.back();
  }

  std::vector<Id> pop_to_mark() {
    if (marks_.empty()) fail("an instruction needs a mark that is not there");
    const auto first = stack_.begin() + static_cast<int64_t>(marks_.back());
    std::vector<Id> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  std::vector<Id>& pool_of(Id id, Kind kind) {
    if (p_.kind(id) != kind)
      fail(kind == Kind::list ? "an instruction appends to a value that is not a list"
                              : "an instruction sets items of a value that is not a dictionary");
    return p_.pools_[p_.at(id).pool];
  }

  void extend(Kind kind, const std::vector<Id>& items) {
    if (kind == Kind::dict && items.size() % 2 != 0) fail("an instruction sets a key without a value");
    std::vector<Id>& to = pool_of(top(), kind);
    to.insert(to.end(), items.begin(), items.end());
  }

  void push_tuple(int count) {
    std::vector<Id> items(count);
    for (int i = count - 1; i >= 0; --i) items[i] = pop();
    push_pool(Kind::tuple, std::move(items));
  }

  void push_global(std::string_view module, std::string_view name) {
    const std::string whole = std::string(module.substr(0, 60)) + " " + std::string(name.substr(0, 60));
    const auto* found = std::find(kNames.begin(), kNames.end(), whole);
    if (found == kNames.end()) fail("the pickle names '" + printable(whole) + "', which this reader does not know");
    push({.kind = Kind::global, .number = static_cast<int64_t>(found->size()), .begin = found->data()});
  }

  static std::string printable(std::string text) {
    for (char& c : text) c = c >= 32 && c < 127 ? c : '?';
    return text;
  }

  // Pushes an object that holds a function or class and its arguments, instead of calling anything.
  // For a class of `collections`, pushes an empty dictionary.
  void push_object() {
    const Id arguments = pop();
    const Id callable = pop();
    if (p_.kind(callable) != Kind::global || p_.kind(arguments) != Kind::tuple)
      fail("an instruction calls a value that is not a function");
    const std::string_view name = p_.text(callable);
    if (name.starts_with("collections ")) return push_pool(Kind::dict, {});
    push_pool(Kind::object, {callable, arguments, make({})});
  }

  void build() {
    const Id state = pop();
    if (p_.kind(top()) == Kind::dict) return;  // attributes of a dictionary are ignored
    if (p_.kind(top()) != Kind::object) fail("an instruction sets the state of a value that has none");
    p_.pools_[p_.at(top()).pool][2] = state;
  }

  // Pushes an integer of Python, which may have any length and is little-endian. At most 64 bits
  // are supported.
  void push_long(int64_t length) {
    const char* bytes = take(length);
    if (length > 8) fail("an integer has more than 64 bits");
    uint64_t value = length > 0 && (bytes[length - 1] & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (int64_t i = length - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    push_integer(static_cast<int64_t>(value));
  }

  void push_written_integer(bool is_long) {
    std::string_view digits = line();
    if (!is_long && (digits == "00" || digits == "01"))
      return push({.kind = Kind::boolean, .number = digits == "01" ? 1 : 0});
    if (is_long && digits.ends_with('L')) digits.remove_suffix(1);
    int64_t value = 0;
    const auto [next, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || next != digits.data() + digits.size()) fail("an integer cannot be parsed");
    push_integer(value);
  }

  void push_real() {
    auto bits = number<uint64_t>();
    bits = __builtin_bswap64(bits);
    push({.kind = Kind::real, .real = std::bit_cast<double>(bits)});
  }

  void get(uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) fail("an instruction refers to a value that was not kept");
    stack_.push_back(found->second);
  }

  void step(unsigned char op);
  bool step_string(unsigned char op);
  bool step_container(unsigned char op);

  Pickle& p_;
  const char* begin_;
  const char* at_;
  const char* end_;
  const char* op_at_ = nullptr;
  std::vector<Id> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, Id> memo_;
};

bool PickleParser::step_string(unsigned char op) {
  switch (op) {
    case 'U':   // SHORT_BINSTRING
    case 'C':   // SHORT_BINBYTES
    case 0x8C:  // SHORT_BINUNICODE
      push_text(number<uint8_t>());
      return true;
    case 'T':  // BINSTRING
      push_text(number<int32_t>());
      return true;
    case 'B':  // BINBYTES
    case 'X':  // BINUNICODE
      push_text(number<uint32_t>());
      return true;
    case 0x8E: {  // BINBYTES8
      const auto length = number<uint64_t>();
      if (length > static_cast<uint64_t>(end_ - at_)) fail("the pickle is cut off");
      push_text(static_cast<int64_t>(length));
      return true;
    }
    default:
      return false;
  }
}

bool PickleParser::step_container(unsigned char op) {
  switch (op) {
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case ')':
      push_pool(Kind::tuple, {});
      return true;
    case ']':
      push_pool(Kind::list, {});
      return true;
    case '}':
      push_pool(Kind::dict, {});
      return true;
    case 't':
      push_pool(Kind::tuple, pop_to_mark());
      return true;
    case 0x85:
    case 0x86:
    case 0x87:
      push_tuple(op - 0x84);
      return true;
    case 'a': {
      const Id item = pop();
      extend(Kind::list, {item});
      return true;
    }
    case 'e':
      extend(Kind::list, pop_to_mark());
      return true;
    case 's': {
      const Id value = pop();
      const Id key = pop();
      extend(Kind::dict, {key, value});
      return true;
    }
    case 'u':
      extend(Kind::dict, pop_to_mark());
      return true;
    default:
      return false;
  }
}

void PickleParser::step(unsigned char op) {
  if (step_string(op) || step_container(op)) return;
  switch (op) {
    case 0x80: {  // PROTO
      const auto protocol = number<uint8_t>();
      if (protocol > 5) fail("protocol " + std::to_string(protocol) + " is not supported");
      return;
    }
    case 0x95:  // FRAME
      take(8);
      return;
    case 'N':
      return push({});
    case 0x88:
    case 0x89:
      return push({.kind = Kind::boolean, .number = op == 0x88 ? 1 : 0});
    case 'I':
    case 'L':
      return push_written_integer(op == 'L');
    case 'J':
      return push_integer(number<int32_t>());
    case 'K':
      return push_integer(number<uint8_t>());
    case 'M':
      return push_integer(number<uint16_t>());
    case 0x8A:
      return push_long(number<uint8_t>());
    case 'G':
      return push_real();
    case 'q':
      memo_[number<uint8_t>()] = top();
      return;
    case 'r':
      memo_[number<uint32_t>()] = top();
      return;
    case 0x94:
      memo_[static_cast<uint32_t>(memo_.size())] = top();
      return;
    case 'h':
      return get(number<uint8_t>());
    case 'j':
      return get(number<uint32_t>());
    case 'c': {
      const std::string_view module = line();
      return push_global(module, line());
    }
    case 0x93: {
      const Id name = pop();
      const Id module = pop();
      return push_global(p_.text(module), p_.text(name));
    }
    case 'R':
    case 0x81:
      return push_object();
    case 'b':
      return build();
    case 'Q': {  // a value stored outside the pickle is represented by its name
      const Id id = pop();
      stack_.push_back(id);
      return;
    }
    default:
      fail("opcode " + std::to_string(op) + " is not supported");
  }
}

Pickle::Pickle(std::span<const std::byte> bytes, std::string where, std::shared_ptr<const void> owner)
    : bytes_(bytes), where_(std::move(where)), owner_(std::move(owner)) {
  PickleParser(*this).parse();
}

Pickle::Pickle(const std::shared_ptr<const MappedFile>& file) : Pickle(file->bytes(), file->name(), file) {}

}  // namespace nacre
