"""The measuring process of gpu.py. It answers jobs with one JSON line each, on the graph that
was opened last. Graph and features lie in host memory between jobs, so that the peak of each job
is its own."""
import gc
import json
import os
import sys
import time
import warnings

import torch
import torch.nn.functional as F
import torch_geometric

import cusparse
import expert
import graph_file
import pyg_models
import random_graph
import timing
import weights

HANDMADE = ("expert", "tuned")


def left_mb():
    """Returns the device memory that earlier jobs have left behind, which is not part of a job's
    peak."""
    return round(torch.cuda.memory_allocated() / 2**20, 1) if torch.cuda.is_available() else 0


class Jobs:
    def __init__(self, args):
        self.args, self.data, self.hidden = args, None, None

    def open(self, job):
        """Opens a file, or makes a random graph of a shape."""
        self.data, self.hidden = None, job["hidden"]
        if job["graph"]:
            self.data = graph_file.load(job["graph"])
        else:
            self.data = random_graph.make(job["shape"], self.args.device, self.args.seed)
        return {"nodes": self.data["num_nodes"], "edges": self.data["edge_index"].size(1)}

    def on_device(self):
        to = self.args.device
        data = {key: value for key, value in self.data.items() if key != "train_idx"}
        return {key: value.to(to) if torch.is_tensor(value) else value for key, value in data.items()}

    def net(self, model, path, data):
        """Returns the model, started from the given weights, with its graph on the device."""
        args = self.args
        if path in HANDMADE:
            tuned = path == "tuned" and torch.device(args.device).type == "cuda"
            net = expert.Net(model, data, self.hidden, args.layers, tuned)
        else:
            net = pyg_models.build(model, path, data, self.hidden, args.layers, dropout=0.0, heads=args.heads)
        with torch.no_grad():
            weights.start(model, net, args.weights or args.grads, args.seed)
        return net.to(args.device)

    def epoch(self, job):
        """Measures epochs. `how` is eager, captured (one CUDA graph), or a mode of
        torch.compile."""
        args, how = self.args, job["how"]
        left = left_mb()
        torch.set_float32_matmul_precision("highest" if args.f32 else "high")
        # torch.compile compiles the layers of RGCNConv again for each relation, so it must be
        # allowed many compilations of one function.
        torch._dynamo.config.recompile_limit = 64
        data = self.on_device()
        net = self.net(job["model"], job["form"], data)
        x, y = data["x"], data["y"]
        del data  # the edges in their original form
        captured = how == "captured" and torch.device(args.device).type == "cuda"
        mode = how if how not in ("eager", "captured") else None
        training = timing.Training(net, x, y, args.lr, captured, mode)
        result = timing.measure(training, args.device, captured, args.epochs, args.seconds)
        if result["peak_mb"]:
            result["peak_mb"] = round(result["peak_mb"] - left, 1)
        layer = type(net.convs[0]).__name__ if hasattr(net, "convs") else "by hand"
        return {"layer": layer, "hidden": self.hidden, "tf32": not args.f32, **result}

    def grads(self, job):
        """Compares PyG's gradients in f32 with nacre's."""
        torch.set_float32_matmul_precision("highest")
        data = self.on_device()
        net = self.net(job["model"], "edge_index", data)
        loss = F.cross_entropy(net(data["x"]), data["y"])
        loss.backward()
        errors = weights.gradient_errors(job["model"], net, self.args.grads)
        worst = max(errors.values())
        return {"loss": float(loss), "errors": errors, "worst": worst, "ok": worst <= self.args.tolerance}

    def spmm(self, job):
        """Measures one aggregation alone: CSR by destination, f32 values, row-major features."""
        args, width = self.args, job["width"]
        edges, n = self.data["edge_index"].to(args.device), self.data["num_nodes"]
        csr = graph_file.csr(edges[1], edges[0], graph_file.mean_weights(edges[1], n), n, torch.int32)
        del edges
        x = torch.randn(n, width, device=args.device)
        matrix = torch.sparse_csr_tensor(*csr, (n, n))
        times = {"torch": timing.repeated(lambda: matrix @ x, args.device, args.epochs, args.seconds / 4)["ms"]}
        note = {}
        if torch.device(args.device).type == "cuda":
            try:
                times.update({plan.name: ms for ms, plan in cusparse.Matrix(csr).trials(x, args.seconds / 4)})
            except (OSError, RuntimeError) as error:
                note = {"note": f"only PyTorch's call: {error}"}
        best = min(times, key=times.get)
        every = {name: round(ms, 5) for name, ms in times.items()}
        return {"ms": every[best], "algorithm": best, "all": every, **note}

    def write(self, job):
        graph_file.write(job["to"], self.data)
        return {"bytes": os.path.getsize(job["to"])}

    def answer(self, job):
        start = time.perf_counter()
        try:
            result = getattr(self, job["kind"])(job)
        except torch.OutOfMemoryError:
            result = {"error": "out of memory"}
        except Exception as error:  # one failed peer must not lose the others
            text = " ".join(str(error).split())
            result = {"error": f"{type(error).__name__}: {text[:400]}"}
            if "out of memory" in text or "CUDA_ERROR_OUT_OF_MEMORY" in text:
                result = {"error": "out of memory"}
        torch._dynamo.reset()
        gc.collect()
        if torch.cuda.is_available():
            # Free the workspaces of cuBLAS: every captured step had a stream of its own, and each
            # stream a workspace.
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
            result["left_mb"] = left_mb()
        return {**result, "wall_s": round(time.perf_counter() - start, 1)}


def serve(args):
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to stderr
    warnings.filterwarnings("ignore")
    jobs = Jobs(args)
    cuda = torch.device(args.device).type == "cuda"
    ready = {
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "torch": torch.__version__,
        "pyg": torch_geometric.__version__,
    }
    print(json.dumps(ready), file=replies, flush=True)
    for line in sys.stdin:
        print(json.dumps(jobs.answer(json.loads(line))), file=replies, flush=True)
