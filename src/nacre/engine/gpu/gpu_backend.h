// This header declares the GPU back end, which runs the kernels of a plan as generated CUDA on one
// device.
#pragma once

#include "nacre/engine/backend.h"
#include "nacre/engine/gpu/context.h"

namespace nacre {

std::shared_ptr<Backend> make_gpu_backend(std::shared_ptr<GpuContext> context);

}  // namespace nacre
