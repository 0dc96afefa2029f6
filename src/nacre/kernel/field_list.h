// Lists of fields that are written once. NACRE_EACH walks a list. NACRE_STRUCT defines a struct
// that lies in device memory, so that the host and the CUDA text (struct_text() in
// kernel/cuda/params.h) declare the same members.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace nacre {

// Calls macro(…) with the content of each pair of parentheses of a list.
#define NACRE_EACH_PARENS ()
#define NACRE_EACH_EXPAND(...) \
  NACRE_EACH_EXPAND3(NACRE_EACH_EXPAND3(NACRE_EACH_EXPAND3(NACRE_EACH_EXPAND3(__VA_ARGS__))))
#define NACRE_EACH_EXPAND3(...) \
  NACRE_EACH_EXPAND2(NACRE_EACH_EXPAND2(NACRE_EACH_EXPAND2(NACRE_EACH_EXPAND2(__VA_ARGS__))))
#define NACRE_EACH_EXPAND2(...) \
  NACRE_EACH_EXPAND1(NACRE_EACH_EXPAND1(NACRE_EACH_EXPAND1(NACRE_EACH_EXPAND1(__VA_ARGS__))))
#define NACRE_EACH_EXPAND1(...) __VA_ARGS__
#define NACRE_EACH(macro, ...) __VA_OPT__(NACRE_EACH_EXPAND(NACRE_EACH_STEP(macro, __VA_ARGS__)))
#define NACRE_EACH_STEP(macro, field, ...) \
  macro field __VA_OPT__(NACRE_EACH_AGAIN NACRE_EACH_PARENS(macro, __VA_ARGS__))
#define NACRE_EACH_AGAIN() NACRE_EACH_STEP

// The members of one type in a declaration, for example the type "i64" with the names "begin, end".
struct StructMembers {
  std::string_view type, names;
  size_t bytes;  // size of one member
};

// Returns the size of a struct without padding.
constexpr size_t packed_bytes(std::span<const StructMembers> list) {
  size_t bytes = 0;
  for (const StructMembers& m : list) {
    bytes += m.bytes * static_cast<size_t>(1 + std::count(m.names.begin(), m.names.end(), ','));
  }
  return bytes;
}

#define NACRE_STRUCT_DECLARATION(type, ...) type __VA_ARGS__;
#define NACRE_STRUCT_MEMBERS(type, ...) ::nacre::StructMembers{#type, #__VA_ARGS__, sizeof(type)},

// Defines struct Name. Each item has a type, as the CUDA text writes it, and the names of one or
// more members. A struct with padding does not compile: without padding, equal members lie at equal
// places on the host and on the device.
#define NACRE_STRUCT(Name, ...)                                                                 \
  struct Name {                                                                                 \
    NACRE_EACH(NACRE_STRUCT_DECLARATION, __VA_ARGS__)                                           \
    static constexpr std::string_view kName = #Name;                                            \
    static constexpr auto kMembers =                                                            \
        std::to_array<::nacre::StructMembers>({NACRE_EACH(NACRE_STRUCT_MEMBERS, __VA_ARGS__)}); \
  };                                                                                            \
  static_assert(::nacre::packed_bytes(Name::kMembers) == sizeof(Name), #Name " must have no padding")

}  // namespace nacre
