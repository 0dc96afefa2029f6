// Writes the micro-ops of a row program (see emit.h).
#include <algorithm>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/dfg/random.h"
#include "nacre/kernel/cuda/emit.h"
#include "nacre/kernel/cuda/text.h"

namespace nacre::cuda {
namespace {

std::string number(int64_t x) { return std::to_string(x); }

// Fills in a text of dfg/activations.h: $x and $g are the first operand, $y is the second one, $a
// is alpha.
std::string activation_text(std::string_view text, const std::string& first, const std::string& second,
                            const std::string& alpha) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    const char name = i + 1 < text.size() ? text[++i] : '$';
    NACRE_CHECK(name == 'x' || name == 'g' || name == 'y' || name == 'a',
                "a `$` in an activation's text must be followed by x, g, y or a");
    out += name == 'a' ? alpha : name == 'y' ? second : first;
  }
  return out;
}

}  // namespace

// Returns the expression for the element of an operand that element j of the result uses; s is the
// number of element j in the thread. `repeat` elements of the result share one element of the
// operand.
std::string ProgramText::term(int r, int repeat, int u, const char* s, const char* j) const {
  if (scalar(r)) return reg(r, u);
  if (repeat == 1) return own_element(r, u, s);
  return element(r, u, std::string(j) + " / " + number(repeat));
}

std::string ProgramText::binary(const Micro& m, int u) const {
  const char* sign = m.op == MicroOp::add ? " + " : m.op == MicroOp::sub ? " - " : " * ";
  return per_element(m.out, u,
                     term(m.a, m.a_repeat, u, "${s}", "${j}") + sign + term(m.b, m.b_repeat, u, "${s}", "${j}"));
}

std::string ProgramText::unary(const Micro& m, int u) const {
  const std::string a = own_element(m.a, u, "${s}");
  const std::string b = m.b < 0 ? "" : own_element(m.b, u, "${s}");
  const std::string alpha = literal(m.alpha);
  const auto is = [&](const std::string& expression) { return per_own_element(m.out, u, expression); };
  switch (m.op) {
    case MicroOp::scale:
      return is(alpha + " * " + a);
    case MicroOp::inv:
      return is(a + " == 0.0f ? 0.0f : 1.0f / " + a);
    case MicroOp::inv_sqrt:
      return is(a + " <= 0.0f ? 0.0f : 1.0f / sqrtf(" + a + ")");
    default: {
      const ActivationInfo* row = find_activation(m.op);
      NACRE_CHECK(row != nullptr, "the micro-op has no CUDA text");
      return is(b.empty() ? activation_text(row->cuda_value, a, "", alpha)
                          : activation_text(row->cuda_gradient, a, b, alpha));
    }
  }
}

// Returns the expression for the number of a row in the whole graph, on which draws depend.
std::string ProgramText::number_of_row(int u, bool masked) const {
  std::string pos = "pos" + number(u);
  if (numbers_word() < 0) return pos;
  const std::string listed = "__ldg(ids_" + o_.name + " + " + pos + ")";
  return masked ? "(ok" + number(u) + " ? " + listed + " : 0u)" : listed;
}

std::string ProgramText::dropout_text(const Micro& m, int u, bool masked) const {
  const int64_t w = width(m.out);
  const int v = vector(w);
  const std::string out = scalar(m.out) ? "&" + reg(m.out, u) : reg(m.out, u) + " + c * " + number(v);
  const std::string in = scalar(m.a) ? "&" + reg(m.a, u) : reg(m.a, u) + " + c * " + number(v);
  return fill(R"(#pragma unroll
for (int c = 0; c < ${C}; ++c)
  dropout<${V}>(${KEY}, step[1], (u64)${ROW} * ${W} + ${AT}, ${T}u, ${F}, ${IN}, ${OUT});
)",
              {{"C", scalar(m.out) ? 1 : held(w) / v},
               {"V", v},
               {"KEY", "key_" + o_.name + number(m.out)},
               {"ROW", number_of_row(u, masked)},
               {"W", w},
               {"AT", scalar(m.out)   ? "0"
                      : o_.lanes == 1 ? "c * " + number(v)
                                      : "(c * " + number(o_.lanes) + " + lane) * " + number(v)},
               {"T", static_cast<int64_t>(dropout_threshold(m.alpha))},
               {"F", literal(static_cast<float>(1.0 / (1.0 - static_cast<double>(m.alpha))))},
               {"IN", in},
               {"OUT", out}});
}

std::string ProgramText::sum_text(const Micro& m, int u, bool masked) const {
  const int64_t w = summed_width(m);
  const int64_t groups = width(m.out);
  const auto product = [&](const char* s, const char* j) {
    std::string text = term(m.a, m.a_repeat, u, s, j);
    if (m.op == MicroOp::dot) text += " * " + term(m.b, m.b_repeat, u, s, j);
    return text;
  };
  if (w == 1) return reg(m.out, u) + " = " + product("0", "0") + ";\n";
  const int v = vector(w);
  const std::string lane = o_.lanes == 1 ? "0" : "lane";
  const bool exact = w % (static_cast<int64_t>(o_.lanes) * v) == 0;
  const std::string added = exact ? product("s", "j") : "j < " + number(w) + " ? " + product("s", "j") + " : 0.0f";
  if (groups == 1) {
    return fill(R"(${R} = 0.0f;
#pragma unroll
for (int s = 0; s < ${S}; ++s) {
  const int j = (s / ${V} * ${L} + ${lane}) * ${V} + s % ${V};
  ${R} += ${X};
}
${REDUCE})",
                {{"R", reg(m.out, u)},
                 {"S", held(w)},
                 {"V", v},
                 {"L", o_.lanes},
                 {"lane", lane},
                 {"X", added},
                 {"REDUCE", o_.lanes == 1 ? ""
                                          : fill("${R} = group_sum<${L}>(${R}, mask);\n",
                                                 {{"R", reg(m.out, u)}, {"L", o_.lanes}})}});
  }
  const int64_t size = w / groups;
  if (o_.lanes == 1 || !sums_by_shuffle(m)) {
    const auto at = [&](int r, int repeat) {
      const std::string i = "(${j} * " + number(size) + " + i)";
      return element(r, u, repeat == 1 ? i : i + " / " + number(repeat));
    };
    std::string text = at(m.a, m.a_repeat);
    if (m.op == MicroOp::dot) text += " * " + at(m.b, m.b_repeat);
    return per_own_element(m.out, u, "0.0f") + "#pragma unroll 4\nfor (int i = 0; i < " + number(size) + "; ++i) {\n" +
           indent(per_element(m.out, u, own_element(m.out, u, "${s}") + " + " + text), 1) + "}\n";
  }
  const Micro* store = stored_at_once(m);
  std::string guard = "lane % " + number(size / v) + " == 0 && g < " + number(groups);
  if (store != nullptr && masked) guard += " && ok" + number(u);
  const std::string to = store != nullptr
                             ? operand(*store) + "[(i64)" + o_.store_row + number(u) + " * " + number(groups) + " + g]"
                             : "sh[" + number(o_.shared_offset + shared_at_[m.out] + u * groups) + " + g]";
  std::string sums = fill(
      R"(#pragma unroll
for (int c = 0; c < ${C}; ++c) {
  float t = 0.0f;
#pragma unroll
  for (int s = c * ${V}; s < c * ${V} + ${V}; ++s) {
    const int j = (c * ${L} + lane) * ${V} + s % ${V};
    t += ${X};
  }
  t = group_sum<${N}>(t, mask);
  const int g = (c * ${L} + lane) / ${N};
  if (${GUARD}) ${TO} = t;
}
)",
      {{"C", held(w) / v}, {"V", v}, {"L", o_.lanes}, {"X", added}, {"N", size / v}, {"GUARD", guard}, {"TO", to}});
  if (store != nullptr) return sums;
  return "__syncwarp(mask);\n" + sums + "__syncwarp(mask);\n" + per_element(m.out, u, element(m.out, u, "${j}"));
}

std::string ProgramText::shape_text(const Micro& m, int u) const {
  const int64_t w = width(m.out);
  switch (m.op) {
    case MicroOp::expand:
      return per_element(m.out, u, term(m.a, m.a_repeat, u, "${s}", "${j}"));
    case MicroOp::concat: {
      const int64_t whole = m.a_part + m.b_part;
      const std::string group = "${j} / " + number(whole), at = "${j} % " + number(whole);
      return per_element(
          m.out, u,
          "(" + at + " < " + number(m.a_part) + " ? " + element(m.a, u, group + " * " + number(m.a_part) + " + " + at) +
              " : " + element(m.b, u, group + " * " + number(m.b_part) + " + " + at + " - " + number(m.a_part)) + ")");
    }
    case MicroOp::slice: {
      const int64_t part = w / (width(m.a) / m.a_part);
      return per_element(m.out, u,
                         element(m.a, u,
                                 "${j} / " + number(part) + " * " + number(m.a_part) + " + " + number(m.begin) +
                                     " + ${j} % " + number(part)));
    }
    default: {  // pad
      const int64_t total = w / (width(m.a) / m.a_part);
      const std::string at = "(${j} % " + number(total) + " - " + number(m.begin) + ")";
      return per_element(m.out, u,
                         "((u32)" + at + " < " + number(m.a_part) + "u ? " +
                             element(m.a, u, "${j} / " + number(total) + " * " + number(m.a_part) + " + " + at) +
                             " : 0.0f)");
    }
  }
}

// Returns the statements of normalisations and of softmax over a row.
std::string ProgramText::row_text(const Micro& m, int u) const {
  const int64_t w = width(m.out);
  const std::string a = own_element(m.a, u, "s"), b = m.b < 0 ? "" : own_element(m.b, u, "s");
  const std::string id = o_.name + number(m.out) + "_" + number(u);
  const int v = vector(w);
  const std::string lane = o_.lanes == 1 ? "0" : "lane";
  const auto reduce = [&](const std::string& name, const std::string& start, const std::string& step,
                          const std::string& how) {
    return fill(
        R"(float ${N} = ${START};
#pragma unroll
for (int s = 0; s < ${S}; ++s) {
  const int j = (s / ${V} * ${L} + ${lane}) * ${V} + s % ${V};
  if (j < ${W}) ${STEP};
}
${REDUCE})",
        {{"N", name},
         {"START", start},
         {"S", held(w)},
         {"V", v},
         {"L", o_.lanes},
         {"lane", lane},
         {"W", w},
         {"STEP", step},
         {"REDUCE",
          o_.lanes == 1 ? "" : name + " = group_" + how + "<" + number(o_.lanes) + ">(" + name + ", mask);\n"}});
  };
  const auto moments = [&](const std::string& x) {
    return reduce("mean_" + id, "0.0f", "mean_" + id + " += " + x, "sum") + "mean_" + id + " /= " + number(w) +
           ".0f;\n" +
           reduce("std_" + id, "0.0f", "{ const float d = " + x + " - mean_" + id + "; std_" + id + " += d * d; }",
                  "sum") +
           "std_" + id + " = 1.0f / sqrtf(std_" + id + " / " + number(w) + ".0f + " + literal(m.alpha) + ");\n";
  };
  const std::string as = own_element(m.a, u, "${s}"), bs = m.b < 0 ? "" : own_element(m.b, u, "${s}");
  switch (m.op) {
    case MicroOp::row_normalize:
      return moments(a) + per_own_element(m.out, u, "(" + as + " - mean_" + id + ") * std_" + id);
    case MicroOp::row_normalize_grad:
      return moments(b) + reduce("g_" + id, "0.0f", "g_" + id + " += " + a, "sum") +
             reduce("gy_" + id, "0.0f", "gy_" + id + " += " + a + " * (" + b + " - mean_" + id + ") * std_" + id,
                    "sum") +
             per_own_element(m.out, u,
                             "std_" + id + " * (" + as + " - g_" + id + " / " + number(w) + ".0f - (" + bs +
                                 " - mean_" + id + ") * std_" + id + " * gy_" + id + " / " + number(w) + ".0f)");
    case MicroOp::log_softmax:
      return reduce("top_" + id, literal(-INFINITY), "top_" + id + " = fmaxf(top_" + id + ", " + a + ")", "max") +
             reduce("sum_" + id, "0.0f", "sum_" + id + " += expf(" + a + " - top_" + id + ")", "sum") + "sum_" + id +
             " = logf(sum_" + id + ");\n" + per_own_element(m.out, u, as + " - top_" + id + " - sum_" + id);
    case MicroOp::log_softmax_grad:
      return reduce("sum_" + id, "0.0f", "sum_" + id + " += " + a, "sum") +
             per_own_element(m.out, u, as + " - expf(" + bs + ") * sum_" + id);
    default: {  // standardize: operand holds means, then variances
      const std::string p = operand(m);
      return per_element(m.out, u,
                         "(" + as + " - __ldg(" + p + " + ${j})) * (1.0f / sqrtf(__ldg(" + p + " + " + number(w) +
                             " + ${j}) + " + literal(m.alpha) + "))");
    }
  }
}

// Returns the statements of a row times a matrix, element by element, for any shape. Large products
// do not use them, but have kernels of their own.
std::string ProgramText::product_text(const Micro& m, int u) const {
  const bool transposed = is_transposed_product(m.op);
  const int64_t in = width(m.a), out = width(m.out);
  std::string matrix = operand(m);
  if (is_typed_product(m.op)) matrix += " + (i64)typ" + number(u) + " * " + number(in * out);
  const std::string at = transposed ? "${j} * " + number(in) + " + i" : "i * " + number(out) + " + ${j}";
  return per_own_element(m.out, u, "0.0f") + "for (int i = 0; i < " + number(in) +
         "; ++i) {\n  const float a = " + (o_.lanes == 1 && !scalar(m.a) ? reg(m.a, u) + "[i]" : element(m.a, u, "i")) +
         ";\n" +
         indent(per_element(m.out, u, own_element(m.out, u, "${s}") + " + a * __ldg(" + matrix + " + " + at + ")"), 1) +
         "}\n";
}

std::string ProgramText::micro(const Micro& m, int u, bool masked) const {
  switch (m.op) {
    case MicroOp::load:
    case MicroOp::load_src:
    case MicroOp::load_dst:
    case MicroOp::load_type:
    case MicroOp::load_row0:
      return load_text(m, u, masked);
    case MicroOp::root:
      return per_own_element(m.out, u, scalar(m.out) ? o_.root : o_.root + "[${s}]");
    case MicroOp::add:
    case MicroOp::sub:
    case MicroOp::mul:
      return binary(m, u);
    case MicroOp::dropout:
      return dropout_text(m, u, masked);
    case MicroOp::row_sum:
    case MicroOp::dot:
      return sum_text(m, u, masked);
    case MicroOp::expand:
    case MicroOp::concat:
    case MicroOp::slice:
    case MicroOp::pad:
      return shape_text(m, u);
    case MicroOp::take_max: {
      const std::string best =
          "__ldg((const int*)" + operand(m) + " + (i64)dst" + number(u) + " * " + number(width(m.out)) + " + ${j})";
      const std::string value = best + " == (int)pos" + number(u) + " ? " + own_element(m.a, u, "${s}") + " : 0.0f";
      return per_element(m.out, u, masked ? "(ok" + number(u) + " && " + value + ")" : "(" + value + ")");
    }
    case MicroOp::row_normalize:
    case MicroOp::row_normalize_grad:
    case MicroOp::log_softmax:
    case MicroOp::log_softmax_grad:
    case MicroOp::standardize:
      return row_text(m, u);
    case MicroOp::gemm:
    case MicroOp::gemm_t:
    case MicroOp::typed_gemm:
    case MicroOp::typed_gemm_t:
      return product_text(m, u);
    case MicroOp::store: {
      const auto stored = [&](const Micro& sum) {
        const bool is_sum = sum.op == MicroOp::row_sum || sum.op == MicroOp::dot;
        return is_sum && sum.out == m.a && width(sum.out) != 1 && stored_at_once(sum) != nullptr;
      };
      const auto& code = program_.code;
      return std::any_of(code.begin(), code.end(), stored) ? "" : store_text(m, u, masked);
    }
    default:
      return unary(m, u);
  }
}

}  // namespace nacre::cuda
