#!/usr/bin/env bash
# Makes the Python environment build/python/env with the packages of python/requirements.txt, for
# building and testing the Python package. Ends with 1 if that is not possible here: there is no
# Python 3.10, there are no headers, or PyPI cannot be reached.
set -uo pipefail
cd "$(dirname "$0")/.."

env=build/python/env
wanted=python/requirements.txt
python=${PYTHON:-python3}
no() {
  echo "python_env: $1: the Python module is not built, and its tests are skipped"
  exit 1
}

cmp -s "$wanted" "$env/requirements.txt" && exit 0
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || no "there is no Python 3.10 or newer"
headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -f "$headers/Python.h" ] || no "Python.h is missing (package python3-dev)"
"$python" -c 'import ensurepip' 2>/dev/null || no "the module ensurepip is missing (package python3-venv)"
"$python" -m venv "$env" || no "$env cannot be made"
"$env/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" || no "PyPI cannot be reached"
cp "$wanted" "$env/requirements.txt"
