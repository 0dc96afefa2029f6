// Opens cuBLASLt at the first product, and owns its objects.
#pragma once

#include <cublasLt.h>

#include <memory>

#include "nacre/cuda/library.h"
#include "nacre/cuda/status.h"

namespace nacre::cuda {

struct BlasLt {
  BlasLt();

  Library library;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetStatusString) status_string = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) check = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
};

// Returns the functions of the library, which is opened by the first call. Throws UserError if it
// is not installed.
const BlasLt& blaslt();

inline bool failed(cublasStatus_t code) { return code != CUBLAS_STATUS_SUCCESS; }
inline std::string describe(cublasStatus_t code) { return blaslt().status_string(code); }

struct DestroyBlasLt {
  void operator()(cublasLtHandle_t p) const { blaslt().destroy(p); }
  void operator()(cublasLtMatmulDesc_t p) const { blaslt().desc_destroy(p); }
  void operator()(cublasLtMatrixLayout_t p) const { blaslt().layout_destroy(p); }
  void operator()(cublasLtMatmulPreference_t p) const { blaslt().preference_destroy(p); }
};
template <class Handle>
using BlasLtOwner = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyBlasLt>;

template <class Value>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name, const Value& value) {
  NACRE_CUDA(blaslt().desc_set(desc, name, &value, sizeof value));
}
template <class Value>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, const Value& value) {
  NACRE_CUDA(blaslt().layout_set(layout, name, &value, sizeof value));
}
template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name, const Value& value) {
  NACRE_CUDA(blaslt().preference_set(preference, name, &value, sizeof value));
}

}  // namespace nacre::cuda
