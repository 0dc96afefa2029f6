#!/usr/bin/env python3
"""Checks that what the documents name exists: linked files, paths in backticks or in code blocks, and make targets."""
import re

import tree

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.S)
PATH = re.compile(r"(?<![\w./-])(?:\./)?((?:src|apps|bench|cmake|docs|examples|python|scripts|tests|\.ci)/[\w./*+-]*)")
MAKE = re.compile(r"(?:^|[`;&$]|\n)\s*make ([a-z][a-z-]*)")


def exists(base, name):
    name = name.rstrip(".,:")
    if "*" in name:
        return any(base.glob(name))
    return (base / name).exists()


def problems_of(path, targets):
    text = tree.read(path)
    folder = (tree.ROOT / path).parent
    for link in LINK.findall(text):
        if not re.match(r"[a-z]+:", link) and not exists(folder, link):
            yield f"{path}: link to {link}, which does not exist"
    for code in CODE.findall(text):
        for name in PATH.findall(code):
            # Words in capitals are placeholders (tests/ROOM/x_test.cpp).
            if not re.search(r"(?:^|/)[A-Z_]{2,}(?:$|[/._])", name) and not exists(tree.ROOT, name):
                if not exists(folder, name):
                    yield f"{path}: names {name}, which does not exist"
        for target in MAKE.findall(code):
            if target not in targets:
                yield f"{path}: names 'make {target}', which the Makefile does not have"


def main():
    targets = set(re.findall(r"^([a-z][a-z-]*):", tree.read("Makefile"), re.M))
    problems = [problem for path in tree.files(".md") for problem in problems_of(path, targets)]
    tree.finish("check_docs", problems)


if __name__ == "__main__":
    main()
