#!/usr/bin/env python3
"""Finds sources that can be compiled together, as one source that includes them. Nearly all of a
compiler's time goes into headers and templates that the sources share, so this saves most of it.

Called with paths of sources, it prints a line `GROUP PATH` for each source that goes together with
others. cmake/nacre.cmake builds these groups; tidy.py checks others of the same kind."""
import collections
import pathlib
import re
import sys

# Highway includes such a file again for each instruction set.
MANY_TARGETS = "hwy/foreach_target.h"
# Matches what a line at the margin may define. Two files that define the same name, each for
# itself, do not go together.
DEFINED = re.compile(r"^(?!//|#|using |namespace |template)\w[^(={;\n]*?(?<!:)\b(\w+)(?:\(| = |\[| : | ?\{|;)", re.M)
# Macros of GoogleTest and of our own that look like definitions.
MACROS = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|[A-Z][A-Z_]+)$")
# A macro at the margin of a source would change the sources after it.
MACRO_DEFINED = re.compile(r"^#\s*define\s+(\w+)", re.M)
# Source text for other compilers, and a word after the name of a class, define nothing.
NO_NAMES = re.compile(r'R"(\w*)\(.*?\)\1"| final\b', re.S)
TOGETHER = 12


def names_in(text):
    """Returns the names that a source defines for itself."""
    text = NO_NAMES.sub("", text)
    return {name for name in DEFINED.findall(text) if not MACROS.match(name)} | set(MACRO_DEFINED.findall(text))


def groups_of(paths, key, read, most=TOGETHER):
    """Returns lists of paths with equal key(path) that define no name twice. Sources that share
    names with many others are dealt out first, each to the smallest group that it fits into, so
    that few sources are left alone."""
    names = {path: names_in(read(path)) for path in paths}
    defined = collections.Counter(name for path in paths for name in names[path])
    clashes = {path: sum(defined[name] - 1 for name in names[path]) for path in paths}
    groups = []
    for path in sorted(paths, key=lambda path: -clashes[path]):
        fitting = [group for group in groups if group["key"] == key(path) and len(group["paths"]) < most
                   and not names[path] & group["names"]]
        same = sum(1 for other in paths if key(other) == key(path))
        made = sum(1 for group in groups if group["key"] == key(path))
        if fitting and made * most >= same:
            group = min(fitting, key=lambda group: len(group["paths"]))
        else:
            group = {"key": key(path), "paths": [], "names": set()}
            groups.append(group)
        group["paths"].append(path)
        group["names"] |= names[path]
    return groups


def main():
    texts = {path: pathlib.Path(path).read_text() for path in sys.argv[1:]}
    alone = {path for path, text in texts.items() if MANY_TARGETS in text}
    groups = groups_of([p for p in texts if p not in alone], lambda path: pathlib.Path(path).parent, texts.get)
    for number, group in enumerate(groups):
        for path in group["paths"]:
            if len(group["paths"]) > 1:
                print(number, path)


if __name__ == "__main__":
    main()
