#!/usr/bin/env bash
# Runs the GPU tests of a bundle (make gpu-bundle), from the folder this lies in. Tests that need a GPU are skipped where there
# is none. --sanitize: under compute-sanitizer. Further arguments go to the test programs (--gtest_filter=...).
set -uo pipefail
cd "$(dirname "$0")"

sanitizer=()
if [ "${1:-}" = --sanitize ]; then
  shift
  tool=$(command -v compute-sanitizer || true)
  for candidate in "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" /usr/local/cuda*/bin/compute-sanitizer; do
    [ -n "$tool" ] || { [ -x "$candidate" ] && tool=$candidate; }
  done
  [ -n "$tool" ] || { echo "gpu_test: compute-sanitizer is not installed" >&2; exit 1; }
  # Calls that fail on purpose (too much memory) are not errors of ours.
  # Nor is a share of the tests that uses no GPU.
  sanitizer=("$tool" --error-exitcode 1 --report-api-errors no --require-cuda-init no)
fi

. ./gpu_env.sh
devices=$(./nacre devices) || exit 1
echo "$devices"
# Tests of plans run them on the GPU. Most of their time is the compiler's, so the cases of a program are shared out.
if grep -q '^cuda:' <<<"$devices"; then export NACRE_TEST_DEVICE=cuda; fi
shards=$(nproc)
[ "$shards" -le 12 ] || shards=12
failed=()
while read -r test; do
  echo "==== $test"
  pids=()
  for ((i = 0; i < shards; ++i)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i ${sanitizer[@]+"${sanitizer[@]}"} "./$test" --gtest_brief=1 "$@" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed+=("$test"); done
done <tests.txt
if [ ${#failed[@]} -gt 0 ]; then
  echo "gpu_test: failed: ${failed[*]}" >&2
  exit 1
fi
if grep -q '^cuda:' <<<"$devices"; then
  echo "gpu_test: all passed"
else
  echo "gpu_test: no GPU here: only what needs none has run"
fi
