"""Tests what surrounds a training: signals, processes that are forked, and the module alone."""
import pathlib
import subprocess
import sys

import nacre


def child(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def test_the_module_needs_no_numpy():
    """pip has no NumPy while it builds the package and writes the stub of the module."""
    folder = pathlib.Path(nacre._core.__file__).parent
    done = child("""
import sys
sys.modules["numpy"] = None
sys.path.insert(0, sys.argv[1])
import _core
print(_core.UserError.__name__)
""", folder)
    assert done.returncode == 0 and done.stdout == "UserError\n", done.stderr
    assert nacre.UserError.__module__ == "nacre"
    stub = (folder / "_core.pyi").read_text()
    assert "import nacre" not in stub and "from nacre" not in stub and "class UserError(" in stub
