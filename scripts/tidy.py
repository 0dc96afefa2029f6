#!/usr/bin/env python3
"""Runs clang-tidy on the sources of src/ and apps/ with the compile commands of a build folder (first argument,
build/release when left out). A file is only looked at again when it, a header of ours it reaches, its compile command
or .clang-tidy has changed; what passed is remembered in build/lint."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*"(nacre/[^"]+|[\w-]+\.h)"', re.M)
# Highway includes such a file again for each instruction set; clang-tidy sees one of them and warns of the others.
MANY_TARGETS = "hwy/foreach_target.h"


def reach(path, seen):
    """Adds `path` and every header of ours that it includes."""
    if path in seen or not (tree.ROOT / path).is_file():
        return
    seen.add(path)
    for name in INCLUDE.findall(tree.read(path)):
        base = pathlib.Path("src") if name.startswith("nacre/") else path.parent
        reach(base / name, seen)


def digest(path, command):
    seen = set()
    reach(path, seen)
    state = hashlib.sha256(command.encode() + (tree.ROOT / ".clang-tidy").read_bytes())
    for name in sorted(seen):
        state.update(str(name).encode() + (tree.ROOT / name).read_bytes())
    return state.hexdigest()


def check(path, build):
    command = ["clang-tidy", "--quiet", "-p", str(build), str(tree.ROOT / path)]
    done = subprocess.run(command, capture_output=True, text=True)
    # On stderr stand the counts of warnings in system headers; errors come on stdout.
    return done.returncode == 0, done.stdout.strip() or done.stderr.strip()


def main():
    build = (tree.ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build/release")).resolve()
    passed = tree.ROOT / "build/lint"
    passed.mkdir(parents=True, exist_ok=True)
    todo = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        if not file.is_relative_to(tree.ROOT):
            continue
        path = file.relative_to(tree.ROOT)
        if path.parts[0] in ("src", "apps") and path.suffix == ".cpp" and file.is_file() and MANY_TARGETS not in tree.read(path):
            todo[path] = digest(path, entry["command"])
    stale = [path for path, state in todo.items() if not (passed / state).exists()]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (ok, text) in zip(stale, pool.map(lambda p: check(p, build), stale)):
            if ok:
                (passed / todo[path]).touch()
            else:
                failed += 1
                print(text, flush=True)
    for mark in passed.iterdir():
        if mark.name not in todo.values():
            mark.unlink()
    print(f"clang-tidy: {len(todo)} files, {len(stale)} checked, {failed} with warnings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
