#include "support/emulator/translate.h"

#include <cctype>
#include <set>
#include <vector>

#include "nacre/base/error.h"

namespace nacre::emulator {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns the position behind the bracket that closes the opening one at `at`. Brackets in strings
// do not count.
size_t behind_bracket(const std::string& text, size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '"') {
      while (++at < text.size() && text[at] != '"') at += text[at] == '\\';
    } else if (text[at] == '(') {
      ++depth;
    } else if (text[at] == ')' && --depth == 0) {
      return at + 1;
    }
  }
  throw InternalError(__FILE__, __LINE__, "an asm statement does not end");
}

// Describes an asm statement: its text, and the expressions that it writes and reads.
struct Instruction {
  std::string text;
  std::vector<std::string> out, in;
  std::string name() const { return text.substr(0, text.find_first_of(" ;")); }
};

Instruction parse(const std::string& inside) {
  Instruction found;
  int section = 0;
  for (size_t at = 0; at < inside.size(); ++at) {
    if (inside[at] == ':') {
      ++section;
    } else if (inside[at] == '"') {
      const size_t end = inside.find('"', at + 1);
      if (section == 0) found.text += inside.substr(at + 1, end - at - 1);
      at = end;
    } else if (inside[at] == '(') {
      const size_t end = behind_bracket(inside, at);
      (section == 1 ? found.out : found.in).push_back(inside.substr(at, end - at));
      at = end - 1;
    }
  }
  return found;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// Returns the call that does what the instruction does, or "(void)0" if the instruction does
// nothing in the emulator.
std::string call_of(const Instruction& asked, const std::string& kernel) {
  const std::string name = asked.name();
  const auto is = [&](const char* start) { return name.rfind(start, 0) == 0; };
  if (is("cp.async.cg.shared.global") || is("cp.async.ca.shared.global")) {
    const size_t at = asked.text.find("[%1], ") + 6;
    const std::string room = asked.text.substr(at, asked.text.find(',', at) - at);
    return "nacre_cp_async(" + asked.in[0] + ", " + asked.in[1] + ", " + room + ", " + asked.in[2] + ")";
  }
  if (is("cp.async.commit_group")) return "nacre_cp_async_commit()";
  if (is("cp.async.wait_group")) return "nacre_cp_async_wait(" + joined(asked.in) + ")";
  if (is("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")) {
    return "nacre_mma(nacre_sums(" + joined(asked.out) + "), " + joined(asked.in) + ")";
  }
  if (is("wgmma.mma_async.sync.aligned.m64n") && name.find("k8.f32.tf32.tf32") != std::string::npos) {
    return "nacre_wgmma(nacre_sums(" + joined(asked.out) + "), " + joined(asked.in) + ")";
  }
  if (is("cvt.rn.bf16x2.f32")) return "nacre_bf16x2(" + joined(asked.out) + ", " + joined(asked.in) + ")";
  if (asked.text.find("%%smid") != std::string::npos) return "nacre_multiprocessor(" + joined(asked.out) + ")";
  // These instructions do nothing in the emulator: products are finished when their call returns,
  // and there are no caches.
  for (const char* nothing :
       {"wgmma.fence", "wgmma.commit_group", "wgmma.wait_group", "fence.proxy.async", "prefetch."}) {
    if (is(nothing)) return "(void)0";
  }
  throw InternalError(__FILE__, __LINE__, kernel + " cannot be emulated: it uses the instruction " + name);
}

std::string replace_instructions(const std::string& source, const std::string& kernel) {
  std::string out;
  size_t from = 0;
  for (size_t at = source.find("asm"); at != std::string::npos; at = source.find("asm", at + 3)) {
    if ((at > 0 && is_word(source[at - 1])) || is_word(source[at + 3])) continue;
    size_t open = source.find_first_not_of(' ', at + 3);
    if (source.compare(open, 8, "volatile") == 0) open = source.find_first_not_of(' ', open + 8);
    if (source[open] != '(') continue;
    const size_t end = behind_bracket(source, open);
    out += source.substr(from, at - from) + call_of(parse(source.substr(open + 1, end - open - 2)), kernel);
    from = end;
    at = end;
  }
  return out + source.substr(from);
}

// Turns "__shared__ T name[2][N];" into a reference into the block's memory, and "extern __shared__
// T name[];" into a pointer.
std::string replace_shared(const std::string& source) {
  constexpr const char* kWord = "__shared__";
  std::string out;
  size_t from = 0;
  int number = 0;
  for (size_t at = source.find(kWord); at != std::string::npos; at = source.find(kWord, at + 1)) {
    const size_t end = source.find(';', at);
    std::string declared = source.substr(at + 10, end - at - 10);
    if (const size_t align = declared.find("__align__("); align != std::string::npos) {
      declared.erase(align, declared.find(')', align) + 1 - align);
    }
    const size_t bracket = std::min(declared.find('['), declared.size());
    size_t name_end = declared.find_last_not_of(' ', bracket - 1) + 1;
    size_t name_begin = name_end;
    while (name_begin > 0 && is_word(declared[name_begin - 1])) --name_begin;
    const std::string name = declared.substr(name_begin, name_end - name_begin);
    const std::string type = declared.substr(0, name_begin);
    const size_t word_extern = source.rfind("extern", at);
    const bool dynamic = word_extern != std::string::npos && source.find_first_not_of(' ', word_extern + 6) == at;
    out += source.substr(from, (dynamic ? word_extern : at) - from);
    if (dynamic) {
      out += type + "* " + name + " = (" + type + "*)nacre_shared(0, 0)";
    } else {
      const std::string alias = "nacre_shared_" + std::to_string(++number);
      out += "typedef " + type + " " + alias + declared.substr(bracket) + "; " + alias + "& " + name + " = *(" + alias +
             "*)nacre_shared(" + std::to_string(number) + ", sizeof(" + alias + "))";
    }
    from = end;
    at = end;
  }
  return out + source.substr(from);
}

// Returns the names of kernels. A kernel's name stands before the bracket after __global__, or
// after a macro whose text has __global__.
std::set<std::string> kernels_of(const std::string& source) {
  std::set<std::string> marks = {"__global__"}, names;
  for (size_t at = source.find("#define "); at != std::string::npos; at = source.find("#define ", at + 1)) {
    const std::string line = source.substr(at + 8, source.find('\n', at) - at - 8);
    if (line.find("__global__") == std::string::npos) continue;
    marks.insert(line.substr(0, line.find_first_of(" (")));
  }
  for (const std::string& mark : marks) {
    for (size_t at = source.find(mark); at != std::string::npos; at = source.find(mark, at + 1)) {
      const size_t line = source.rfind('\n', at) + 1;
      if (source.compare(line, 8, "#define ") == 0) continue;
      size_t open = source.find('(', at);
      const size_t bounds = source.find("__launch_bounds__", at);
      if (bounds < open) open = source.find('(', behind_bracket(source, open));
      if (open == std::string::npos) continue;
      size_t begin = open;
      while (begin > 0 && is_word(source[begin - 1])) --begin;
      if (begin < open) names.insert(source.substr(begin, open - begin));
    }
  }
  return names;
}

}  // namespace

std::string translate(const std::string& source, const std::string& name, int arch) {
  std::string text = "#include \"cuda_shim.h\"\n#define __CUDA_ARCH__ " + std::to_string(arch * 10) + "\n";
  text +=
      "extern \"C\" __attribute__((visibility(\"default\"))) const int nacre_arch = " + std::to_string(arch) + ";\n";
  if (arch == 90) text += "#define __CUDA_ARCH_FEAT_SM90_ALL 1\n";
  text += "#line 1 \"" + name + ".cu\"\n";
  text += replace_shared(replace_instructions(source, name)) + "\n";
  for (const std::string& kernel : kernels_of(source)) text += "NACRE_ENTRY(" + kernel + ")\n";
  return text;
}

}  // namespace nacre::emulator
