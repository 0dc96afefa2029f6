#!/usr/bin/env python3
"""Checks rules of the planner's code: operands are read by name, the table of passes is complete,
and the GPU back end decides nothing that the lists of variants should decide."""
import re
import sys

import tree

# Operands are named in src/nacre/plan/operands.h; nobody else may rely on their order.
POSITIONAL = re.compile(r"(?:\.|->)args\s*(?:\[|\.(?:at|front|back|data)\()|=\s*[\w.>()-]*(?:\.|->)args\s*;")
PASSES = "src/nacre/plan/passes.cpp"
PAGE = "docs/plans.md"  # lists the passes for users
ENTRY = re.compile(r'\{\s*"(\w*)",\s*((?:"[^"\n]*"\s*)+),')
FOLDER = ("src", "nacre", "plan", "passes")

ENGINE = ("src", "nacre", "engine", "gpu")
VARIANTS = ("src", "nacre", "plan", "variants")
# Whoever reads one of these facts is about to decide how a kernel runs.
DECIDES = re.compile(r"\b(?:rows_budget|copies_budget|gathered_cache|l2_bytes|cache_bytes|multiprocessors|mean_degree|"
                     r"split_outliers|tune|free_bytes|memory_bytes|bit_ceil|clamp|constant|(?<=kernel\.)once)\b")
# A limit that a binder has of its own.
LIMIT = re.compile(r"\bconstexpr (?:int|int64_t|double) (k\w+) =(?! INT64_MAX)[^;]*\d|(?<![<>])[<>]=? ?(\d\d+)\b")
BINDER = re.compile(r"(?:bind_\w+|row_\w+|gpu_pairs|step_list|edge_order|lstm_sequences)\.(?:h|cpp)")
# The facts and limits that the back end may read, and why.
READS = {
    "bind_rows.cpp": {
        "mean_degree": "the number of the plan is handed to the writer of the source",
        "clamp": "the blocks of a sum over all rows are the same on every device"},
    "bind_tasks.cpp": {
        "mean_degree": "the number of the plan is handed to the writer of the source",
        "free_bytes": "a fact of the decision that only the device knows"},
    "context.cpp": {
        "multiprocessors": "the traits of the device, which the lists read", "l2_bytes": "the same",
        "memory_bytes": "the same", "free_bytes": "the same", "tune": "the same", "cache_bytes": "the same"},
    "context.h": {"tune": "options of the device, which become traits", "cache_bytes": "the same"},
    "edge_order.cpp": {"kPiece": "numbers of edges pass through a buffer of this size"},
    "feature_store.cpp": {"multiprocessors": "rows of features are loaded by as many blocks as the device holds"},
    "function_key.cpp": {"mean_degree": "a part of the key of a source"},
    "gpu_backend.cpp": {
        "tune": "sources are requested before anything is timed", "free_bytes": "what planning may use",
        "once": "kernels that run once do so before the first step"},
    "gpu_pairs.cpp": {
        "clamp": "a type has at least one run, and no run is too short",
        "kPack": "as many entries as a group of threads reads at once", "kSlice": "the same of a tensor core",
        "kShortRun": "a run costs a matrix of partial sums"},
    "rank_buffers.cpp": {"bit_ceil": "buffers of similar sizes are used again"},
    "row_products.cpp": {"multiprocessors": "a product has as many blocks as the device holds at once"},
    "sink.cpp": {"bit_ceil": "buffers of similar sizes are used again"},
}
LIST = re.compile(r"const VariantList<\w+>& (\w+)\(\) \{\s*static const VariantList<\w+> list = \{\s*\"([^\"]+)\"")
DECISION_PAGES = ("docs/dev/planner.md", "docs/plans.md")


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


def decides(name, text):
    """Returns (line, what) of every fact or limit in the text of the file that would decide how a
    kernel runs."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        code = re.sub(r"\"(?:[^\"\\]|\\.)*\"", '""', line.split("//")[0])
        words = [match.group() for match in DECIDES.finditer(code)]
        if BINDER.fullmatch(name):
            words += [match.group(1) or match.group(2) for match in LIMIT.finditer(code)]
        found += [(number, word) for word in words]
    return found


def check_engine(folder, sources):
    """Checks that the sources (text by name) read no fact that is not among READS."""
    problems, read = [], {}
    for name, text in sources.items():
        for line, word in decides(name, text):
            read.setdefault(name, set()).add(word)
            if word not in READS.get(name, {}):
                problems.append(f"{folder}/{name}:{line}: '{word}': a list of variants decides how a kernel runs "
                                f"({'/'.join(VARIANTS)}); if nothing is decided here, say why in READS of check_plan.py")
    for name, words in READS.items():
        problems += [f"check_plan.py: {name} no longer reads '{word}'" for word in words
                     if word not in read.get(name, set())]
    return problems


def check_lists(lists, table, engine, pages):
    """Checks that every list of variants (decision by function) is among all lists, is asked by the
    engine, and stands on the pages (text by name)."""
    problems = []
    for function, decision in lists.items():
        if f"use({function}());" not in table:
            problems.append(f"src/nacre/plan/variants.cpp: each_list() does not have {function}()")
        if f"{function}()" not in engine:
            problems.append(f"{'/'.join(ENGINE)}: nobody asks {function}() ('{decision}')")
        for page, text in pages.items():
            if not re.search(rf"^\| [^|]*`{re.escape(decision)}`", text, re.M):
                problems.append(f"{page}: its table of variants does not have '{decision}'")
    return problems


def self_check():
    """Ends the program if the checks above do not find what they are there for."""
    found = ["f32(k.args[0])", "k->args [1]", "k.args.back()", "const auto& args = k.kernel.args;"]
    fine = ["operands<SpmmOperands>(k).x", "for (const NodeRef a : k.args)", "call.args, scratch", "argv.args = 3;"]
    table = 'static const std::vector<Pass> table = {{"a", "after b, which counts", x}, {"b", "", y}}; return table;'
    problems = check_passes(table, ["a", "c"], ["a", "d"])
    private = ["const auto n = traits.rows_budget() / 8;", "if (k.kernel.once) x();", "if (degree > 32) y();",
               "constexpr int64_t kLong = 100;", "std::clamp<int64_t>(a, b, c)"]
    public = ["steps.carve.take(rows * 16);", "// clamp", "once<int>(key, make)", "x >= 0 && y > 1", 'key("tune")', "1 << 16"]
    seen = [decides("bind_rows.cpp", line) for line in private + public]
    bad_list = check_lists({"sum_variants": "sums"}, "", "sum_variants()", {"page": "| `other` |"})
    if not all(seen[:len(private)]) or any(seen[len(private):]) or len(bad_list) != 2:
        sys.exit("check_plan: the check of decisions does not find what it must")
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
    sources = {path.name: tree.read(path) for path in tree.files(".h", ".cpp") if path.parts[:-1] == ENGINE}
    problems += check_engine("/".join(ENGINE), sources)
    lists = {}
    for path in tree.files(".cpp"):
        if path.parts[:-1] == VARIANTS:
            lists.update(LIST.findall(tree.read(path)))
    if len(lists) < 20:
        problems.append(f"{'/'.join(VARIANTS)}: the lists of variants are written in a way that this check cannot read")
    table = tree.read("src/nacre/plan/variants.cpp")
    problems += check_lists(lists, table[table.index("void each_list("):], "".join(sources.values()),
                            {page: tree.read(page) for page in DECISION_PAGES})
    tree.finish("check_plan", problems)


if __name__ == "__main__":
    main()
