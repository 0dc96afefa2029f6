#include "nacre/train/warm_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "nacre/base/error.h"
#include "nacre/train/safetensors.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

std::string weights_of(const std::string& from) {
  std::error_code error;
  if (!fs::exists(from, error)) {
    throw UserError("--init", "there is no file or folder '" + from + "'", "name a run folder or a .safetensors file");
  }
  if (!fs::is_directory(from, error)) return from;
  const std::string name = "model.safetensors";
  if (fs::exists(fs::path(from) / name, error)) return (fs::path(from) / name).string();
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const bool checkpoint = entry.path().filename().string().starts_with("epoch-");
    if (checkpoint && fs::exists(entry.path() / name, error) && entry.path() > newest) newest = entry.path();
  }
  if (newest.empty()) {
    throw UserError("--init", "there are no weights in the folder '" + from + "'",
                    "name a run folder that holds model.safetensors, or a .safetensors file");
  }
  return (newest / name).string();
}

}  // namespace

bool has_checkpoint(const std::string& folder) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  return !error && std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with("epoch-");
  });
}

int64_t warm_start_bytes(const std::string& from) {
  std::error_code error;
  const auto bytes = fs::file_size(weights_of(from), error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

int warm_start(const std::string& from, bool partial, Parameters& parameters) {
  const std::string file = weights_of(from);
  const NamedTensors tensors = read_safetensors(file);
  std::string misfits;
  int count = 0;
  constexpr int kNamed = 3;
  const auto note = [&](const std::string& what) {
    if (++count <= kNamed) misfits += (misfits.empty() ? "" : "; ") + what;
  };
  std::vector<std::pair<const Tensor*, const Parameter*>> fitting;
  for (const Parameter& p : parameters.list()) {
    const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.first == p.name; });
    if (found == tensors.end()) {
      note(fmt::format("'{}' is missing", p.name));
    } else if (found->second.dtype() != DType::f32 || found->second.shape() != p.shape) {
      note(fmt::format("'{}' has the shape {}, but the model needs {}", p.name, shape_text(found->second.shape()),
                       shape_text(p.shape)));
    } else {
      fitting.emplace_back(&found->second, &p);
    }
  }
  if (count > kNamed) misfits += fmt::format("; and {} more", count - kNamed);
  if (count > 0 && (!partial || fitting.empty())) {
    throw UserError("--init " + file, "does not fit the model: " + misfits,
                    partial ? "none of its weights fits the model, so --init-partial takes none"
                            : "use the same model options, or add --init-partial");
  }
  for (const auto& [tensor, p] : fitting) std::copy_n(tensor->data<float>(), p->size, parameters.data(*p));
  return static_cast<int>(fitting.size());
}

}  // namespace nacre
