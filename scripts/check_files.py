#!/usr/bin/env python3
"""Checks what every text file keeps to: length, no paths of one machine, no leftovers."""
import re

import tree

LONGEST = 600  # lines of code or build files
CODE = (".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake")
# Written so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.$})/-])/(?:work|root|tmp|home)/" + r"[\w.]")
LEFTOVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME)\b|^(?:<{7}|>{7}) ", re.M)
# JSON from outside may be nested without end.
PARSED_JSON = re.compile(r"\bjson::parse" + r"\(")
BINARY = (".npz", ".npy", ".gz", ".bin", ".png", ".nacre")


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def main():
    problems = []
    for path in tree.files():
        if path.name == "LICENSE" or path.suffix in BINARY or "corpus" in path.parts:
            continue
        text = tree.read(path)
        lines = text.count("\n")
        if path.suffix in CODE and lines > LONGEST:
            problems.append(f"{path}: {lines} lines; split it (at most {LONGEST})")
        for match in MACHINE_PATH.finditer(text):
            problems.append(f"{path}:{line_of(text, match)}: path of one machine: {match.group()}…")
        if path.parts[:2] == ("src", "nacre") and path.name != "json_text.h":
            for match in PARSED_JSON.finditer(text):
                problems.append(f"{path}:{line_of(text, match)}: read JSON with parse_json (src/nacre/base/json_text.h)")
        for match in LEFTOVER.finditer(text):
            problems.append(f"{path}:{line_of(text, match)}: leftover: {match.group().strip()}")
        if text and not text.endswith("\n"):
            problems.append(f"{path}: no newline at the end")
        for number, line in enumerate(text.splitlines(), 1):
            if line != line.rstrip():
                problems.append(f"{path}:{number}: white space at the end of the line")
                break
    tree.finish("check_files", problems)


if __name__ == "__main__":
    main()
