// The text form of a DFG. There is one line for each node:
//   %7 = index_add(%6) : v1[256] attr=dst
//   %0 = input : v0[128] name=x
// Then come lines `output NAME %i` and `update NAME %i`. `#` starts a comment. Fields that hold
// their default are not printed.
#include <cctype>
#include <charconv>
#include <sstream>

#include "nacre/base/error.h"
#include "nacre/dfg/dfg.h"

namespace nacre {
namespace {

constexpr std::string_view kInits[] = {"zeros", "ones", "glorot", "uniform_fan_in", "constant"};

// Returns the shortest text that reads back as the same double.
std::string number_text(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::string node_text(const Node& node) {
  std::string text(op_info(node.op).name);
  if (!node.inputs.empty()) {
    text += "(";
    for (size_t i = 0; i < node.inputs.size(); ++i) text += (i ? ", %" : "%") + std::to_string(node.inputs[i]);
    text += ")";
  }
  text += " : " + type_text(node.type);
  if (node.attr != Attr::none) text += " attr=" + std::string(attr_name(node.attr));
  if (node.alpha != 0) text += " alpha=" + number_text(node.alpha);
  if (!node.ints.empty()) {
    text += " ints=";
    for (size_t i = 0; i < node.ints.size(); ++i) text += (i ? "," : "") + std::to_string(node.ints[i]);
  }
  if (node.salt != 0) text += " salt=" + std::to_string(node.salt);
  if (node.init != Init::zeros) text += " init=" + std::string(kInits[static_cast<size_t>(node.init)]);
  if (node.state) text += " state=1";
  if (!node.name.empty()) text += " name=" + node.name;
  return text;
}

class Line {
 public:
  Line(std::string_view text, int number) : text_(text), number_(number) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError("dfg text, line " + std::to_string(number_), what);
  }
  void spaces() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\t')) text_.remove_prefix(1);
  }
  bool done() {
    spaces();
    return text_.empty();
  }
  bool accept(char c) {
    spaces();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "' before '" + std::string(text_.substr(0, 12)) + "'");
  }
  // Reads a word of letters, digits and the few signs that names use.
  std::string_view word() {
    spaces();
    size_t n = 0;
    while (n < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[n])) || text_[n] == '_' ||
                                text_[n] == '.' || text_[n] == '-' || text_[n] == '+')) {
      ++n;
    }
    if (n == 0) fail("expected a word before '" + std::string(text_.substr(0, 12)) + "'");
    const std::string_view w = text_.substr(0, n);
    text_.remove_prefix(n);
    return w;
  }
  // Reads up to the next blank.
  std::string_view token() {
    spaces();
    const size_t n = std::min(text_.find(' '), text_.size());
    if (n == 0) fail("expected a value");
    const std::string_view t = text_.substr(0, n);
    text_.remove_prefix(n);
    return t;
  }
  template <class T>
  T number(std::string_view digits) const {
    T value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) fail("bad number '" + std::string(digits) + "'");
    return value;
  }
  template <class T>
  T number() {
    return number<T>(word());
  }
  NodeRef ref() {
    expect('%');
    return number<int>();
  }

  // Fails if the line goes on.
  void end() {
    if (!done()) fail("unexpected '" + std::string(text_.substr(0, 12)) + "'");
  }

  ValueType type() {
    ValueType t;
    const std::string_view space = word();
    if (space == "p") {
      t.space = Space::param();
    } else if (space == "t") {
      t.space = Space::type();
    } else if (space[0] == 'v') {
      t.space = Space::vertex(number<int>(space.substr(1)));
    } else if (space[0] == 'h') {
      t.space = Space::halo(number<int>(space.substr(1)));
    } else if (space[0] == 'e') {
      t.space = Space::edge(number<int>(space.substr(1)));
    } else if (space[0] == 's') {
      t.space = Space::pair_src(number<int>(space.substr(1)));
    } else if (space[0] == 'd') {
      t.space = Space::pair_dst(number<int>(space.substr(1)));
    } else if (space[0] == 'r') {
      t.space = Space::rows(number<int64_t>(space.substr(1)));
    } else if (space[0] == 'k') {
      t.space = Space::of_kind(number<int64_t>(space.substr(1)));
    } else {
      fail("unknown space '" + std::string(space) + "'");
    }
    if (t.space.layer < 0) fail("the layer is negative");
    expect('[');
    if (!accept(']')) {
      do t.dims.push_back(number<int64_t>());
      while (accept(','));
      expect(']');
    }
    if (!text_.empty() && text_[0] == ':') {
      text_.remove_prefix(1);
      t.dtype = named(parse_dtype, word());
    }
    return t;
  }

  Node node() {
    Node n;
    n.op = named(parse_op, word());
    if (accept('(')) {
      do n.inputs.push_back(ref());
      while (accept(','));
      expect(')');
    }
    expect(':');
    n.type = type();
    while (!done()) field(n);
    return n;
  }

 private:
  // Returns the enumerator of a name; an unknown name is reported with this line.
  template <class T>
  T named(T (*parse)(std::string_view), std::string_view name) const {
    try {
      return parse(name);
    } catch (const UserError& error) {
      fail(error.what());
    }
  }

  void field(Node& n) {
    const std::string_view key = word();
    expect('=');
    const std::string_view value = token();
    if (key == "attr") {
      n.attr = named(parse_attr, value);
    } else if (key == "alpha") {
      n.alpha = number<double>(value);
    } else if (key == "ints") {
      for (size_t from = 0; from <= value.size();) {
        const size_t to = std::min(value.find(',', from), value.size());
        n.ints.push_back(number<int64_t>(value.substr(from, to - from)));
        from = to + 1;
      }
    } else if (key == "salt") {
      n.salt = number<uint64_t>(value);
    } else if (key == "init") {
      size_t i = 0;
      while (i < std::size(kInits) && kInits[i] != value) ++i;
      if (i == std::size(kInits)) fail("unknown initialiser '" + std::string(value) + "'");
      n.init = static_cast<Init>(i);
    } else if (key == "state") {
      if (value != "1") fail("state must be 1 or be left out");
      n.state = true;
    } else if (key == "name") {
      n.name = value;
    } else {
      fail("unknown field '" + std::string(key) + "'");
    }
  }

  std::string_view text_;
  int number_;
};

void parse_node(Line& line, Dfg& dfg) {
  if (line.number<int>() != dfg.size()) line.fail("nodes must be numbered in order");
  line.expect('=');
  const Node node = line.node();
  NodeRef i = -1;
  try {
    i = dfg.add(node);
  } catch (const UserError& error) {
    line.fail(error.what());
  }
  if (dfg[i].type != node.type) line.fail("the type should be " + type_text(dfg[i].type));
}

// Parses `output NAME %i` and `update NAME %i`.
void parse_result(Line& line, Dfg& dfg) {
  const std::string_view kind = line.word();
  const std::string name(line.token());
  const NodeRef node = line.ref();
  line.end();
  if (node < 0 || node >= dfg.size()) line.fail("refers to a node that does not exist");
  if (kind == "output") {
    if (dfg.find_output(name) >= 0) line.fail("output '" + name + "' is named twice");
    dfg.set_output(name, node);
  } else if (kind == "update") {
    const NodeRef leaf = dfg.find_leaf(name);
    if (leaf < 0 || !dfg[leaf].state) line.fail("'" + name + "' is not a state parameter");
    if (dfg[leaf].type != dfg[node].type) line.fail("the update of '" + name + "' has another type");
    for (const auto& [updated, value] : dfg.updates()) {
      if (updated == name) line.fail("the update of '" + name + "' is named twice");
    }
    dfg.set_update(name, node);
  } else {
    line.fail("expected a node, an output or an update");
  }
}

}  // namespace

std::string print_dfg(const Dfg& dfg) {
  std::string text = "dfg " + dfg.name() + "\n";
  for (int i = 0; i < dfg.size(); ++i) text += "%" + std::to_string(i) + " = " + node_text(dfg[i]) + "\n";
  for (const auto& [name, node] : dfg.outputs()) text += "output " + name + " %" + std::to_string(node) + "\n";
  for (const auto& [name, node] : dfg.updates()) text += "update " + name + " %" + std::to_string(node) + "\n";
  return text;
}

Dfg parse_dfg(std::string_view text) {
  Dfg dfg;
  bool named = false;
  int number = 0;
  std::istringstream lines{std::string(text)};
  for (std::string raw; std::getline(lines, raw);) {
    Line line(std::string_view(raw).substr(0, raw.find_first_of("#\r")), ++number);
    if (line.done()) continue;
    if (!named) {
      if (line.word() != "dfg") line.fail("a DFG starts with 'dfg NAME'");
      dfg = Dfg(std::string(line.word()));
      line.end();
      named = true;
    } else if (line.accept('%')) {
      parse_node(line, dfg);
    } else {
      parse_result(line, dfg);
    }
  }
  if (!named) throw UserError("dfg text", "is empty");
  return dfg;
}

}  // namespace nacre
