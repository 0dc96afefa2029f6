#!/usr/bin/env python3
"""Checks rules of the planner's code: operands are read by name, and the table of passes is
complete."""
import re
import sys

import tree

# Operands are named in src/nacre/plan/operands.h; nobody else may rely on their order.
POSITIONAL = re.compile(r"(?:\.|->)args\s*(?:\[|\.(?:at|front|back|data)\()|=\s*[\w.>()-]*(?:\.|->)args\s*;")
PASSES = "src/nacre/plan/passes.cpp"
PAGE = "docs/plans.md"  # lists the passes for users
ENTRY = re.compile(r'\{\s*"(\w*)",\s*((?:"[^"\n]*"\s*)+),')
FOLDER = ("src", "nacre", "plan", "passes")


def positional(text):
    """Returns the line number and the text of every operand that is taken by its position."""
    return [(text.count("\n", 0, m.start()) + 1, m.group().strip()) for m in POSITIONAL.finditer(text)]


def entries(text):
    """Returns the name of every pass of the table with the reason for its place."""
    table = text[text.index("static const std::vector<Pass> table"):text.index("return table;")]
    return {name: "".join(re.findall(r'"([^"\n]*)"', place)) for name, place in ENTRY.findall(table)}


def check_passes(text, files, declared):
    """Compares the table in `text` with the files of the folder and the declared functions."""
    table = entries(text)
    problems = [f"{PASSES}: the table has no pass '{name}' ({'/'.join(FOLDER)}/{name}.cpp)" for name in files
                if name not in table]
    problems += [f"{PASSES}: the function {name} is declared, but no pass of the table is called so"
                 for name in declared if name not in table]
    problems += [f"{PASSES}: pass '{name}' needs a reason for its place" for name, place in table.items()
                 if len(place.split()) < 3]
    return problems


def self_check():
    """Ends the program if the checks above do not find what they are there for."""
    found = ["f32(k.args[0])", "k->args [1]", "k.args.back()", "const auto& args = k.kernel.args;"]
    fine = ["operands<SpmmOperands>(k).x", "for (const NodeRef a : k.args)", "call.args, scratch", "argv.args = 3;"]
    table = 'static const std::vector<Pass> table = {{"a", "after b, which counts", x}, {"b", "", y}}; return table;'
    problems = check_passes(table, ["a", "c"], ["a", "d"])
    if not all(map(positional, found)) or any(map(positional, fine)) or len(problems) != 3:
        sys.exit("check_plan: the check does not find what it must")


def main():
    self_check()
    problems = []
    for path in tree.files(".h", ".cpp"):
        if path.parts[0] not in ("src", "apps", "tests", "examples") or path.match("src/nacre/plan/operands.*"):
            continue
        for line, match in positional(tree.read(path)):
            problems.append(f"{path}:{line}: '{match}': read operands by name (src/nacre/plan/operands.h)")
    files = [path.stem for path in tree.files(".cpp") if path.parts[:-1] == FOLDER]
    declared = re.findall(r"^void (\w+)\(Draft& draft\);", tree.read("src/nacre/plan/passes.h"), re.M)
    problems += check_passes(tree.read(PASSES), files, declared)
    page = re.findall(r"^\| `(\w+)` \|", tree.read(PAGE).split("## Passes")[-1].split("\n## ")[0], re.M)
    if page != list(entries(tree.read(PASSES))):
        problems.append(f"{PAGE}: its table of passes is not that of {PASSES}")
    tree.finish("check_plan", problems)


if __name__ == "__main__":
    main()
