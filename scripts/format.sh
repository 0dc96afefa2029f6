#!/usr/bin/env bash
# Formats all sources in place; with --check only says which are not formatted and ends with 1.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run -Werror)
python3 scripts/tree.py .h .cpp .cu .cuh | xargs -r -d '\n' -P "$(nproc)" -n 16 clang-format "${mode[@]}"
