#!/usr/bin/env python3
"""Trains the same models on one device and on several, and compares losses and scores.

    bench/devices/same_training.py build/release/nacre
    bench/devices/same_training.py build/bundle/nacre --where gpu,host --jobs 12

Every model is trained on 2, 3 and 4 ranks with every placement of operations (--halo-rows), in f32:

    threads     ranks of one process on the CPU
    processes   ranks that mpirun has started, on the CPU
    gpu         parts of one GPU
    host        one GPU and threads of the host

The losses of the first 10 steps must differ from those of one device by at most 1e-5 of their
value, and the test score after the last step by at most 0.3 %. The script prints one line for each
model and place, and every run that fails. It ends with status 1 if a run failed."""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# Models with batch normalisation are trained with SGD. The gradient of a bias in front of batch
# normalisation should be zero, and rounding makes it a tiny number. Adam would make large updates
# of these tiny numbers, and the scores would differ.
MODELS = {
    "gcn": ("--model", "gcn", "--hidden", 64, "--dropout", 0.3),
    "sage": ("--model", "sage", "--hidden", 48, "--norm", "batch", "--optimizer", "sgd", "--lr", 0.1),
    "gat": ("--model", "gat", "--hidden", 64, "--heads", 4, "--attention-dropout", 0.2),
    "rgcn": ("--model", "rgcn", "--hidden", 32, "--relations", 3, "--num-bases", 2),
    "gin": ("--model", "gin", "--hidden", 48, "--norm", "layer"),
    "sage-lstm": ("--model", "sage-lstm", "--hidden", 24),
}
PLACEMENTS = ("auto", "late", "early", "narrow", "columns", "sums")
STEPS = 10
LOSS, SCORE = 1e-5, 0.003


def devices(where, ranks):
    if where == "gpu":
        return ",".join(["cuda:0@16", "cuda:0@32", "cuda:0@24", "cuda:0@16"][:ranks])
    if where == "host":
        return ",".join(["cuda:0@64"] + ["cpu:2"] * (ranks - 1))
    return ",".join(["cpu:1"] * ranks)


class Comparison:
    def __init__(self, options, folder):
        self.o, self.folder = options, folder

    def run(self, name, *words, launcher=()):
        """Trains a model; returns the losses and the test score, or a message if the run failed."""
        command = [*launcher, os.path.abspath(self.o.nacre), "train", "--data", self.o.data, "--layers", 3, "--epochs",
                   self.o.epochs, "--seed", 3, "--checkpoint", self.folder / name, "--json", "-q", *words]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600,
                              env=dict(os.environ, NACRE_CACHE=str(self.folder / "cache")))
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or ["no message"])[-1]
        lines = (self.folder / name / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["loss"] for line in lines[:STEPS]], json.loads(done.stdout)["last_test_acc"]

    def single(self, model, gpu):
        device = ("--device", "cuda", "--precision", "f32") if gpu else ("--device", "cpu", "--threads", 2)
        return self.run(f"{model}-{'gpu' if gpu else 'cpu'}-one", *MODELS[model], *device)

    def several(self, case):
        model, where, ranks, rows = case
        words = [*MODELS[model], "--halo-rows", rows, "--shares", ",".join("1231"[:ranks])]
        launcher = ()
        if where == "processes":
            launcher = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", ranks)
            words += ["--threads", 1]
        else:
            words += ["--devices", devices(where, ranks)]
        if where in ("gpu", "host"):
            words += ["--precision", "f32"]
        return self.run("-".join(map(str, case)), *words, launcher=launcher)


def difference(got, want):
    """Returns the largest relative difference of losses and the difference of scores."""
    losses = max(abs(a - b) / abs(b) for a, b in zip(got[0], want[0], strict=True))
    return losses, abs(got[1] - want[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nacre")
    parser.add_argument("--data", default="twin:arxiv@0.03")
    parser.add_argument("--where", default="threads,processes", help="where to train, from threads, processes, gpu and host")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1, help="number of runs at a time")
    options = parser.parse_args()
    wheres, models = options.where.split(","), options.models.split(",")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        comparison = Comparison(options, pathlib.Path(folder))
        gpu = {where: where in ("gpu", "host") for where in wheres}
        singles = list(itertools.product(models, sorted(set(gpu.values()))))
        want = dict(zip(singles, pool.map(lambda case: comparison.single(*case), singles)))
        cases = list(itertools.product(models, wheres, (2, 3, 4), PLACEMENTS))
        failed = 0
        worst = {}
        for case, got in zip(cases, pool.map(comparison.several, cases)):
            model, where, ranks, rows = case
            one = want[model, gpu[where]]
            if isinstance(got, str) or isinstance(one, str):
                text = got if isinstance(got, str) else f"one device: {one}"
            else:
                losses, score = difference(got, one)
                known = worst.setdefault((model, where), [0, 0.0, 0.0])
                worst[model, where] = [known[0] + 1, max(known[1], losses), max(known[2], score)]
                text = "" if losses <= LOSS and score <= SCORE else f"losses differ by {losses:.1e}, scores by {100 * score:.2f} %"
            if text:
                failed += 1
                print(f"FAILED {model}, {where}, {ranks} ranks, {rows}: {text}", flush=True)
        print(f"{'model':<10} {'where':<10} {'runs':>5} {'losses differ by':>17} {'scores by':>10}")
        for (model, where), (count, losses, score) in worst.items():
            print(f"{model:<10} {where:<10} {count:>5} {losses:>17.1e} {100 * score:>8.2f} %")
        print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
