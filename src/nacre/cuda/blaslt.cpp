#include "nacre/cuda/blaslt.h"

namespace nacre::cuda {

BlasLt::BlasLt() : library("libcublasLt.so." + std::to_string(NACRE_CUDA_MAJOR)) {
  library.find(create, "cublasLtCreate");
  library.find(destroy, "cublasLtDestroy");
  library.find(status_string, "cublasLtGetStatusString");
  library.find(desc_create, "cublasLtMatmulDescCreate");
  library.find(desc_destroy, "cublasLtMatmulDescDestroy");
  library.find(desc_set, "cublasLtMatmulDescSetAttribute");
  library.find(layout_create, "cublasLtMatrixLayoutCreate");
  library.find(layout_destroy, "cublasLtMatrixLayoutDestroy");
  library.find(layout_set, "cublasLtMatrixLayoutSetAttribute");
  library.find(preference_create, "cublasLtMatmulPreferenceCreate");
  library.find(preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library.find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
  library.find(check, "cublasLtMatmulAlgoCheck");
  library.find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.find(matmul, "cublasLtMatmul");
}

const BlasLt& blaslt() {
  static const BlasLt functions;
  return functions;
}

}  // namespace nacre::cuda
