// Variants: the ways in which a kernel of a plan can run on a device.
//
// Each decision is one ordered list, the fastest variant first and the plainest, which never
// declines, last. The pass choose_variants asks the lists and records the answers in the plan
// (Kernel::variants); the engine binds what the plan names. Where the plan names nothing (it was
// made without a device), or where a block of a mini-batch cannot run the named variant, the engine
// asks the same list. The lists are in plan/variants/, one file for each family of kernels.
//
// A variant may need a number, its limit, such as the edges above which a row is long. The list
// computes it from the same facts. The plan records it, and the engine applies the plan's number to
// whatever block is at hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/cost/device_traits.h"
#include "nacre/plan/plan.h"

namespace nacre {

// A kernel, its plan and the blocks that it runs on. The facts of a decision are taken from them.
struct PlannedKernel {
  const Plan& plan;
  const Kernel& kernel;
  const Blocks& blocks;

  const Node& node(NodeRef i) const { return plan.dfg[i]; }
  int64_t width(NodeRef i) const { return node(i).type.row_size(); }
  int64_t rows(NodeRef i) const { return blocks.rows(node(i).type.space); }
  bool stored(NodeRef i) const { return plan.stored[i] != 0; }
  // Returns whether the value lies in memory as bf16.
  bool narrow(NodeRef i) const { return plan.is_narrow(i); }
  // Returns whether the value is computed once, before the first step.
  bool constant(NodeRef i) const;
  const Graph& graph() const { return blocks.layer(walked_layer(plan.dfg, kernel)); }
};

// One way to run a kernel. `Facts` are the numbers that the decision depends on.
template <class Facts>
struct Variant {
  const char* name;
  // Returns why this variant cannot run here or would waste the device; empty if it can. Null: it
  // never declines.
  std::string (*declines)(const Facts&, const DeviceTraits&);
  // Returns the predicted seconds, by the device's rates. Null: where this variant is the first
  // that does not decline, it is taken whatever the others would cost.
  double (*cost)(const Facts&, const DeviceTraits&);
  // Returns the limit of this variant. Null: it needs none.
  int64_t (*limit)(const Facts&, const DeviceTraits&) = nullptr;
};

// A larger limit than any list computes.
inline constexpr int64_t kMostLimit = int64_t{1} << 40;

// Says what the limits of a list of variants mean.
struct LimitKind {
  const char* text = "";  // the limit as plans print it, a format with one number: "above {} edges"
  // The smallest and the largest limit that a plan file may name.
  int64_t least = 1, most = kMostLimit;
};

template <class Facts>
struct VariantList {
  const char* decision;  // what is decided, as plans print it
  // Whether the variants that do not decline are told apart by timing them on the device, when the
  // kernel is bound.
  bool timed;
  std::vector<Variant<Facts>> variants;
  LimitKind limit = {};
};

// The judgement of one variant of a list.
struct Judged {
  const char* name;
  std::string declined;  // why the variant declines; empty if it does not
  double seconds = -1;   // predicted seconds; negative if the variant has no cost
  int64_t limit = 0;     // limit of the variant; 0 if it needs none
  bool accepts() const { return declined.empty(); }
};

template <class Facts>
std::vector<Judged> judge(const VariantList<Facts>& list, const Facts& facts, const DeviceTraits& device) {
  std::vector<Judged> all;
  for (const Variant<Facts>& v : list.variants) {
    Judged judged{v.name, v.declines == nullptr ? std::string() : v.declines(facts, device)};
    if (judged.accepts() && v.cost != nullptr) judged.seconds = v.cost(facts, device);
    if (judged.accepts() && v.limit != nullptr) judged.limit = v.limit(facts, device);
    all.push_back(std::move(judged));
  }
  return all;
}

// Returns the number of the first variant that accepts, if that variant has no cost. If it has one,
// returns the number of the cheapest variant that accepts, and of equally cheap ones the plainest.
int cheapest(const std::vector<Judged>& all);
// Returns the number of the variant to run: the one named `planned` if it accepts; if it declines,
// the next that accepts; if `planned` is empty or unknown, cheapest().
int variant_to_run(const std::vector<Judged>& all, std::string_view planned);
// Returns whether timing has to decide: more than one variant accepts.
bool needs_timing(const std::vector<Judged>& all);

// Returns the limit of the variant to run: the one that the plan names for it, otherwise that of
// the list.
int64_t limit_to_run(const Kernel& kernel, const char* decision, const Judged& taken);

// Returns the record of a decision: the variant taken and why each other one was not.
VariantChoice record_of(const char* decision, const std::vector<Judged>& all, int taken);
// Returns the record of a decision that is left to timing and not made yet. It names no variant.
VariantChoice record_untimed(const char* decision, const std::vector<Judged>& all);
// Returns the record of a decision that timing has made. `seconds` are the measured times of the
// variants that accept, in their order.
VariantChoice record_timed(const char* decision, const std::vector<Judged>& all, int taken,
                           const std::vector<double>& seconds);

// Returns the variant that the plan names for a decision about the kernel; empty if it names none.
std::string_view planned_variant(const Kernel& kernel, std::string_view decision);

// Returns the records of all decisions about a kernel on the device. A variant that the kernel
// already names is kept unless it declines.
std::vector<VariantChoice> decide(const PlannedKernel& kernel, const DeviceTraits& device);
// Sets the variants of all kernels of the plan (the work of the pass choose_variants).
void choose_variants(Plan& plan, const Blocks& blocks, const DeviceTraits& device);
// Returns whether a list of this decision has a variant of this name.
bool is_variant(std::string_view decision, std::string_view variant);
// Returns what the limit of a variant means; null if there is no such variant or it needs none.
const LimitKind* limit_kind(std::string_view decision, std::string_view variant);
// Returns the limit of a record for people, after a comma: ", above 128 edges"; empty if it has
// none.
std::string limit_text(const VariantChoice& choice);

// Returns which products the device computes in one kernel where they are added.
JoinedProducts joined_products(const DeviceTraits& device);

}  // namespace nacre
