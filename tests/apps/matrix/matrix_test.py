#!/usr/bin/env python3
"""Every pair of settings in one run or another: trains, learns, and what follows training works;
what must not be combined is refused with the words of the table.

    python3 tests/apps/matrix/matrix_test.py build/release/nacre
        [--device cuda] [--jobs 2] [--every 5] [--only TEXT]

--device cuda: on a GPU, or what the plug-in at NACRE_PLUGIN_PATH says is one. --every 5: each
fifth row.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import cover
import graphs
import runs
import table

REFUSALS = 6  # of one rule at most


def options_of(program, command):
    done = subprocess.run([program, command, "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"(?:^ +|,)(--?[a-z][a-z-]*)", done.stdout, re.MULTILINE))


class Shared:
    """What all rows have in common."""

    def __init__(self, options, folder):
        self.program = os.path.abspath(options.program)
        self.folder = folder
        self.factors = table.factors(options.device)
        self.rules = table.rules(options.device)
        self.plugin = "/absent" if options.device == "cpu" else os.environ.get("NACRE_PLUGIN_PATH")
        self.accepted = {command: options_of(self.program, command)
                         for command in ("train", "plan", "explain", "eval", "predict")}
        (folder / "data").mkdir()
        (folder / "rates").mkdir()  # see Place.known_rates()
        graphs.write_all(folder / "data", self.program)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=runs.ENOUGH, help="fewer than that: nothing need be learned")
    parser.add_argument("--only", default="", help="rows whose settings match this regular expression")
    parser.add_argument("--list", action="store_true", help="show the rows and run nothing")
    return parser.parse_args()


def text_of(row, factors):
    """Returns a text that names the values of a row that are not the first of their factors."""
    return ", ".join(f"{name}={value}" for name, value in row.items() if value != next(iter(factors[name])))


def run_all(shared, work, jobs):
    """Runs (row, rule) pairs; returns the commands run and the faults as (row, text)."""
    commands, faults = 0, []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(runs.run_row, shared, row, rule): row for row, rule in work}
        for future in concurrent.futures.as_completed(waiting):
            try:
                commands += len(future.result())
            except runs.Fault as fault:
                faults.append((waiting[future], str(fault)))
    return commands, faults


def main():
    options = parse()
    runs.EPOCHS = options.epochs
    start = time.monotonic()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nacre-matrix-"))
    try:
        shared = Shared(options, folder)
        array = cover.Array(shared.factors, shared.rules)
        good = array.rows()
        work = [(row, None) for row in good]
        work += [(row, rule) for rule, row in array.broken_rows(REFUSALS) if rule not in table.OPEN]
        work = [pair for pair in work if re.search(options.only, text_of(pair[0], shared.factors))][::options.every]
        if options.list:
            for row, rule in work:
                print(f"{'refused' if rule else 'trained'}: {text_of(row, shared.factors)}")
            return 0
        made = time.monotonic() - start
        commands, faults = run_all(shared, work, options.jobs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for row, text in faults:
        print(f"\n{text_of(row, shared.factors)}\n{text}")
    covered = set().union(*(array.pairs_of(row) for row, rule in work if rule is None)) if work else set()
    refused = sum(rule is not None for _, rule in work)
    values = sum(len(values) for values in shared.factors.values())
    print(f"matrix: {len(work) - refused} rows trained, {refused} refused as the table says, {commands} commands; "
          f"{len(shared.factors)} factors, {values} values, {len(covered)} pairs; array made in {made:.1f} s, "
          f"all in {time.monotonic() - start:.1f} s")
    if faults:
        common = collections.Counter(text.splitlines()[0] for _, text in faults)
        for what, count in common.most_common():
            print(f"  {count} x {what}")
        print(f"matrix: {len(faults)} rows FAILED")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
