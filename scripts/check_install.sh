#!/usr/bin/env bash
# Installs build/release into a temporary folder, then builds and runs examples/find_package against
# it. This is what a user of the installed library does, without the source tree.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install build/release --prefix "$work/prefix" >/dev/null
cp -r examples/find_package "$work/example"
cmake -S "$work/example" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build"
"$work/build/example"
"$work/prefix/bin/nacre" --version
