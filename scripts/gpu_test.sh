#!/usr/bin/env bash
# Runs the GPU tests of a bundle (make gpu-bundle) from the folder in which this script lies. Then,
# if there are a GPU and Python, runs every pair of the program's settings. Tests that need a GPU
# are skipped if there is none.
#
#   gpu_test.sh [--sanitize memcheck|racecheck] [--logs FOLDER]
#               [arguments of the test programs, such as --gtest_filter=...]
#
# With --sanitize, the tests run under this tool of compute-sanitizer, and nothing else runs. With
# --logs, the output of the test programs is kept. A share of the tests that has passed according to
# FOLDER is not run again, so an interrupted run can be continued.
set -uo pipefail
cd "$(dirname "$0")" || exit

tool= logs=
while [ $# -gt 0 ]; do
  case $1 in
    --sanitize) tool=${2:-} && shift 2 || exit 2 ;;
    --logs) logs=${2:-} && shift 2 || exit 2 ;;
    *) break ;;
  esac
done

sanitizer=()
if [ -n "$tool" ]; then
  case $tool in memcheck | racecheck) ;; *)
    echo "gpu_test: unknown tool '$tool'; choose memcheck or racecheck" >&2
    exit 2
    ;;
  esac
  program=$(command -v compute-sanitizer || true)
  for candidate in "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" /usr/local/cuda*/bin/compute-sanitizer; do
    [ -n "$program" ] || { [ -x "$candidate" ] && program=$candidate; }
  done
  [ -n "$program" ] || { echo "gpu_test: compute-sanitizer is not installed" >&2; exit 1; }
  # Some tests make calls that fail on purpose (they ask for too much memory), and some shares of
  # the tests use no GPU. Neither is a mistake.
  sanitizer=("$program" --tool "$tool" --error-exitcode 1 --require-cuda-init no)
  if [ "$tool" = racecheck ]; then
    # Kernels of libraries have mangled names, or one of the names below; ours do not. Each process
    # analyses with one thread, because there is already a process for every core.
    for name in _Z gemm nvjet cutlass; do
      sanitizer+=(--kernel-name-exclude "kernel_substring=$name")
    done
    sanitizer+=(--racecheck-num-workers 1 --show-backtrace no)
  else
    sanitizer+=(--report-api-errors no)
  fi
fi

. ./gpu_env.sh
devices=$(./nacre devices) || exit 1
echo "$devices"
if grep -q '^cuda:' <<<"$devices"; then export NACRE_TEST_DEVICE=cuda; fi

# The compiler takes most of the time, so the cases of each program are divided among processes. A
# sanitizer makes some cases far slower than others, so the shares are small there, and tests of
# values try a part of their plans and graphs, as they do under the address sanitizer.
workers=$(nproc)
[ -z "$tool" ] || export NACRE_SANITIZED=1
shares=$((workers < 12 ? workers : 12))
[ -z "$tool" ] || shares=$((shares * 2))
if [ -n "$logs" ]; then
  mkdir -p "$logs" && folder=$(cd "$logs" && pwd) || exit 1
  rm -f "$folder/failed"
else
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
export GTEST_TOTAL_SHARDS=$shares
share() {
  local folder=$1 test=$2
  export GTEST_SHARD_INDEX=$3
  shift 3
  local log=$folder/$test.$GTEST_SHARD_INDEX
  [ ! -e "$log.passed" ] || return 0
  if "$@" >"$log" 2>&1; then
    sed -n 's/^\[  PASSED  \] \([0-9]*\) .*/\1/p' "$log" >"$log.passed"
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
  cat /dev/null "$folder/$test".*.passed 2>/dev/null |
    awk -v test="$test" '{ sum += $1 } END { printf "%-28s %4d passed\n", test, sum }'
done <tests.txt
if [ -s "$folder/failed" ]; then
  echo "gpu_test: failed: $(sort -u "$folder/failed" | tr '\n' ' ')" >&2
  exit 1
fi
if grep -q '^cuda:' <<<"$devices"; then
  if [ -z "$tool" ] && [ $# -eq 0 ]; then
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
