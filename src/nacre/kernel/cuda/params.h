// The parameters of generated kernels. Each list is written once: NACRE_PARAMS(Name, (type, name),
// …) defines a struct with those members. The host fills the members by name, and the CUDA text of
// the kernel (Entry, below) declares the same list as separate parameters. Each launch is checked
// against the kernel that it starts.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "nacre/kernel/cuda/source.h"
#include "nacre/kernel/field_list.h"

namespace nacre::cuda {

// Types of parameters under the names that CUDA texts use for them (prelude() in source.cpp).
using i64 = int64_t;
using u64 = uint64_t;
using u32 = uint32_t;
using u16 = uint16_t;
using u8 = uint8_t;
// Types that the text of a kernel defines for itself. The host only passes addresses of them.
using Key = void;
using Label = void;
using Offset = void;
using Out = void;
using RowWord = void;
using Value = void;

// A pointer parameter on the host. It can be made from addresses of T and from untyped addresses.
// It has no default, so that a binder cannot forget it.
template <class T>
class Address {
 public:
  // Addresses convert to this class implicitly, as they do to pointers.
  // NOLINTBEGIN(google-explicit-constructor)
  Address(std::nullptr_t) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> ||(std::is_void_v<U>&& std::is_convertible_v<U*, const volatile void*> &&
                                            (std::is_const_v<T> || !std::is_const_v<U>)) Address(U* memory)
      : memory_(static_cast<T*>(memory)) {}
  // NOLINTEND(google-explicit-constructor)

 private:
  T* memory_ = nullptr;
};

// The type that a parameter has on the host.
template <class T>
struct HostType {
  using Type = T;
  static constexpr bool kPointer = false;
};
template <class T>
struct HostType<T*> {
  using Type = Address<T>;
  static constexpr bool kPointer = true;
};
template <class T>
struct HostType<T* __restrict__> : HostType<T*> {};

// Describes one parameter, as text and as the host passes it.
struct ParamField {
  std::string_view type, name;
  int bytes;
  bool pointer;
};

#define NACRE_PARAM_MEMBER(type, name) ::nacre::cuda::HostType<type>::Type name;
#define NACRE_PARAM_FIELD(type, name)                                                  \
  ::nacre::cuda::ParamField{#type, #name, sizeof(::nacre::cuda::HostType<type>::Type), \
                            ::nacre::cuda::HostType<type>::kPointer},
#define NACRE_PARAM_VISIT(type, name) visit(name);

// Defines struct Name. A type is written as the CUDA text has it, with its qualifiers: `const
// float* __restrict__`.
#define NACRE_PARAMS(Name, ...)                                                                 \
  struct Name {                                                                                 \
    NACRE_EACH(NACRE_PARAM_MEMBER, __VA_ARGS__)                                                 \
    static constexpr std::string_view kName = #Name;                                            \
    static constexpr auto kFields =                                                             \
        std::to_array<::nacre::cuda::ParamField>({NACRE_EACH(NACRE_PARAM_FIELD, __VA_ARGS__)}); \
    template <class Visit>                                                                      \
    void each(Visit visit) const {                                                              \
      NACRE_EACH(NACRE_PARAM_VISIT, __VA_ARGS__)                                                \
    }                                                                                           \
  }

// Returns a list of parameters as the text of a function declares it, for example "const float*
// __restrict__ x, i64 count".
std::string parameter_text(std::span<const ParamField> fields);
// Returns the declaration of a struct of NACRE_STRUCT in CUDA, with a line feed at its end.
std::string struct_text(std::string_view name, std::span<const StructMembers> members);
template <class S>
std::string struct_text() {
  return struct_text(S::kName, S::kMembers);
}

// Marks the place of the head in the text of a kernel. fill() leaves the mark there if its words
// contain {"ENTRY", kEntryMark}.
inline constexpr const char* kEntryMark = "${ENTRY}";

// The head of a kernel's text: its name, its launch bounds and its parameters, in the order of the
// calls.
class Entry {
 public:
  explicit Entry(std::string name, std::string bounds = "THREADS")
      : name_(std::move(name)), bounds_(std::move(bounds)) {}
  // Adds the fields of a struct of NACRE_PARAMS to the parameters. If a kernel takes the same
  // struct twice, `suffix` is appended to the names of the fields.
  template <class P>
  Entry& takes(const std::string& suffix = "") {
    return takes(P::kName, P::kFields, suffix);
  }
  // Adds one pointer of a list of operands whose number differs from kernel to kernel.
  Entry& operand(std::string_view type, const std::string& name);
  // Returns the head, without the brace that opens the body of the kernel. In front of the head
  // stands a check of the size of each type that is no pointer, as the host has assumed it.
  std::string text() const;
  // Returns a source of this kernel: `pattern` with text() in the place of its kEntryMark.
  Source source(std::string_view pattern, int threads, int64_t shared_bytes = 0) const;

 private:
  Entry& takes(std::string_view params, std::span<const ParamField> fields, const std::string& suffix);

  std::string name_, bounds_;
  std::vector<std::string> parameters_;
  std::string checks_;
  Signature signature_;
};

// The values of a kernel's parameters, as a launch passes them: structs and operands in the order
// of its Entry.
class LaunchParams {
 public:
  // A struct converts to a LaunchParams with only this struct, because most kernels take one.
  template <class P>
  requires requires { P::kFields; }
  LaunchParams(const P& params) {  // NOLINT(google-explicit-constructor)
    then(params);
  }
  template <class P>
  LaunchParams& then(const P& params) {
    signature_.add(P::kName, P::kFields.size());
    params.each([this](const auto& value) {
      static_assert(sizeof value <= sizeof(uint64_t));
      put(&value, sizeof value);
    });
    return *this;
  }
  LaunchParams& operands(std::span<void* const> list);

  const Signature& signature() const { return signature_; }
  // Returns the addresses of the values, in order. They are valid until this object changes.
  std::vector<void*> pointers();

 private:
  void put(const void* value, size_t bytes);

  Signature signature_;
  std::vector<uint64_t> words_;  // one for each value
};

// Throws unless the parameters are those that the source declares.
void check_params(const Source& source, const LaunchParams& params);

}  // namespace nacre::cuda
