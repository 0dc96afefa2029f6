#!/usr/bin/env python3
"""Nacre's peers on the GPU: full-graph training epochs of PyTorch Geometric and of hand-written
PyTorch over cuSPARSE.

    gpu.py --nacre build/cuda/nacre            nacre and its peers on four graphs, and the table
    gpu.py --shape arxiv --models gcn,sage     only the peers, on a random graph of arxiv's shape
    gpu.py --graph arxiv.npz --spmm            only cuSPARSE's aggregation, for each width
    gpu.py --graph arxiv.npz --grads grads/    PyG's f32 gradients and nacre's; 1 if they differ

Each measurement is one JSON line, which is printed and appended to --out (nacre's to --nacre-out)
at once. All peers start from nacre's weights: those of --weights, or those of nacre's --seed.
Paths:
  edge_index, sorted, sparse          PyG, eager, over each form of the graph
  compile[@F], reduce-overhead[@F]    torch.compile of PyG over form F (default: the fastest)
  expert                              by hand, PyTorch's cuSPARSE call, one CUDA graph; for
                                      gat: PyG in a CUDA graph
  tuned                               by hand, cuSPARSE's best algorithm called directly, one
                                      CUDA graph
The measurements run in another process, one for all graphs, because it takes long to start. If it
fails or hangs, it is replaced, and the rest go on. torch.compile takes longest and comes last, on
the graphs of --compiled only."""
import argparse
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

import gpu_table

FORMS = ("edge_index", "sorted", "sparse")
PATHS = ("edge_index", "sparse", "expert", "tuned")
COMPILED_PATHS = ("compile", "reduce-overhead", "compile@edge_index", "reduce-overhead@edge_index")
BY_HAND = {"expert": ("gcn", "sage", "gat"), "tuned": ("gcn", "sage")}
COMPILED = {"compile": "default", "reduce-overhead": "reduce-overhead"}
LEFT_MB = 4096
WIDTHS = "16,32,40,64,100,128,256,602"


class Worker:
    """A process that answers jobs on one graph at a time. It is started at the first job, and
    again after it was stopped. `left` returns the seconds that are left for everything to come."""

    def __init__(self, argv, timeout, left):
        self.argv, self.timeout, self.left = argv, timeout, left
        self.process, self.source, self.about = None, None, {}

    def open(self, source):
        """From now on, jobs use this graph."""
        self.source = source
        if self.process is not None:
            self.about = {**self.about, **self.send(source)}

    def start(self):
        command = [sys.executable, os.path.abspath(__file__), *self.argv, "--worker"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.listen, args=(self.process.stdout, self.lines), daemon=True).start()
        self.about = self.receive(900)
        if "error" not in self.about:
            self.about = {**self.about, **self.send(self.source)}

    def send(self, job):
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # the process has ended; receive() says how
        return self.receive(min(self.timeout, max(1, self.left())))

    @staticmethod
    def listen(stream, lines):
        with stream:
            for line in stream:
                lines.put(line)
        lines.put(None)

    def receive(self, seconds):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            self.stop()
            return {"error": f"no result after {seconds:.0f} s"}
        if line is None:
            status = self.process.wait()
            self.stop()
            return {"error": f"the process ended with status {status}"}
        return json.loads(line)

    def ask(self, job):
        if self.left() <= 0:
            return {"error": "no time left"}
        if self.process is None and self.source is not None:
            self.start()
        if self.process is None or "error" in self.about:
            self.stop()
            self.source = None  # the source would fail again
            return {"error": self.about["error"]}
        result = self.send(job)
        # Stop the process after any failure but a lack of memory in an eager job, because the
        # device or the capture may be in a state that spoils the next job. Stop it also if a job
        # leaves a lot of memory behind.
        failed = "error" in result and (result["error"] != "out of memory" or job.get("how") != "eager")
        if failed or result.get("left_mb", 0) > LEFT_MB:
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
        try:
            self.process.stdin.close()
        except OSError:
            pass  # nobody needs what was not written
        self.process = None


def epoch_job(model, path, best):
    """Returns the job for a path, or None if it does not apply or repeats another. `best` is the
    fastest eager form."""
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


def report_epoch(report, model, job, result):
    report({"kind": "epoch", "model": model, **{key: job[key] for key in ("peer", "path", "form")}}, result)


def ask_epoch(worker, report, model, job):
    result = worker.ask({"kind": "epoch", "model": model, **job})
    report_epoch(report, model, job, result)
    return result


def ask_epochs(worker, report, model, paths, best=None):
    """Measures all paths of a model on the open graph and returns the fastest eager one."""
    tried, eager = set(), {}
    for path in paths:
        fastest = min(eager, key=eager.get, default=best or "edge_index")
        job = epoch_job(model, path, fastest)
        if job is None:
            continue
        # If the eager step of a form has failed, its other steps would fail too, and might take the
        # process with them.
        if job["form"] in tried - eager.keys():
            report_epoch(report, model, job, {"error": "its eager step has failed"})
            continue
        result = ask_epoch(worker, report, model, job)
        if job["how"] == "eager":
            tried.add(path)
        if job["how"] == "eager" and "error" not in result:
            eager[path] = result["epoch_ms"]
        if "error" in result and path == "expert" and job["form"] not in ("expert", "edge_index"):
            # Not every form can be captured, so the form edge_index is captured instead.
            ask_epoch(worker, report, model, epoch_job(model, "expert@edge_index", None))
    return min(eager, key=eager.get, default=None)


def ask_all(args, worker, report):
    """Measures everything on the open graph that is not compiled. Returns {model: fastest eager
    path}."""
    for width in args.widths.split(",") if args.spmm else []:
        job = {"kind": "spmm", "width": int(width)}
        report(job, worker.ask(job))
    for model in args.models if args.grads else []:
        job = {"kind": "grads", "model": model}
        report(job, worker.ask(job))
    if args.grads or args.spmm and not args.nacre:
        return {}
    return {model: ask_epochs(worker, report, model, args.paths.split(",")) for model in args.models}


def hidden_of(args, name):
    return args.hidden or (64 if name == "cora" else 256)


def run_nacre(args, name, graph, left):
    """Measures nacre on the graph that the peers had. It appends each result at once."""
    command = [args.nacre, "bench", "gpu", "--data", graph, "--name", name, "--models", ",".join(args.models),
               "--layers", args.layers, "--hidden", hidden_of(args, name), "--seconds", args.seconds,
               "--precision", "f32" if args.f32 else "tf32", "--out", args.nacre_out, "-q"]
    if args.spmm:
        command += ["--spmm", args.widths]
    if "gat" in args.models:
        command += ["--heads", args.heads]
    try:
        status = subprocess.run([str(word) for word in command], timeout=left).returncode
        error = f"it ended with status {status}" if status else None
    except (OSError, subprocess.TimeoutExpired) as failure:
        error = str(failure)
    if error:
        print(f"nacre on {name}: {error}", file=sys.stderr, flush=True)


def run(args, worker, report_on, left):
    """Measures on all graphs. `report_on(name)` returns a function that takes a job and its
    result."""
    best = {}
    for name in args.names:
        report = report_on(name)
        worker.open({"kind": "open", "shape": name, "hidden": hidden_of(args, name), "graph": args.graph})
        with tempfile.TemporaryDirectory(prefix="nacre-peers-", dir=args.folder) as folder:
            graph = args.graph
            if args.nacre and not graph:
                graph = os.path.join(folder, name + ".npz")
                job = {"kind": "write", "to": graph}
                report(job, worker.ask(job))
            best[name] = ask_all(args, worker, report)
            if args.nacre:
                run_nacre(args, name, graph, max(left(), 1))
    compiled = [name for name in args.compiled.split(",") if best.get(name)] if not args.grads else []
    compiled = [(name, model) for name in compiled for model in args.models if best[name].get(model)]
    opened = None
    # The compilation of rgcn seldom ends in time, so it comes last.
    for name, model in sorted(compiled, key=lambda job: job[1] == "rgcn"):
        if name != opened:
            worker.open({"kind": "open", "shape": name, "hidden": hidden_of(args, name), "graph": args.graph})
        opened = name
        # rgcn is compiled in the form edge_index only, because its other forms are not layers of
        # PyG.
        form = "edge_index" if model == "rgcn" else best[name][model]
        ask_epochs(worker, report_on(name), model, COMPILED_PATHS, form)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nacre", help="the program to compare with the peers, on the same graphs, right after them")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--graph", help=".npz as nacre exports it; every vertex counts in the loss")
    source.add_argument("--shape", default=",".join(gpu_table.GRAPHS), help="random graphs of these shapes")
    parser.add_argument("--name", help="name of --graph in the results; default: the file's")
    parser.add_argument("--folder", help="where graphs lie while nacre reads them; default: that of temporary files")
    parser.add_argument("--out", default="gpu-peers.jsonl")
    parser.add_argument("--nacre-out", default="gpu-nacre.jsonl")
    parser.add_argument("--limit", type=float, default=0, help="seconds for everything; what is not begun by then is left out")
    parser.add_argument("--compiled", default="arxiv", help="graphs on which torch.compile is measured too")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", default=",".join(gpu_table.MODELS))
    parser.add_argument("--paths", default=",".join(PATHS))
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden", type=int, help="default 256, cora 64")
    parser.add_argument("--heads", type=int, default=1, help="attention heads of hidden layers; the expert has one")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--weights", help="safetensors with nacre's names, or a folder of MODEL.safetensors")
    parser.add_argument("--seed", type=int, default=0, help="seed of nacre's initial weights and of --shape")
    parser.add_argument("--epochs", type=int, default=10, help="the least number of timed epochs; three if they take long")
    parser.add_argument("--seconds", type=float, default=1.0, help="the least number of timed seconds")
    parser.add_argument("--f32", action="store_true", help="multiply in f32 instead of tf32")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one measurement")
    parser.add_argument("--spmm", action="store_true")
    parser.add_argument("--widths", default=WIDTHS)
    parser.add_argument("--grads", help="safetensors with the weights and with gradients, grad:<name>, to compare; or a folder of them")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.nacre and (args.seed, args.lr, args.weights, args.grads) != (0, 0.01, None, None):
        parser.error("--nacre has weights and a rate of its own: without --seed, --lr, --weights and --grads")
    args.models = [m for m in args.models.split(",") if m]
    args.names = args.shape.split(",")
    if args.graph:
        args.names = [args.name or pathlib.Path(args.graph).stem.removeprefix("twin_")]
    return args


def main():
    args = parse()
    if args.worker:
        import gpu_jobs

        gpu_jobs.serve(args)
        return
    start = time.monotonic()
    end = start + (args.limit or 1e6)
    left = lambda: end - time.monotonic()
    worker = Worker(sys.argv[1:], args.timeout, left)
    failed = []

    def report_on(name):
        def report(job, result):
            about = {key: worker.about.get(key) for key in ("device", "torch", "pyg")}
            line = json.dumps({"data": name, **job, **result, **about, "at_s": round(time.monotonic() - start, 1)})
            print(line, flush=True)
            with open(args.out, "a") as file:
                file.write(line + "\n")
            if job["kind"] == "grads" and not result.get("ok") or job["kind"] == "write" and "error" in result:
                failed.append(job)

        return report

    try:
        run(args, worker, report_on, left)
    finally:
        worker.stop()
    if args.nacre:
        gpu_table.show(args.nacre_out, [args.out])
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
