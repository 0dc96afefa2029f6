#!/usr/bin/env python3
"""Compares the texts of plans over a grid of models, graphs, devices, precisions and ways to
plan.

    python3 tests/apps/plan_texts.py --new build/release/nacre
        compares one program with the kept record, tests/apps/plan_texts.txt
    python3 tests/apps/plan_texts.py --new build/release/nacre --update
        writes the record anew
    python3 tests/apps/plan_texts.py --old OLD_NACRE --new NEW_NACRE [--cuda]
        compares two programs text by text and shows where they differ; with --cuda, also the
        CUDA source of the kernels
    python3 tests/apps/plan_texts.py --new build/release/nacre --show 'gat untyped cpu'
        prints the texts of the cases whose names contain these words

Only what is the same on every machine is compared: plans by rules, without times and without the
memory of the CPU. The record holds, for each case, the name of its list of kernels and a digest
of the choices, the DFG, the kernels and the bytes of memory; sentences (reasons, the summary)
may change without it. Each list of kernels is kept once, to be read.
"""
import argparse
import concurrent.futures
import difflib
import hashlib
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "matrix")]
import cli
import graphs

RECORD = HERE / "plan_texts.txt"
MODELS = ("gcn", "sage", "gat", "gatv2", "gin", "rgcn", "sage-lstm", "mlp", "lightgcn", "ngcf")
GRAPHS = {"untyped": ("twin:cora@0.1",), "typed": ("typed.npz",), "kinds": ("kinds.npz", "--input-dim", "8")}
PLANS = ("vertex", "edge", "tensor", "dst-id=1,edge-id=32")
SHOWN = 40  # lines of one difference
ASIDE = ("--deterministic", "--threads", "2", "--hidden", "32", "-q", "-v")


def cases():
    """Returns the arguments of `nacre plan` for each case, by the name of the case."""
    found = {}

    def add(model, graph, device, *options):
        words = [word for word in options if not word.startswith("--")]
        name = " ".join([model, graph, "cuda" if device.startswith("cuda") else device, *words])
        found[name] = ["plan", "--model", model, "--data", *GRAPHS[graph], "--device", device, *options, *ASIDE]

    for model, graph in itertools.product(MODELS, GRAPHS):
        for device in ("cpu", "cuda:typical"):
            for mode in ("full", "minibatch"):
                add(model, graph, device, "--plan", "off", "--mode", mode)
            for plan in PLANS:
                add(model, graph, device, "--plan", plan)
        for precision in ("tf32", "bf16"):
            add(model, graph, "cuda:typical", "--plan", "off", "--precision", precision)
    for mode, plan in itertools.product(("full", "minibatch"), ("off", "dst-id=1,edge-id=32")):
        add("rgcn", "typed", "cuda:typical", "--plan", plan, "--mode", mode, "--precision", "bf16")
        add("sage", "untyped", "cpu", "--plan", plan, "--mode", mode, "--aggr", "max")
        add("gcn", "untyped", "cpu", "--plan", plan, "--mode", mode, "--norm", "batch", "--residual", "--dropout", "0.5")
    return found


def plain(text, device):
    """Returns the text without what depends on the machine."""
    text = re.sub(r"^epoch .*\n|^time in .*\n|^more .*\n|^plan .*ready in.*\n", "", text, flags=re.M)
    text = re.sub(r"^memory  .*\n", "", text, flags=re.M)
    if device == "cpu":
        text = re.sub(r"^memory of a run:\n(?:  .*\n)*", "", text, flags=re.M)
    return text


class Runner:
    def __init__(self, folder, cuda):
        self.folder = folder
        self.cuda = cuda
        self.environment = dict(os.environ, NACRE_PLUGIN_PATH="/absent", NACRE_CACHE=str(folder / "cache"))

    def text(self, program, arguments):
        device = arguments[arguments.index("--device") + 1]
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            listing = self.cuda and device != "cpu"
            more = ["--emit-cuda", out] if listing else []
            done = subprocess.run([program, *arguments, *more], cwd=self.folder, env=self.environment,
                                  capture_output=True, text=True, timeout=120)
            if done.returncode == 2:
                return "refused\n"
            if done.returncode != 0:
                sys.exit(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
            text = plain(done.stdout.replace(out, "OUT"), device)
            for file in sorted(pathlib.Path(out).iterdir()):
                text += f"---- {file.name}\n{file.read_text()}"
            return text

    def all(self, program, chosen):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return dict(zip(chosen, pool.map(lambda name: self.text(program, chosen[name]), chosen)))


def essence(text):
    """Returns what the record holds a digest of: the choices, the DFG, the kernels and the bytes of
    memory, but no sentences."""
    text = text[max(text.find("\nplan "), 0):]
    text = re.sub(r"^ +(?:not faster|variant of [A-Za-z' ]+): .*\n", "", text, flags=re.M)
    return re.sub(r"^  [a-z(].*? +\d[\d.]* \w+ +([\d,]+ B)$", r"\1", text, flags=re.M)


def kernels_of(text):
    """Returns a line for each kernel: its kind, and what it reads, writes and computes."""
    lines = re.findall(r"^  \[ *\d+\] (\S+) +(.*?)  +\S+ \S+, \S+ GFLOP  \((.*)\)$", text, re.M)
    short = [f"{kind} {moved.strip()} ({' '.join(re.findall('%[0-9]+', nodes))})" for kind, moved, nodes in lines]
    return "\n".join(short) or text.strip()


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def record_of(texts):
    """Returns the record's text: a line for each case, then every list of kernels once."""
    lists = {digest(kernels_of(text)): kernels_of(text) for text in texts.values()}
    first = {}
    for text in texts.values():
        first.setdefault(digest(kernels_of(text)), len(first) + 1)
    lines = [f"{name}: kernels {digest(kernels_of(text))}, text {digest(essence(text))}" for name, text in texts.items()]
    for name, number in sorted(first.items(), key=lambda item: item[1]):
        lines += ["", f"kernels {name}"] + ["  " + line for line in lists[name].splitlines()]
    return "\n".join(lines) + "\n"


def read_record():
    kept, lists = {}, {}
    for block in RECORD.read_text().split("\n\n"):
        lines = block.strip("\n").splitlines()
        if lines[0].startswith("kernels "):
            lists[lines[0].split()[1]] = [line[2:] for line in lines[1:]]
            continue
        for line in lines:
            name, kernels, text = re.fullmatch(r"(.*): kernels (\w+), text (\w+)", line).groups()
            kept[name] = (kernels, text)
    return kept, lists


def show(name, old, new):
    lines = list(difflib.unified_diff(old, new, "before", "now", lineterm="", n=1))
    print(f"\n{name}:", *lines[:SHOWN], sep="\n  ")
    if len(lines) > SHOWN:
        print(f"  … and {len(lines) - SHOWN} more lines")


def compare_with_record(texts):
    """Shows what differs from the record; returns how many cases do."""
    kept, lists = read_record()
    differing, shown = 0, set()
    for name in sorted(set(kept) - set(cases())):
        print(f"{name}: is in the record, but no longer a case")
        differing += 1
    for name, text in texts.items():
        kernels = kernels_of(text)
        now = (digest(kernels), digest(essence(text)))
        if kept.get(name) == now:
            continue
        differing += 1
        if name not in kept:
            print(f"{name}: is not in the record")
        elif kept[name][0] == now[0]:
            print(f"{name}: the same kernels, but another DFG, other choices, bytes or operations")
        elif (kept[name][0], now[0]) in shown:
            print(f"{name}: differs like a case above")
        else:
            shown.add((kept[name][0], now[0]))
            show(name, lists[kept[name][0]], kernels.splitlines())
    return differing


def compare_programs(old, new):
    differing, shown = 0, set()
    for name in old:
        if old[name] == new[name]:
            continue
        differing += 1
        lines = list(difflib.unified_diff(old[name].splitlines(), new[name].splitlines(), lineterm="", n=0))
        changes = tuple(line for line in lines if not line.startswith("@@"))
        if changes in shown:
            print(f"{name}: differs like a case above")
        else:
            shown.add(changes)
            show(name, old[name].splitlines(), new[name].splitlines())
    return differing


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--new", required=True, help="the program")
    parser.add_argument("--old", help="the program to compare with, instead of the record")
    parser.add_argument("--cuda", action="store_true", help="with --old: also compare the CUDA source of the kernels")
    parser.add_argument("--update", action="store_true", help="write the record anew")
    parser.add_argument("--show", help="print the texts of the cases with these words in their names")
    parser.add_argument("--only", default="", help="cases whose names contain this text")
    options = parser.parse_args()
    if options.update and options.only:
        parser.error("--update writes all cases; leave out --only")
    return options


def main():
    options = parse()
    chosen = {name: arguments for name, arguments in cases().items() if (options.show or options.only) in name}
    with tempfile.TemporaryDirectory(prefix="nacre-plans-") as folder:
        folder = pathlib.Path(folder)
        for name in ("typed", "kinds"):
            (folder / f"{name}.npz").write_bytes(cli.npz(getattr(graphs, name)()))
        runner = Runner(folder, options.cuda and options.old is not None)
        texts = runner.all(os.path.abspath(options.new), chosen)
        if options.show:
            for name, text in texts.items():
                print(f"==== {name}\n{text}")
            return 0
        if options.update:
            RECORD.write_text(record_of(texts))
            print(f"{RECORD}: {len(texts)} cases")
            return 0
        if options.old:
            differing = compare_programs(runner.all(os.path.abspath(options.old), chosen), texts)
        else:
            differing = compare_with_record(texts)
    print(f"{differing} of {len(texts)} plans differ" if differing else f"{len(texts)} plans are as before")
    if differing and not options.old:
        print("If the plans are meant to change, run tests/apps/plan_texts.py --new PROGRAM --update and look at the\n"
              "difference in tests/apps/plan_texts.txt. The whole texts of both programs can be compared with --old.")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
