#!/usr/bin/env python3
"""Compares the time of a step from Python with that of the command line: nacre.train(), a loop
over nacre.Session.step(), and nacre.train() of the same model written in Python, if there is one,
against nacre train, with the same plan, in turns.

    PYTHONPATH=build/release/python python3 bench/python_overhead.py build/release/nacre
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import nacre

MODELS = pathlib.Path(__file__).resolve().parent.parent / "python/tests/same_models.py"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--data", default="twin:arxiv")
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    graph = nacre.load(options.data)
    with tempfile.TemporaryDirectory() as work:
        settings = {"model": options.model, "layers": 3, "hidden": 128, "device": "cpu", "epochs": options.epochs,
                    "eval_every": options.epochs, "plan": f"{work}/plan.json"}
        nacre.plan(graph, **{**settings, "plan": "auto", "eval_every": None}).save(settings["plan"])
        words = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
        times = {"command line": [], "nacre.train": [], "Session.step": []}
        written = f"def py_{options.model}(" in MODELS.read_text()
        if written:
            times["in Python"] = []
            # The model that is written in Python gets the same plan, under its own name.
            plan = pathlib.Path(settings["plan"]).read_text()
            pathlib.Path(work, "own.json").write_text(plan.replace(f"dfg {options.model}", f"dfg py_{options.model}"))
        for _ in range(options.turns):
            command = [options.program, "train", f"--data={options.data}", *words, "--no-checkpoint", "--json", "-q"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            times["command line"].append(json.loads(done.stdout)["epoch_ms_median"])
            times["nacre.train"].append(nacre.train(graph, **settings).result["epoch_ms_median"])
            if written:
                own = nacre.train(graph, **{**settings, "model": f"{MODELS}:py_{options.model}", "plan": f"{work}/own.json"})
                times["in Python"].append(own.result["epoch_ms_median"])
            session = nacre.Session(graph, **settings)
            steps = []
            for _ in range(options.epochs):
                start = time.perf_counter()
                session.step()
                steps.append(1e3 * (time.perf_counter() - start))
            times["Session.step"].append(statistics.median(steps))
            del session
    base = min(times["command line"])
    for name, all_times in times.items():
        print(f"{name:<13} best {min(all_times):8.2f} ms, median {statistics.median(all_times):8.2f} ms "
              f"({100 * (min(all_times) / base - 1):+.1f} % of the best)")


if __name__ == "__main__":
    main()
