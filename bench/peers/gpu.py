#!/usr/bin/env python3
"""Nacre's peers on the GPU: full-graph training epochs of PyTorch Geometric and of hand-written PyTorch over cuSPARSE.

    gpu.py --shape arxiv --write arxiv.npz            a random graph of arxiv's shape, kept for nacre, and all peers
    gpu.py --graph arxiv.npz --models gcn,sage        the same graph from the file
    gpu.py --graph arxiv.npz --spmm                   cuSPARSE's aggregation alone, for each width
    gpu.py --graph arxiv.npz --grads grads/           PyG's gradients in f32 beside nacre's; status 1 if they differ

One JSON line for each measurement, printed and appended to --out as soon as it is there. All peers start from nacre's
weights: those of --weights, else those nacre's --seed gives. Paths:
  edge_index, sorted, sparse          PyG, eager, over each form of the graph
  compile[@F], reduce-overhead[@F]    torch.compile of PyG over form F; without F, over the fastest eager one
  expert                              by hand, PyTorch's cuSPARSE call, one CUDA graph; for gat: PyG in a CUDA graph
  tuned                               by hand, cuSPARSE called directly with its best algorithm, one CUDA graph
The measuring runs in another process; one that fails or hangs is replaced, and the rest go on."""
import argparse
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading

FORMS = ("edge_index", "sorted", "sparse")
PATHS = (*FORMS, "compile", "compile@edge_index", "reduce-overhead", "reduce-overhead@edge_index", "expert", "tuned")
BY_HAND = {"expert": ("gcn", "sage", "gat"), "tuned": ("gcn", "sage")}
COMPILED = {"compile": "default", "reduce-overhead": "reduce-overhead"}
LEFT_MB = 128
WIDTHS = "16,32,40,64,100,128,256,602"


class Worker:
    """A process that answers jobs; started at the first one, and again after it was stopped."""

    def __init__(self, argv, timeout):
        self.argv, self.timeout = argv, timeout
        self.process, self.about = None, {}

    def start(self):
        command = [sys.executable, os.path.abspath(__file__), *self.argv, "--worker"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.listen, args=(self.process.stdout, self.lines), daemon=True).start()
        self.about = self.receive(900)

    @staticmethod
    def listen(stream, lines):
        for line in stream:
            lines.put(line)
        lines.put(None)

    def receive(self, seconds):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            self.stop()
            return {"error": f"no result after {seconds} s"}
        if line is None:
            status = self.process.wait()
            self.stop()
            return {"error": f"the process ended with status {status}"}
        return json.loads(line)

    def ask(self, job):
        if self.process is None:
            self.start()
            if "error" in self.about:
                return self.about
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended; receive() says how
        result = self.receive(self.timeout)
        # What failed otherwise than for memory may have left the device or the capture in a state that spoils the next;
        # so does memory that a job leaves behind.
        failed = "error" in result and (result["error"] != "out of memory" or job.get("how") != "eager")
        if failed or result.pop("left_mb", 0) > LEFT_MB:
            self.stop()
        return result

    def stop(self):
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # compilers run in processes of their own
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process = None


def epoch_job(model, path, best):
    """The job for a path, or None where it does not apply or repeats another. `best`: the fastest eager form."""
    kind, _, form = path.partition("@")
    if kind in BY_HAND:
        if model not in BY_HAND[kind]:
            return None
        form = kind if model != "gat" else form or best
        return {"peer": "expert", "path": f"{kind}@{form}" if model == "gat" else kind, "form": form, "how": "captured"}
    if kind in COMPILED:
        if form == best:
            return None  # `kind` alone has done it
        form = form or best
        return {"peer": "pyg", "path": f"{kind}@{form}", "form": form, "how": COMPILED[kind]}
    return {"peer": "pyg", "path": path, "form": path, "how": "eager"}


def ask_epoch(worker, report, model, job):
    job = {"kind": "epoch", "model": model, **job}
    result = worker.ask(job)
    report({key: job[key] for key in ("kind", "model", "peer", "path", "form")}, result)
    return result


def run(args, worker, report):
    if args.write:
        report({"kind": "write", "to": args.write}, worker.ask({"kind": "write", "to": args.write}))
    for width in args.widths.split(",") if args.spmm else []:
        job = {"kind": "spmm", "width": int(width)}
        report(job, worker.ask(job))
    models = [m for m in args.models.split(",") if m and m != "none"]
    for model in models if args.grads else []:
        job = {"kind": "grads", "model": model}
        report(job, worker.ask(job))
    if args.spmm or args.grads:
        return
    for model in models:
        eager = {}
        for path in args.paths.split(","):
            job = epoch_job(model, path, min(eager, key=eager.get, default="edge_index"))
            if job is None:
                continue
            result = ask_epoch(worker, report, model, job)
            if job["how"] == "eager" and "error" not in result:
                eager[path] = result["epoch_ms"]
            if "error" in result and path == "expert" and job["form"] not in ("expert", "edge_index"):
                ask_epoch(worker, report, model, epoch_job(model, "expert@edge_index", None))  # not every form captures


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--graph", help=".npz as nacre exports it; every vertex counts in the loss")
    source.add_argument("--shape", help="cora, arxiv, reddit or products: a random graph of that shape")
    parser.add_argument("--name", help="name of the data in the results; default: the shape, or the file's")
    parser.add_argument("--write", help="keep the graph as .npz, every vertex in the training split")
    parser.add_argument("--out", default="gpu-peers.jsonl")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", default="gcn,sage,gat,rgcn", help="none: only --write")
    parser.add_argument("--paths", default=",".join(PATHS))
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden", type=int, help="default 256, cora 64")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--weights", help="safetensors with nacre's names, or a folder of MODEL.safetensors")
    parser.add_argument("--seed", type=int, default=0, help="of nacre's initial weights and of --shape")
    parser.add_argument("--epochs", type=int, default=10, help="timed epochs, at least")
    parser.add_argument("--seconds", type=float, default=1.0, help="timed seconds, at least")
    parser.add_argument("--f32", action="store_true", help="no tf32")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one measurement")
    parser.add_argument("--spmm", action="store_true")
    parser.add_argument("--widths", default=WIDTHS)
    parser.add_argument("--grads", help="safetensors with grad:<name>, and the weights, or a folder of such")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.name = args.name or args.shape or pathlib.Path(args.graph).stem.removeprefix("twin_")
    args.hidden = args.hidden or (64 if args.name == "cora" else 256)
    return args


def main():
    args = parse()
    if args.worker:
        import gpu_jobs

        gpu_jobs.serve(args)
        return
    worker = Worker(sys.argv[1:], args.timeout)
    failed = []

    def report(job, result):
        about = {key: worker.about.get(key) for key in ("device", "torch", "pyg")}
        line = json.dumps({"data": args.name, **job, **result, **about})
        print(line, flush=True)
        with open(args.out, "a") as file:
            file.write(line + "\n")
        if job["kind"] == "grads" and not result.get("ok") or job["kind"] == "write" and "error" in result:
            failed.append(job)

    try:
        run(args, worker, report)
    finally:
        worker.stop()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
