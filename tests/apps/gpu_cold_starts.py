#!/usr/bin/env python3
"""Starts many mini-batch runs on a GPU, each with an empty cache folder, several at a time, and
counts those that fail.

A run with nothing in its caches compiles its kernels while batches are being loaded, so threads
meet in an order that warm runs never show. Usage, on a machine with a GPU:

    python3 tests/apps/gpu_cold_starts.py build/cuda/nacre --runs 100 --jobs 8
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

MODELS = {
    "sage": ["--layers", "3", "--hidden", "256", "--fanout", "15,10,5", "--precision", "tf32"],
    "gat": ["--layers", "3", "--hidden", "256", "--heads", "4", "--fanout", "10,5,5"],
    "gcn": ["--layers", "2", "--hidden", "128", "--fanout", "10,10", "--precision", "bf16"],
    "rgcn": ["--layers", "2", "--hidden", "64", "--fanout", "10,5", "--precision", "tf32"],
}
PLACES = [[], ["--features-on", "host"], ["--sample-on", "host"],
          ["--feature-budget", "20M", "--host-rows", "link"], ["--feature-budget", "20M", "--host-rows", "copy"]]


def start(program, number, data, arguments, folder):
    """Runs one training from an empty cache. Returns (model, seconds, what went wrong or "")."""
    model, places = arguments
    own = folder / str(number)
    own.mkdir()
    command = [program, "train", "--data", data, "--model", model, *MODELS[model], *places, "--mode", "minibatch",
               "--batch-size", "1024", "--dropout", "0.5", "--lr", "0.003", "--epochs", "3", "--device", "cuda",
               "--no-checkpoint", "--json", "-q", "--trace", str(own / "trace.json")]
    began = time.monotonic()
    try:
        done = subprocess.run(command, env=dict(os.environ, NACRE_CACHE=str(own / "cache")), text=True, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except subprocess.TimeoutExpired:
        return model, time.monotonic() - began, "did not end within 300 s"
    seconds = time.monotonic() - began
    shutil.rmtree(own, ignore_errors=True)
    if done.returncode != 0:
        return model, seconds, f"exit {done.returncode}: {done.stderr.strip()[-300:]}"
    try:
        loss = json.loads(done.stdout.strip().splitlines()[-1])["loss"]
    except (ValueError, KeyError, IndexError):
        return model, seconds, f"no result: {done.stdout[-300:]}"
    return model, seconds, "" if loss is not None and loss == loss else f"the loss is {loss}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--data", default="twin:arxiv@0.25", help="made once and shared by all runs")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=8, help="runs at a time")
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    options.program = str(pathlib.Path(options.program).resolve())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nacre-cold-"))
    try:
        data = options.data
        if data.startswith("twin:"):
            data = str(folder / "graph.nacre")
            subprocess.run([options.program, "data", "make", options.data, data, "-q"], check=True)
        kinds = itertools.cycle(itertools.product(options.models.split(","), PLACES))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            runs = [pool.submit(start, options.program, i, data, next(kinds), folder) for i in range(options.runs)]
            results = [run.result() for run in runs]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    failed = [(model, what) for model, _, what in results if what]
    for model, what in failed:
        print(f"{model}: {what}")
    for model in options.models.split(","):
        times = sorted(seconds for name, seconds, _ in results if name == model)
        if times:
            print(f"{model}: {len(times)} cold starts, median {times[len(times) // 2]:.1f} s, longest {times[-1]:.1f} s")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
