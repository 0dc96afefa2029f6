#!/usr/bin/env python3
"""The files of the project: tracked files, and new ones that git does not ignore. As a program,
prints those whose names end with one of the arguments."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def files(*endings):
    """Returns paths relative to the root, sorted. Returns all files if no ending is given."""
    # The clone may belong to another user than the one who checks it; nothing in it is executed
    # here.
    command = ["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    found = {name for name in names if name and name.endswith(endings or "")}
    return sorted(pathlib.Path(name) for name in found if (ROOT / name).is_file())


def read(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def finish(name, problems):
    """Prints the problems and ends the program with 1 if there are any."""
    for problem in problems:
        print(problem)
    if problems:
        print(f"{name}: {len(problems)} problem{'s' if len(problems) > 1 else ''}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    for path in files(*sys.argv[1:]):
        print(path)
