#include "emit_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <set>

#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"
#include "nacre/device/null_device.h"
#include "nacre/device/precision.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/plan/variants/place.h"

namespace nacre::cli {
namespace {

namespace fs = std::filesystem;

// Describes one thing that a kernel of the plan asks of the device.
struct Request {
  int source = -1;  // number of the source that is launched; negative: see `what`
  LaunchShape shape;
  std::string what;
};

std::string product_text(const GemmShape& s) {
  return fmt::format("matrix product of cuBLASLt: [{}, {}]{} · [{}, {}]{} in {}{}", s.transpose_a ? s.k : s.m,
                     s.transpose_a ? s.m : s.k, s.transpose_a ? " transposed" : "", s.transpose_b ? s.n : s.k,
                     s.transpose_b ? s.k : s.n, s.transpose_b ? " transposed" : "", precision_name(s.type),
                     s.batch > 1 ? fmt::format(", {} of them", s.batch) : "");
}

// Stands for a device that does not exist, and records what the engine asks of it. The image of a
// compiled source is the number of the source.
class Recorder : public NullDevice {
 public:
  using NullDevice::NullDevice;
  void record_to(std::vector<Request>* list) { list_ = list; }

  DeviceFunction load(const std::string& image, const std::string&) override {
    return &functions_.emplace_back(std::stoi(image));
  }
  void launch(DeviceFunction function, const LaunchShape& shape, const std::vector<void*>&) override {
    note({*static_cast<const int*>(function), shape, ""});
  }
  int prepare_gemm(const GemmShape& shape, int /*among*/) override {
    products_.push_back(product_text(shape));
    return static_cast<int>(products_.size()) - 1;
  }
  void run_gemm(int handle, const GemmArgs&, void*) override { note({-1, {}, products_[handle]}); }
  void fill(void*, int, int64_t bytes) override { note({-1, {}, fmt::format("{} bytes filled", bytes)}); }
  void copy(void*, const void*, int64_t bytes) override { note({-1, {}, fmt::format("{} bytes copied", bytes)}); }

 private:
  void note(Request request) {
    if (list_ != nullptr) list_->push_back(std::move(request));
  }

  std::vector<Request>* list_ = nullptr;
  std::deque<int> functions_;  // numbers of sources; a deque keeps their addresses
  std::vector<std::string> products_;
};

struct Requests {
  std::vector<cuda::Source> sources;
  std::vector<std::vector<Request>> of_kernel;
  std::vector<MemoryItem> memory;
};

Requests requests_of(const Plan& plan, const Blocks& blocks, std::shared_ptr<GraphViews> views,
                     const ListingOptions& options) {
  Requests all;
  const auto recorder = std::make_shared<Recorder>(options.gpu);
  const auto compiler = std::make_shared<GpuCompiler>(recorder, [&all](const cuda::Source& source) {
    all.sources.push_back(source);
    return std::to_string(all.sources.size() - 1);
  });
  const auto context = std::make_shared<GpuContext>(compiler, std::move(views), GpuOptions{options.precision, false});
  Executor executor(plan, blocks, make_gpu_backend(context));
  for (const Node& node : plan.dfg.nodes()) {
    if (node.op == Op::input || node.op == Op::param) executor.bind(node.name, context->allocate(16).get());
  }
  ConstantPool pool;
  const int64_t constants = executor.constant_bytes(pool);
  executor.allocate(context->allocate(executor.arena_bytes()), pool);
  all.of_kernel.resize(plan.kernels.size());
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (runs_on_host(plan.kernels[k], plan.dfg)) {
      all.of_kernel[k].push_back({-1, {}, "runs on the host, between copies"});
      continue;
    }
    recorder->record_to(&all.of_kernel[k]);
    executor.time_kernel(k);
  }
  recorder->record_to(nullptr);
  all.memory = {{"graph and work lists", context->resident_bytes()},
                {"values computed once", constants},
                {"arena (activations, gradients, work)", executor.arena_bytes()}};
  return all;
}

std::string kernel_title(const Plan& plan, size_t k) {
  const Kernel& kernel = plan.kernels[k];
  std::string ops;
  for (const NodeRef v : kernel.nodes) ops += (ops.empty() ? "" : "+") + std::string(op_info(plan.dfg[v].op).name);
  return fmt::format("{} {} {} ({}){}", k, kernel_name(kernel.kind), type_text(plan.dfg[kernel.root].type), ops,
                     kernel.once ? ", once" : "");
}

std::string shape_text(const LaunchShape& s) {
  return fmt::format("{} block{} of {} threads, {} bytes of dynamic shared memory", s.blocks, s.blocks == 1 ? "" : "s",
                     s.threads, s.shared_bytes);
}

// Returns the comment lines before a source: which kernels of the plan launch it, and how.
std::string heading(const Plan& plan, const Requests& all, int source, const std::string& title) {
  std::string text = fmt::format("// {}: generated for {}, plan {}\n//\n// Kernels of the plan that launch it:\n",
                                 all.sources[source].name, title, plan.name);
  for (size_t k = 0; k < all.of_kernel.size(); ++k) {
    bool first = true;
    for (const Request& r : all.of_kernel[k]) {
      if (r.source != source) continue;
      if (first) text += fmt::format("//   {}\n", kernel_title(plan, k));
      first = false;
      text += fmt::format("//     {}\n", shape_text(r.shape));
    }
  }
  return text;
}

// Returns the text with blanks for control characters and backslashes, because a name from the data
// must not end a comment line.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\\'; }, ' ');
  return text;
}

}  // namespace

GpuListing list_gpu_kernels(const Plan& plan, const Blocks& blocks, std::shared_ptr<GraphViews> views,
                            const ListingOptions& options) {
  const Requests all = requests_of(plan, blocks, std::move(views), options);
  GpuListing listing;
  listing.memory = all.memory;
  const std::string title = one_line(options.title);
  std::map<int, std::string> names;
  std::set<std::string> taken;
  listing.index = fmt::format("{}, plan {}: what each kernel asks of {}\n", title, plan.name, options.gpu.name);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    listing.index += "\n" + kernel_title(plan, k) + "\n";
    for (const Request& r : all.of_kernel[k]) {
      if (r.source < 0) {
        listing.index += "  " + r.what + "\n";
        continue;
      }
      std::string& name = names[r.source];
      if (name.empty()) {
        const cuda::Source& source = all.sources[r.source];
        std::string stem = fmt::format("{:02}-{}", k, kernel_name(plan.kernels[k].kind));
        if (source.name != kernel_name(plan.kernels[k].kind)) stem += "-" + source.name;
        name = stem + ".cu";
        for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}-{}.cu", stem, i);
        const std::string compile = fmt::format("//\n// nvcc -cubin -arch=sm_{} {}\n\n", options.gpu.arch, name);
        listing.files.push_back({name, heading(plan, all, r.source, title) + compile + source.text});
      }
      listing.index += fmt::format("  {}: {}\n", name, shape_text(r.shape));
    }
    if (all.of_kernel[k].empty()) listing.index += "  nothing, on this graph\n";
  }
  return listing;
}

void check_folder(const std::string& folder) {
  for (fs::path at = fs::absolute(folder); !at.empty() && at != at.root_path(); at = at.parent_path()) {
    std::error_code ignored;
    if (!fs::exists(at, ignored)) continue;
    if (!fs::is_directory(at, ignored)) throw UserError(folder, at.string() + " is not a folder");
    return;
  }
}

void write_listing(const GpuListing& listing, const std::string& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw UserError(folder, "cannot be created: " + failure.message());
  for (const EmittedFile& file : listing.files) write_file((fs::path(folder) / file.name).string(), file.text);
  write_file((fs::path(folder) / "kernels.txt").string(), listing.index);
}

}  // namespace nacre::cli
