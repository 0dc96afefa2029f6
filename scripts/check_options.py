#!/usr/bin/env python3
"""Checks that every option of the commands that train, plan, partition, simulate, report and use a
model is in tests/apps/matrix/table.py, as a value of a factor or with the test that tries it.
Options of nacre bench and nacre data are not checked."""
import pathlib
import re
import sys

import tree

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "apps" / "matrix"))
import table

# The files that describe these commands and the options they share.
SOURCES = ("options", "options_ranks", "train", "evaluate", "plan", "recommend", "explain", "partition", "simulate", "run")
# Matches add_option("--name,-n", …), add_flag, add_call, ….
ADDED = re.compile(r"\badd_\w+\s*\(\s*\"(-[^\"]+)\"")


def options_of_the_program():
    """Returns a map from each option to the file that describes it. Of several spellings, the
    first long one counts."""
    found = {}
    for path in sorted((ROOT / "apps" / "nacre").glob("*.cpp")):
        if path.stem.split("_")[0] not in SOURCES:
            continue
        for names in ADDED.findall(path.read_text()):
            spellings = names.split(",")
            first = next((name for name in spellings if name.startswith("--")), spellings[0])
            found.setdefault(first, (path.relative_to(ROOT), set(spellings)))
    return found


def words_of_the_table():
    text = " ".join([table.BASE, table.AFTERWARDS, *(a for values in table.FACTORS.values() for a in values.values())])
    return set(text.split())


def main():
    problems = []
    options = options_of_the_program()
    if len(options) < 60:
        problems.append(f"only {len(options)} options were found in apps/nacre: the way they are added has changed")
    words = words_of_the_table()
    for option, (path, names) in sorted(options.items()):
        if not names & (words | set(table.ELSEWHERE)):
            problems.append(f"{path}: {option} is not in tests/apps/matrix/table.py: add a value to a factor, or to "
                            "ELSEWHERE the test that tries it")
    known = set().union(*(names for _, names in options.values())) if options else set()
    for option in sorted(word for word in words if word.startswith("--")):
        if option not in known:
            problems.append(f"tests/apps/matrix/table.py: the program has no option {option}")
    for option, test in table.ELSEWHERE.items():
        if option not in known:
            problems.append(f"tests/apps/matrix/table.py: the program has no option {option}")
        elif option not in (ROOT / test).read_text():
            problems.append(f"tests/apps/matrix/table.py: {test} does not try {option}")
    tree.finish("check_options", problems)


if __name__ == "__main__":
    main()
