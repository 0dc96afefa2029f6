#!/usr/bin/env bash
# Installs the wheel of scripts/wheel.sh into a new virtual environment, and runs the package's
# tests there with a search path that has no compiler, no program nacre and no source tree.
set -euo pipefail
cd "$(dirname "$0")/.."

wheel=$(ls build/wheel/dist/nacre-*.whl)
# A wheel of this name is installed for newer Pythons, too, which can only load a module with the
# stable ABI.
if [[ $wheel == *-abi3-* ]] && ! python3 -m zipfile -l "$wheel" | grep -q '_core\.abi3\.so'; then
  echo "wheel_test: $wheel has no module with the stable ABI"
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "$wheel"
cp -r python/tests "$work/tests"
cat >"$work/three_lines.py" <<'PROGRAM'
import shutil
import numpy as np
import nacre
assert not any(shutil.which(name) for name in ("gcc", "g++", "cc", "clang", "cmake")), "there is a compiler"
random = np.random.default_rng(0)
y = np.arange(300) % 3
edge_index = np.stack([random.integers(0, 100, 1800) * 3 + np.repeat(y, 6), np.repeat(np.arange(300), 6)])
x = random.random((300, 8), dtype=np.float32)
graph = nacre.Graph(edge_index, x=x, y=y, train_mask=np.arange(100), val_mask=np.arange(100, 200), test_mask=np.arange(200, 300))
run = nacre.train(graph, model="gcn", layers=2, hidden=16, device="cpu")
print(run)
assert run.result["test_acc"] > 0.6
PROGRAM
cd "$work"
clean() { env -i HOME="$work" PATH="$work/env/bin" LANG=C.UTF-8 "$@"; }
clean "$work/env/bin/python" three_lines.py
clean "$work/env/bin/nacre" --version
clean "$work"/env/lib/python3*/site-packages/nacre/bin/nacre train --data twin:cora --model gat --epochs 3 --no-checkpoint --device cpu
"$work/env/bin/pip" install --quiet --disable-pip-version-check pytest scipy networkx pandas
clean "$work/env/bin/python" -B -m pytest -q -p no:cacheprovider tests
