// Decides which values of a plan a device stores as bf16. They are half as many bytes to gather,
// and tensor cores take them as they are. Sums, registers, weights, gradients of weights and
// results stay f32.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nacre/cost/device_traits.h"
#include "nacre/plan/plan.h"

namespace nacre {

// Returns whether plans for the device store values as bf16.
bool stores_bf16(const DeviceTraits& device);

// The work of the pass store_as_bf16: if the device stores values as bf16, marks the values of
// vertices that have at least 16 numbers per row, a multiple of 8, and that are read and written
// only by kernels that take bf16. The marks are in Plan::narrow and in the operands of the
// programs. If `named` is not null, only values in this list are marked.
void mark_narrow(Plan& plan, const DeviceTraits& device, const std::vector<NodeRef>* named = nullptr);

// Returns why the plan cannot store a value as bf16; empty if it does.
std::string why_not_narrow(const Plan& plan, NodeRef value);

// Returns the values in memory that the plan stores as bf16.
std::vector<NodeRef> narrow_values(const Plan& plan);

// What a plan stores as bf16.
struct NarrowReport {
  std::vector<std::pair<NodeRef, int64_t>> values;  // the values and their bytes as bf16
  int64_t bytes = 0;                                // the sum of these bytes
  // The bytes of a step's values at its peak, and what they would be if all were f32.
  int64_t peak = 0, wide_peak = 0;
  int64_t saved() const { return wide_peak - peak; }
};
NarrowReport report_narrow(const Plan& plan, const Blocks& blocks);
// Returns a line about all values that are stored as bf16, and then a line for each of them; an
// empty text if the plan is for a device that stores no values as bf16.
std::string narrow_text(const Plan& plan, const NarrowReport& report);

// Returns whether a rank stores the rows of a communication kernel, operand and result, as bf16.
bool moves_bf16(const Plan& plan, const Kernel& kernel);
// Returns the bytes of an element of a communication kernel's rows as this rank stores them. If all
// ranks store them alike, the rows also travel like this.
double stored_bytes(const Plan& plan, const Kernel& kernel);

}  // namespace nacre
