#!/usr/bin/env python3
"""Checks rules for all text files: length, comments that are read with ease, no paths of one
machine, no leftovers."""
import io
import re
import tokenize

import tree

LONGEST = 600  # lines of code or build files
LONGEST_COMMENT = 100  # characters of a line with a comment; code alone may have 120
CODE = (".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake")
# Written so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.$})/-])/(?:work|root|tmp|home)/" + r"[\w.]")
LEFTOVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME)\b|^(?:<{7}|>{7}) ", re.M)
# JSON from outside may be nested without end.
PARSED_JSON = re.compile(r"\bjson::parse" + r"\(")
# Code asks a back end what it does (Backend::on_host() and its neighbours), not what it is called.
DEVICE_NAME = re.compile(r"\bname\(\)\s*[!=]=\s*" + r'"(?:cpu|cuda)"')
BINARY = (".npz", ".npy", ".gz", ".bin", ".png", ".nacre")


# Strings and comments of C++; comments are what begins with two slashes.
CPP_TOKEN = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*', re.S)
# Comments for programs, which have to stand on one line.
FOR_PROGRAMS = re.compile(r"//.*NOLINT|^\s*#!")


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def python_comments(text):
    """Yields the numbers of the lines with comments or docstrings."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_statement = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and is_statement):
            yield from range(token.start[0], token.end[0] + 1)
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type


def comments(path, text):
    """Returns the numbers of the lines with comments."""
    if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
        return (line_of(text, match) for match in CPP_TOKEN.finditer(text) if match.group().startswith("//"))
    if path.suffix == ".py":
        return python_comments(text)
    if path.suffix in (".sh", ".cmake") or path.name in ("Makefile", "CMakeLists.txt", "run"):
        return (n for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("#"))
    return ()


def long_comments(path, text):
    lines = text.splitlines()
    for number in sorted(set(comments(path, text))):
        line = lines[number - 1]
        if len(line) > LONGEST_COMMENT and not FOR_PROGRAMS.search(line):
            yield (f"{path}:{number}: {len(line)} characters in a line with a comment; "
                   f"at most {LONGEST_COMMENT} are read with ease")


def main():
    problems = []
    for path in tree.files():
        if path.name == "LICENSE" or path.suffix in BINARY or "corpus" in path.parts:
            continue
        text = tree.read(path)
        lines = text.count("\n")
        if path.suffix in CODE and lines > LONGEST:
            problems.append(f"{path}: {lines} lines; split it (at most {LONGEST})")
        problems += long_comments(path, text)
        for match in MACHINE_PATH.finditer(text):
            problems.append(f"{path}:{line_of(text, match)}: path of one machine: {match.group()}…")
        if path.parts[:2] == ("src", "nacre") and path.name != "json_text.h":
            for match in PARSED_JSON.finditer(text):
                problems.append(f"{path}:{line_of(text, match)}: read JSON with parse_json (src/nacre/base/json_text.h)")
        for match in DEVICE_NAME.finditer(text):
            problems.append(f"{path}:{line_of(text, match)}: ask the back end what it does, not its name: on_host()")
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
