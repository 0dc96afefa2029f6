#!/usr/bin/env python3
"""Checks the documents.

1. What they name exists: linked files and headings, paths in backticks or in code blocks, and make
   targets.
2. Lines of prose have at most 100 characters. Tables, code and lines without a blank are excepted.
3. User pages say node, never vertex.
4. Every term in italics on a developer page is defined in the glossary of docs/architecture.md, and
   so is every term in TERMS. An entry has a definition and names a file, which has the classes and
   functions that the entry names.
5. Classes, functions and constants that developer pages name in backticks occur in the sources.
"""
import re

import tree

LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.S)
PATH = re.compile(r"(?<![\w./-])(?:\./)?((?:src|apps|bench|cmake|docs|examples|python|scripts|tests|\.ci)/[\w./*+-]*)")
MAKE = re.compile(r"(?:^|[`;&$]|\n)\s*make ([a-z][a-z-]*)")

LONGEST = 100
GLOSSARY = "docs/architecture.md"
# Nacre's own words that a newcomer meets in the first files they open.
TERMS = """gTask, table, site, option, tail, root, inlined value, pair, block, slot, arena, space, kernel, kind, plan, pass,
row program, micro-op, piece, segment, chunk, view, executor, back end, session, learner, sink, recording, bill, phase,
twin, seed, hop, vertex, node, DFG, outlier, once, workspace, scratch, plug-in, fingerprint, rules, candidate, floor"""
ENTRY = re.compile(r"^- \*\*(.+?)\*\*: (.*?)(?=^- \*\*|^#|\Z)", re.S | re.M)
ITALIC = re.compile(r"(?<![*\w`\\])\*(?!\*)([A-Za-z][\w -]*?)\*(?!\*)")
# Matches `Name`, `Name::member`, `Name::member()`, `function()` and `kConstant`, except names of
# the standard library and of CUDA.
NAME = re.compile(r"`((?:[A-Za-z]\w*::)*[A-Za-z]\w*)(\(\))?`")
# Names on developer pages that belong to other projects.
FOREIGN = {"BGRADA"}


def exists(base, name):
    name = name.rstrip(".,:")
    if "*" in name:
        return any(base.glob(name))
    return (base / name).exists()


def anchors(text):
    """Returns the names by which links reach the headings of a page."""
    headings = re.findall(r"^#+ (.*)", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def named_things(path, text, targets):
    folder = (tree.ROOT / path).parent
    for link, anchor in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        if link and not exists(folder, link):
            yield f"{path}: link to {link}, which does not exist"
        elif anchor and anchor not in anchors((folder / link).read_text() if link else text):
            yield f"{path}: link to {link}#{anchor}, a heading that does not exist"
    for code in CODE.findall(text):
        for name in PATH.findall(code):
            # Words in capitals are placeholders (tests/ROOM/x_test.cpp).
            if not re.search(r"(?:^|/)[A-Z_]{2,}(?:$|[/._])", name) and not exists(tree.ROOT, name):
                if not exists(folder, name):
                    yield f"{path}: names {name}, which does not exist"
        for target in MAKE.findall(code):
            if target not in targets:
                yield f"{path}: names 'make {target}', which the Makefile does not have"


def prose(text):
    """Yields the numbered lines outside of code blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def long_lines(path, text):
    for number, line in prose(text):
        if len(line) > LONGEST and not line.startswith("|") and " " in line.strip():
            yield f"{path}:{number}: {len(line)} characters of prose in a line, at most {LONGEST} are read with ease"


def is_user_page(path):
    guides = {"add_a_model.md", "add_an_op.md", "architecture.md", "results.md", "results_log.md"}
    return str(path) == "README.md" or (str(path.parent) == "docs" and path.name not in guides
                                        and not path.name.startswith("add_") and path.name != "library.md")


def words_for_users(path, text):
    for number, line in prose(text):
        plain = re.sub(r"`[^`]*`", "", line)
        if re.search(r"\b(?:vertex|vertices)\b", plain, re.I):
            yield f"{path}:{number}: user pages say node, not vertex"


def glossary():
    """Returns the terms in lower case, and the problems of their entries."""
    text = tree.read(GLOSSARY)
    terms, problems = set(), []
    for names, definition in ENTRY.findall(text):
        if len(definition.split()) < 6:
            problems.append(f"{GLOSSARY}: the entry '{names}' has no definition")
        if not PATH.search(definition):
            problems.append(f"{GLOSSARY}: the entry '{names}' names no file")
        files = [tree.ROOT / name for name in PATH.findall(definition)]
        words = set(re.findall(r"\w+", " ".join(file.read_text() for file in files if file.is_file())))
        for name, call in NAME.findall(definition):
            if (call or re.match(r"[A-Z]\w*[a-z]", name)) and not set(name.split("::")) <= words:
                problems.append(f"{GLOSSARY}: the entry '{names}' names {name}, which none of its files has")
        terms |= {name.strip().lower() for name in names.split(",")}
    wanted = {term.strip() for term in TERMS.replace("\n", " ").split(",")}
    problems += [f"{GLOSSARY}: the term '{term}' is not defined" for term in sorted(wanted) if term.lower() not in terms]
    return terms, problems


def undefined_terms(path, text, terms):
    for number, line in prose(text):
        for term in ITALIC.findall(re.sub(r"`[^`]*`", "", line)):
            name = term.lower()
            if name not in terms and name.rstrip("s") not in terms:
                yield f"{path}:{number}: '{term}' is in italics, but {GLOSSARY} does not define it"


def words_of_sources():
    found = set()
    for path in tree.files(".h", ".cpp", ".cu", ".py", ".txt", ".sh"):
        found.update(re.findall(r"\w+", tree.read(path)))
    return found


def missing_names(path, text, words):
    for number, line in prose(text):
        for name, call in NAME.findall(line):
            looks_like_code = call or "::" in name or re.match(r"[A-Z]\w*[a-z]|k[A-Z]", name)
            if looks_like_code and name not in FOREIGN and not set(name.split("::")) <= words:
                yield f"{path}:{number}: names {name}, which the sources do not have"


def main():
    targets = set(re.findall(r"^([a-z][a-z-]*):", tree.read("Makefile"), re.M))
    terms, problems = glossary()
    words = words_of_sources()
    for path in tree.files(".md"):
        text = tree.read(path)
        problems += named_things(path, text, targets)
        problems += long_lines(path, text)
        if is_user_page(path):
            problems += words_for_users(path, text)
        if str(path) == GLOSSARY or str(path).startswith("docs/dev/"):
            problems += undefined_terms(path, text, terms)
            problems += missing_names(path, text, words)
    tree.finish("check_docs", problems)


if __name__ == "__main__":
    main()
