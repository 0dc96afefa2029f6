#!/usr/bin/env bash
# Gathers in build/bundle what a machine with a GPU needs to run nacre and its GPU tests: program,
# plug-in, test programs, and the shared libraries they use. Only the NVIDIA driver and the CUDA
# libraries (NVRTC, cuBLASLt) must be installed there. The same files are packed as
# build/bundle.tar.gz, which is what is carried to that machine. The argument is the build folder;
# the default is build/cuda.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/cuda}
bundle=build/bundle
limit_mib=60
# Further programs and files for that machine, beside the tests labelled gpu, which CTest names.
further=()

[ -f "$build/libnacre_cuda.so" ] || { echo "gpu_bundle: $build has no CUDA plug-in" >&2; exit 1; }

tests=()
while read -r name; do
  tests+=("$build/test_$name")
done < <(ctest --test-dir "$build" --label-regex '^gpu$' --show-only=json-v1 |
  python3 -c 'import json, sys; [print(t["name"]) for t in json.load(sys.stdin)["tests"]]')
[ ${#tests[@]} -gt 0 ] || { echo "gpu_bundle: no test is labelled gpu" >&2; exit 1; }

rm -rf "$bundle"
mkdir -p "$bundle/lib" "$bundle/lib/cxx"
[ -f "$build/libnacre_nccl.so" ] && further+=("$build/libnacre_nccl.so")
cp "$build/nacre" "$build/libnacre_cuda.so" "${tests[@]}" ${further[@]+"${further[@]}"} "$bundle/"
cp scripts/gpu_test.sh scripts/gpu_env.sh "$bundle/"
printf '%s\n' "${tests[@]##*/}" >"$bundle/tests.txt"
mkdir "$bundle/apps"
cp -r tests/apps/cli.py tests/apps/matrix "$bundle/apps/"
rm -rf "$bundle/apps/matrix/__pycache__"

# Copies all libraries except those that belong to the C library, which must fit the loader of the
# machine they run on.
for program in "$bundle"/nacre "$bundle"/libnacre_cuda.so "$bundle"/test_*; do ldd "$program"; done |
  awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
  grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' |
  xargs -r -d '\n' cp -L -t "$bundle/lib"

# Only machines with an older C++ library use this one (gpu_env.sh).
find "$bundle/lib" -maxdepth 1 \( -name 'libstdc++.so*' -o -name 'libgcc_s.so*' \) -exec mv -t "$bundle/lib/cxx" {} +

find "$bundle" -type f \( -name 'test_*' -o -name nacre -o -name '*.so*' \) -exec strip --strip-unneeded {} +
archive=$bundle.tar.gz
tar czf "$archive" -C "${bundle%/*}" "${bundle##*/}"
# A machine without a GPU can open the plug-in, too, and then misses the driver only.
opened=$(. "$bundle/gpu_env.sh" && "$bundle/nacre" devices)
if grep -E 'cuda +none' <<<"$opened" | grep -qv 'driver'; then
  echo "gpu_bundle: the plug-in of the bundle cannot be used: $opened" >&2
  exit 1
fi

size_mib=$(($(du -sk "$bundle" | cut -f1) / 1024))
packed_mib=$(($(du -sk "$archive" | cut -f1) / 1024))
echo "bundle: $bundle, ${#tests[@]} test programs, $size_mib MiB; packed as $archive, $packed_mib MiB"
[ "$packed_mib" -lt "$limit_mib" ] || { echo "gpu_bundle: $archive is larger than $limit_mib MiB" >&2; exit 1; }
