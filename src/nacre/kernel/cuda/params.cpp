#include "nacre/kernel/cuda/params.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre::cuda {
namespace {

constexpr size_t kLineLength = 120;
constexpr std::string_view kOperands = "operands";

std::string declaration(std::string_view type, std::string_view name, std::string_view suffix = "") {
  return std::string(type).append(" ").append(name).append(suffix);
}

}  // namespace

void Signature::add(std::string_view params, size_t fields) {
  if (params == kOperands && !parts_.empty() && parts_.back().params == kOperands) {
    parts_.back().fields += fields;
  } else if (fields > 0) {
    parts_.push_back({params, fields});
  }
}

void Signature::add_operands(size_t count) { add(kOperands, count); }

std::string Signature::text() const {
  std::string text;
  for (const Part& part : parts_) {
    if (!text.empty()) text += ", ";
    if (part.params == kOperands) text += std::to_string(part.fields) + " ";
    text += part.params;
  }
  return text.empty() ? "nothing" : text;
}

std::string parameter_text(std::span<const ParamField> fields) {
  std::string text;
  for (const ParamField& field : fields) text += (text.empty() ? "" : ", ") + declaration(field.type, field.name);
  return text;
}

std::string struct_text(std::string_view name, std::span<const StructMembers> members) {
  // The declaration is one line; if that is too long, each type has a line of its own.
  std::string line = "struct " + std::string(name) + " {", lines = line + "\n";
  for (const StructMembers& m : members) {
    line += " " + declaration(m.type, m.names) + ";";
    lines += "  " + declaration(m.type, m.names) + ";\n";
  }
  line += " };\n";
  return line.size() <= kLineLength + 1 ? line : lines + "};\n";
}

Entry& Entry::takes(std::string_view params, std::span<const ParamField> fields, const std::string& suffix) {
  for (const ParamField& field : fields) {
    parameters_.push_back(declaration(field.type, field.name, suffix));
    if (field.pointer) continue;
    const std::string bytes = std::to_string(field.bytes);
    const std::string check = "static_assert(sizeof(" + std::string(field.type) + ") == " + bytes + ", \"" +
                              std::string(params) + " passes " + bytes + " bytes\");\n";
    if (checks_.find(check) == std::string::npos) checks_ += check;
  }
  signature_.add(params, fields.size());
  return *this;
}

Entry& Entry::operand(std::string_view type, const std::string& name) {
  parameters_.push_back(declaration(type, name));
  signature_.add_operands(1);
  return *this;
}

std::string Entry::text() const {
  const std::string bounds = bounds_.empty() ? "" : "__launch_bounds__(" + bounds_ + ") ";
  std::string text = checks_ + "extern \"C\" __global__ void " + bounds + name_ + "(";
  size_t line = kLineLength;  // the parameters begin on a line of their own
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::string one = parameters_[i] + (i + 1 < parameters_.size() ? "," : ")");
    if (line + 1 + one.size() + 2 > kLineLength) {
      text += "\n   ";
      line = 3;
    }
    text += " " + one;
    line += 1 + one.size();
  }
  return text;
}

Source Entry::source(std::string_view pattern, int threads, int64_t shared_bytes) const {
  const size_t at = pattern.find(kEntryMark);
  NACRE_CHECK(at != std::string_view::npos, "the text of " + name_ + " has no place for its head");
  Source s;
  s.name = name_;
  s.text = std::string(pattern.substr(0, at)) + text() + std::string(pattern.substr(at + std::strlen(kEntryMark)));
  s.threads = threads;
  s.shared_bytes = shared_bytes;
  s.takes = signature_;
  return s;
}

void LaunchParams::put(const void* value, size_t bytes) {
  uint64_t word = 0;
  std::memcpy(&word, value, bytes);
  words_.push_back(word);
}

LaunchParams& LaunchParams::operands(std::span<void* const> list) {
  for (void* const operand : list) put(&operand, sizeof operand);
  signature_.add_operands(list.size());
  return *this;
}

std::vector<void*> LaunchParams::pointers() {
  std::vector<void*> list;
  list.reserve(words_.size());
  for (uint64_t& word : words_) list.push_back(&word);
  return list;
}

void check_params(const Source& source, const LaunchParams& params) {
  NACRE_CHECK(source.takes == params.signature(), "the kernel " + source.name + " takes " + source.takes.text() +
                                                      " and was given " + params.signature().text());
}

}  // namespace nacre::cuda
