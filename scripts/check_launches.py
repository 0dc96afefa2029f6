#!/usr/bin/env python3
"""Checks that the parameters of generated kernels are written once.

They are lists of NACRE_PARAMS (src/nacre/kernel/cuda/params.h). Only params.cpp writes the head of
a kernel, and every launch passes a LaunchParams, which is checked against that head.
"""
import re

import tree

HEAD = re.compile(r"__global__")
WRITER = "src/nacre/kernel/cuda/params.cpp"
# Matches a launch by the device itself, whose values come from a LaunchParams.
LAUNCH = re.compile(r"\bdevice_?(?:\(\))?(?:->|\.)launch\(([^;]*);")
ARGUMENTS = re.compile(r"\bLaunch" + r"Args\b")


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def main():
    problems = []
    for path in tree.files():
        if path.suffix not in (".h", ".cpp") or path.parts[0] == "tests":
            continue
        text = tree.read(path)
        if str(path) != WRITER:
            for match in HEAD.finditer(text):
                problems.append(f"{path}:{line_of(text, match)}: the head of a kernel is written by Entry (params.h)")
        for match in LAUNCH.finditer(text):
            if "pointers" not in match.group(1):
                problems.append(f"{path}:{line_of(text, match)}: launch with a LaunchParams (params.h)")
        for match in ARGUMENTS.finditer(text):
            problems.append(f"{path}:{line_of(text, match)}: fill a struct of NACRE_PARAMS by name (params.h)")
    tree.finish("check_launches", problems)


if __name__ == "__main__":
    main()
