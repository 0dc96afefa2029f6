#!/usr/bin/env bash
# Runs the GPU tests of a bundle (make gpu-bundle), from the folder this lies in. Tests that need a GPU are skipped where there
# is none. Then every pair of settings of the program, where there is a GPU and Python. --sanitize: the tests under
# compute-sanitizer, and nothing else. Further arguments go to the test programs (--gtest_filter=...).
set -uo pipefail
cd "$(dirname "$0")" || exit

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
if grep -q '^cuda:' <<<"$devices"; then export NACRE_TEST_DEVICE=cuda; fi

# Most of the time is the compiler's, so the cases of each program are shared out among processes.
workers=$(nproc)
shares=$((workers < 12 ? workers : 12))
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GTEST_TOTAL_SHARDS=$shares
share() {
  local folder=$1 test=$2
  export GTEST_SHARD_INDEX=$3
  shift 3
  local log=$folder/$test.$GTEST_SHARD_INDEX
  if "$@" >"$log" 2>&1; then
    sed -n 's/^\[  PASSED  \] \([0-9]*\) .*/\1/p' "$log" >>"$folder/$test.passed"
  else
    echo "$test" >>"$folder/failed"
    cat "$log"
  fi
}
export -f share
start=$SECONDS
while read -r test; do
  for ((i = 0; i < shares; ++i)); do
    printf '%s\0' "share '$folder' $test $i ${sanitizer[*]} ./$test --gtest_brief=1 ${*@Q}"
  done
done <tests.txt | xargs -0 -P "$workers" -I{} bash -c '{}'
while read -r test; do
  awk -v test="$test" '{ sum += $1 } END { printf "%-28s %4d passed\n", test, sum }' "$folder/$test.passed"
done <tests.txt
if [ -s "$folder/failed" ]; then
  echo "gpu_test: failed: $(sort -u "$folder/failed" | tr '\n' ' ')" >&2
  exit 1
fi
if grep -q '^cuda:' <<<"$devices"; then
  if [ ${#sanitizer[@]} -eq 0 ] && [ $# -eq 0 ]; then
    if command -v python3 >/dev/null; then
      python3 -B apps/matrix/matrix_test.py ./nacre --device cuda --jobs "$workers" || exit 1
    else
      echo "gpu_test: no python3 here: pairs of settings were not tried"
    fi
  fi
  echo "gpu_test: all passed in $((SECONDS - start)) s"
else
  echo "gpu_test: no GPU here: only what needs none has run"
fi
