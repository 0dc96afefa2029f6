#!/usr/bin/env bash
# fuzz.sh SECONDS: replays the corpus of every fuzz target, then fuzzes each for SECONDS (0: replays
# only). A target fuzz_NAME has its corpus in tests/fuzz/corpus/NAME. New finds go to
# build/fuzz/found/NAME, never into the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-0}

[ -f build/fuzz/build.ninja ] || cmake --preset fuzz
mapfile -t targets < <(ninja -C build/fuzz -t targets all | sed -nE 's/^(.*\/)?(fuzz_[a-z0-9_]+): CXX_EXECUTABLE.*/\2/p' | sort -u)
if [ ${#targets[@]} -eq 0 ]; then
  echo "fuzz: no target named fuzz_* in tests/fuzz" >&2
  exit 1
fi
cmake --build --preset fuzz --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}"

for target in "${targets[@]}"; do
  name=${target#fuzz_}
  corpus=tests/fuzz/corpus/$name
  found=build/fuzz/found/$name
  program=$(find build/fuzz -type f -name "$target" -perm -u+x -print -quit)
  mapfile -t inputs < <(find "$corpus" -type f | sort)
  if [ ${#inputs[@]} -eq 0 ]; then
    echo "fuzz: $corpus is empty" >&2
    exit 1
  fi
  "$program" -rss_limit_mb=4096 -timeout=20 "${inputs[@]}" >"build/fuzz/$name.log" 2>&1 || {
    tail -n 60 "build/fuzz/$name.log" >&2
    echo "fuzz: $target failed on its corpus" >&2
    exit 1
  }
  echo "fuzz: $target replayed ${#inputs[@]} inputs"
  if [ "$seconds" -gt 0 ]; then
    mkdir -p "$found"
    "$program" -rss_limit_mb=4096 -timeout=20 -max_total_time="$seconds" -print_final_stats=1 -verbosity=0 \
      -artifact_prefix="build/fuzz/$name-" "$found" "$corpus"
  fi
done
