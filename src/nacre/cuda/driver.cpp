#include "nacre/cuda/driver.h"

namespace nacre::cuda {
namespace {

// Looks up the function in the version of the toolkit, which is the version that the headers
// declare.
template <class Function>
void find(Function& function, const char* name, bool needed) {
  void* address = nullptr;
  auto result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t code = cudaGetDriverEntryPointByVersion(name, &address, CUDART_VERSION, cudaEnableDefault, &result);
  if (code == cudaSuccess && result == cudaDriverEntryPointSuccess) {
    function = reinterpret_cast<Function>(address);
    return;
  }
  cudaGetLastError();
  NACRE_CHECK(!needed, std::string("the CUDA driver has no function ") + name);
}

Driver find_all() {
  Driver d;
  find(d.error_string, "cuGetErrorString", true);
  find(d.context_current, "cuCtxGetCurrent", true);
  find(d.context_push, "cuCtxPushCurrent", true);
  find(d.context_pop, "cuCtxPopCurrent", true);
  find(d.library_load, "cuLibraryLoadData", true);
  find(d.library_unload, "cuLibraryUnload", true);
  find(d.library_kernel, "cuLibraryGetKernel", true);
  find(d.kernel_function, "cuKernelGetFunction", true);
  find(d.kernel_attribute, "cuKernelGetAttribute", true);
  find(d.set_kernel_attribute, "cuKernelSetAttribute", true);
  find(d.launch, "cuLaunchKernel", true);
  find(d.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor", true);
  find(d.device_resource, "cuDeviceGetDevResource", false);
  find(d.split_resource, "cuDevSmResourceSplitByCount", false);
  find(d.describe_resource, "cuDevResourceGenerateDesc", false);
  find(d.green_create, "cuGreenCtxCreate", false);
  find(d.green_destroy, "cuGreenCtxDestroy", false);
  find(d.green_context, "cuCtxFromGreenCtx", false);
  find(d.green_stream, "cuGreenCtxStreamCreate", false);
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver functions = find_all();
  return functions;
}

std::string describe(cudaError_t code) {
  return std::string(cudaGetErrorName(code)) + " (" + cudaGetErrorString(code) + ")";
}

std::string describe(CUresult code) {
  const char* text = nullptr;
  if (driver().error_string(code, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown error";
  return "driver error " + std::to_string(static_cast<int>(code)) + " (" + text + ")";
}

}  // namespace nacre::cuda
