#!/usr/bin/env python3
"""Runs clang-tidy on the sources of src/ and apps/ with the compile commands of a build folder (the
first argument; the default is build/release). A file is checked again only if the file, a header of
ours that it reaches, its compile command or .clang-tidy has changed; what passed is remembered in
build/lint.

Nearly all of clang-tidy's time goes into the headers of the standard library, so many files are
checked together, as one source that includes them (tidy_groups.py). Files in which that finds
anything are checked by themselves, and this result counts."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import tidy_groups
import together
import tree

# Sources that the build compiles together are included by such a file.
UNITY = re.compile(r'^#include "([^"]+)"', re.M)


def digest(path, command):
    seen = set()
    tidy_groups.reach(path, seen)
    state = hashlib.sha256(command.encode() + (tree.ROOT / ".clang-tidy").read_bytes())
    for name in sorted(seen):
        state.update(str(name).encode() + (tree.ROOT / name).read_bytes())
    return state.hexdigest()


def without_precompiled(command):
    """Returns the command without the precompiled header of g++, which clang cannot read."""
    return re.sub(r"-Winvalid-pch\s+|-include\s+\S*/cmake_pch\.hxx\s+", "", command)


def check(path, command):
    command = ["clang-tidy", "--quiet", str(tree.ROOT / path), "--", *flags_of(command)]
    done = subprocess.run(command, capture_output=True, text=True)
    # stderr has the counts of warnings in system headers; errors come on stdout.
    return done.returncode == 0, done.stdout.strip() or done.stderr.strip()


def flags_of(command):
    words = [word for word in shlex.split(command) if word != "-c"]
    at = words.index("-o")
    return tuple(word for word in words[1:at] if word.startswith(("-", "/")))


def sources_of(file):
    """Returns the sources of ours that a compiled file is or includes."""
    files = map(pathlib.Path, UNITY.findall(file.read_text())) if "Unity" in file.parts else [file]
    return [f.relative_to(tree.ROOT) for f in files if f.is_relative_to(tree.ROOT) and f.is_file()]


def shared_flags(commands):
    """Returns the flags of all commands, each flag once. Levels of optimisation are left out,
    because clang-tidy ignores them."""
    flags = {}
    for command in commands:
        words = iter(flags_of(command))
        for word in words:
            if not word.startswith("-O"):
                flags[(word, next(words)) if word == "-isystem" else (word,)] = None
    return [word for flag in flags for word in flag]


def blamed(text, group):
    """Returns the files of the group that have findings, or all files of the group if a finding
    lies in another file."""
    found = set(re.findall(r"^([^\s:]+):\d+:\d+: error: ", text, re.M))
    files = {path for path in group if str(tree.ROOT / path) in found}
    return files if files and len(files) == len(found) else set(group)


def check_group(number, group, commands):
    """Returns (path, passed, text) for every file."""
    results = []
    while len(group) > 1:
        source = tree.ROOT / f"build/lint/together{number}.cpp"
        source.write_text("".join(f'#include "{tree.ROOT / path}"\n' for path in group))
        command = ["clang-tidy", "--quiet", f"--config-file={tree.ROOT / '.clang-tidy'}", "--checks=-bugprone-suspicious-include",
                   r"--header-filter=/(src/nacre|apps)/.*\.(h|cpp)$", str(source), "--", *shared_flags(commands[path] for path in group)]
        done = subprocess.run(command, capture_output=True, text=True)
        source.unlink()
        if done.returncode == 0:
            return results + [(path, True, "") for path in group]
        alone = blamed(done.stdout, group)
        single = [(path, *check(path, commands[path])) for path in group if path in alone]
        if all(passed for _, passed, _ in single):
            why = next((line for line in done.stdout.splitlines() if " error: " in line), done.stderr.strip())
            print(f"clang-tidy: {len(group)} files do not go together: {why}", flush=True)
        results += single
        group = [path for path in group if path not in alone]
    return results + [(path, *check(path, commands[path])) for path in group]


def main():
    build = (tree.ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build/release")).resolve()
    passed = tree.ROOT / "build/lint"
    passed.mkdir(parents=True, exist_ok=True)
    todo, commands = {}, {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        for path in sources_of(pathlib.Path(entry["file"])):
            if path.parts[0] in ("src", "apps") and path.suffix == ".cpp" and together.MANY_TARGETS not in tree.read(path):
                commands[path] = without_precompiled(entry["command"])
                todo[path] = digest(path, commands[path])
    stale = [path for path, state in todo.items() if not (passed / state).exists()]
    failed = 0
    groups = tidy_groups.divide(stale, os.cpu_count())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for results in pool.map(lambda g: check_group(g, groups[g], commands), range(len(groups))):
            for path, ok, text in results:
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
