#!/usr/bin/env bash
# Formats all sources in place. With --check, only lists those that are not formatted and ends with
# 1 if there are any.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run -Werror)
python3 scripts/tree.py .h .cpp .cu .cuh | xargs -r -d '\n' -P "$(nproc)" -n 16 clang-format "${mode[@]}"
