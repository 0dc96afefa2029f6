#!/usr/bin/env bash
# Runs all checks that need no test run. Every check runs, so that one call shows everything that
# must be fixed.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
check() {
  local name=$1
  shift
  "$@" || failed+=("$name")
}

check format scripts/format.sh --check
check files python3 scripts/check_files.py
check rooms python3 scripts/check_rooms.py
check docs python3 scripts/check_docs.py
check launches python3 scripts/check_launches.py
check options python3 -B scripts/check_options.py
check plan python3 scripts/check_plan.py
check guides python3 -B tests/guides/follow.py --check
if [ -f build/release/compile_commands.json ] || cmake --preset release >/dev/null; then
  check clang-tidy python3 scripts/tidy.py build/release
else
  failed+=(configure)
fi

if [ ${#failed[@]} -gt 0 ]; then
  echo "lint: failed: ${failed[*]}" >&2
  exit 1
fi
echo "lint: clean"
