#!/usr/bin/env python3
"""Epoch time and peak memory of nacre beside PyTorch Geometric, on the same graph, machine and
number of threads, in one run.

    run.py --nacre build/release/nacre                 measure both, print the table
    run.py --nacre-json A.json --pyg-json B.jsonl      only make the table

PyG is measured with the first Python that has it: --python, $NACRE_PEERS_PYTHON,
build/peers/bin/python (`make peers`), or the Python running this. Without one, only nacre is
measured. Results lie in build/bench."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "bench/peers"
OUT = ROOT / "build/bench"
WANTED = {"gcn": 2.0, "sage": 2.0, "gin": 2.0, "gat": 3.0, "rgcn": 4.0}


def find_python(named):
    for python in (named, os.environ.get("NACRE_PEERS_PYTHON"), str(ROOT / "build/peers/bin/python"), sys.executable):
        if not python:
            continue
        try:
            probe = subprocess.run([python, "-c", "import torch_geometric"], capture_output=True)
        except OSError:
            continue
        if probe.returncode == 0:
            return python
    return None


def call(command, **kwargs):
    print("+ " + " ".join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, **kwargs)
    if done.returncode != 0:
        raise SystemExit(f"run.py: {command[0]} ended with status {done.returncode}")


def measure(args):
    """Returns the files with nacre's and the peer's results; the second is None without a peer."""
    OUT.mkdir(parents=True, exist_ok=True)
    python = find_python(args.python)
    graph = OUT / (args.data.replace(":", "_").replace("/", "_") + ".npz")
    call([args.nacre, "data", "convert", "--force", args.data, str(graph)])
    # Each model gets a process of its own, as on the peer's side, so that peak memory is that of
    # one model.
    merged = None
    for model in args.models.split(","):
        part = OUT / f"nacre-{model}.json"
        command = [args.nacre, "bench", "cpu", "--data", str(graph), "--threads", str(args.threads), "--models", model]
        call([*command, "--json", str(part)])
        result = json.loads(part.read_text())
        merged = result if merged is None else {**merged, "results": merged["results"] + result["results"]}
    (OUT / "nacre.json").write_text(json.dumps(merged, indent=1) + "\n")
    if python is None:
        print("run.py: no Python with torch_geometric found; make peers builds one", file=sys.stderr)
        return OUT / "nacre.json", None
    with open(OUT / "pyg.jsonl", "w") as file:
        options = ["--graph", str(graph), "--models", args.models, "--threads", str(args.threads)]
        call([python, str(HERE / "pyg_cpu.py"), *options, "--epochs", str(args.epochs)], stdout=file)
    return OUT / "nacre.json", OUT / "pyg.jsonl"


def read_nacre(path):
    """Returns {model: result} from `nacre bench cpu --json`: an object whose "results" is a list
    of objects with at least model, epoch_ms_median and peak_mb."""
    return {result["model"]: result for result in json.loads(path.read_text())["results"]}


def read_pyg(path):
    """Returns {model: {path: result}}. Failed measurements are left out and named."""
    found = {}
    for line in path.read_text().splitlines():
        result = json.loads(line)
        if "error" in result:
            print(f"run.py: PyG {result['model']} over {result['path']}: {result['error']}", file=sys.stderr)
        else:
            found.setdefault(result["model"], {})[result["path"]] = result
    return found


def table(nacre, pyg):
    paths = [path for path in ("edge_index", "sorted", "sparse") if any(path in runs for runs in pyg.values())]
    head = ["model", "nacre ms", *(f"PyG {path} ms" for path in paths), "times faster", "wanted", "nacre MB", "PyG MB",
            "memory share"]
    rows = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for model, mine in nacre.items():
        runs = pyg.get(model, {})
        cells = [model, f"{mine['epoch_ms_median']:.0f}"]
        cells += [f"{runs[path]['epoch_ms_median']:.0f}" if path in runs else "–" for path in paths]
        if runs:
            # Nacre's time is compared with the peer's fastest path, and its memory with the path
            # that takes least memory, so that each figure has its strongest opponent.
            fastest = min(run["epoch_ms_median"] for run in runs.values())
            leanest = min(run["peak_mb"] for run in runs.values())
            cells += [f"{fastest / mine['epoch_ms_median']:.2f}", f"{WANTED.get(model, 1.0):.0f}"]
            cells += [f"{mine['peak_mb']:.0f}", f"{leanest:.0f}", f"{mine['peak_mb'] / leanest:.2f}"]
        else:
            cells += ["–", "–", f"{mine['peak_mb']:.0f}", "–", "–"]
        rows.append(cells)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nacre", help="the program to measure")
    parser.add_argument("--python", help="a Python that has torch_geometric")
    parser.add_argument("--data", default="twin:arxiv")
    parser.add_argument("--models", default="gcn,sage,gat,rgcn,gin")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--nacre-json", type=pathlib.Path)
    parser.add_argument("--pyg-json", type=pathlib.Path)
    args = parser.parse_args()

    if args.nacre:
        nacre_file, pyg_file = measure(args)
    elif args.nacre_json:
        nacre_file, pyg_file = args.nacre_json, args.pyg_json
    else:
        parser.error("give --nacre or --nacre-json")
    text = table(read_nacre(nacre_file), read_pyg(pyg_file) if pyg_file else {})
    print(text)
    if args.nacre:
        (OUT / "table.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
