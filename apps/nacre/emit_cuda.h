// Writes the kernels of a plan as CUDA source for people to read. This needs neither a GPU nor the
// plug-in: the plan is bound to a device that does not exist (NullDevice).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/device/device.h"
#include "nacre/engine/memory.h"
#include "nacre/engine/views.h"
#include "nacre/plan/plan.h"

namespace nacre::cli {

struct EmittedFile {
  std::string name;  // for example "03-spmm-rows_reduce.cu"
  std::string text;
};

// Holds the CUDA sources of a plan as a GPU would run it, and the memory that the plan needs.
struct GpuListing {
  // One file for each distinct source, named after the first kernel that launches it.
  std::vector<EmittedFile> files;
  std::string index;               // every kernel in order, with what it launches
  std::vector<MemoryItem> memory;  // memory of the plan itself: graph, values computed once, arena
};

struct ListingOptions {
  DeviceInfo gpu;
  GemmType precision = GemmType::f32;
  std::string title;  // for example "gcn on cora"
};
GpuListing list_gpu_kernels(const Plan& plan, const Blocks& blocks, std::shared_ptr<GraphViews> views,
                            const ListingOptions& options);

// Throws UserError if the folder cannot be created, so that the user learns this before a long
// search for a plan.
void check_folder(const std::string& folder);
// Writes the files of `listing` into `folder`, and its index as kernels.txt.
void write_listing(const GpuListing& listing, const std::string& folder);

}  // namespace nacre::cli
