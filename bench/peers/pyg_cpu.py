#!/usr/bin/env python3
"""Full-graph training epochs of PyTorch Geometric on the CPU: one JSON line per (model, path).

Each measurement is a process of its own, so that its peak memory is its own. An epoch is forward,
cross-entropy on the training vertices, backward and an Adam step. Memory: `base_mb` is resident
after the imports, `peak_mb` the highest during the epochs (without set-up), `delta_mb` their
difference, which counts graph, features and everything training needs, but not the framework. Large
tensors get huge pages (PyTorch's THP_MEM_ALLOC_ENABLE), to the peer's advantage; --small-pages
measures without them."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

MODELS = ("gcn", "sage", "gat", "rgcn", "gin")
PATHS = ("edge_index", "sorted", "sparse")


def status_mb(field):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024.0
    return 0.0


def reset_peak():
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass  # the peak includes set-up in this case


def measure(args, model_name, path):
    import torch
    import torch.nn.functional as F
    import torch_geometric

    import graph_file
    import pyg_models

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    base = status_mb("VmRSS")
    data = graph_file.load(args.graph, args.relations)
    model = pyg_models.build(model_name, path, data, args.hidden, args.layers, args.dropout, args.heads)
    data.pop("edge_index"), data.pop("edge_type", None)
    optimiser = torch.optim.Adam(model.parameters(), lr=args.lr)
    x, train, target = data["x"], data["train_idx"], data["y"][data["train_idx"]]
    reset_peak()
    times, cpu, losses = [], [], []
    for _ in range(args.warmup + args.epochs):
        start, cpu_start = time.perf_counter(), time.process_time()
        model.train()
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x)[train], target)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        times.append(1e3 * (time.perf_counter() - start))
        cpu.append(1e3 * (time.process_time() - cpu_start))
    timed = sorted(times[args.warmup :])
    peak = status_mb("VmHWM")
    return {
        "epoch_ms_median": round(statistics.median(timed), 1),
        "epoch_ms_min": round(timed[0], 1),
        "epoch_ms_max": round(timed[-1], 1),
        "cpu_ms_median": round(statistics.median(cpu[args.warmup :]), 1),
        "epochs": args.epochs,
        "base_mb": round(base),
        "peak_mb": round(peak),
        "delta_mb": round(peak - base),
        "losses": [round(v, 4) for v in losses[:3]],
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "pyg": torch_geometric.__version__,
    }


def measure_apart(argv, args, model, path):
    env = dict(os.environ, PYTHONWARNINGS="ignore", THP_MEM_ALLOC_ENABLE="0" if args.small_pages else "1")
    command = [sys.executable, os.path.abspath(__file__), *argv, "--one", f"{model}:{path}"]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=args.timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"no result after {args.timeout} s"}
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"ended with status {done.returncode}"}
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", required=True, help=".npz with edge_index, x, y, train_idx, optionally edge_type")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--paths", default=",".join(PATHS))
    parser.add_argument("--epochs", type=int, default=5, help="timed epochs")
    parser.add_argument("--warmup", type=int, default=2, help="epochs before the timed ones")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--relations", type=int, default=7, help="number of edge types if the file has none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small-pages", action="store_true", help="leave PyTorch's allocator as it is")
    parser.add_argument("--timeout", type=int, default=1800, help="seconds for one measurement")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()

    if args.one:
        print(json.dumps(measure(args, *args.one.split(":"))))
        return
    for model in args.models.split(","):
        for path in args.paths.split(","):
            result = {"model": model, "path": path, **measure_apart(sys.argv[1:], args, model, path)}
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
