"""Timed training epochs: eager, compiled, or captured as one CUDA graph; events on the GPU, the clock on the CPU."""
import time

import torch
import torch.nn.functional as F

WARMUP = 3
LONG = 1.0  # seconds of an epoch: one to warm up is enough
ENOUGH = 3.0  # seconds of runs: three of them are enough
COMPILED_WARMUP = 8  # a compiled function is traced, recorded and specialised over its first calls


def repeated(run, device, least=10, seconds=1.0, most=2000):
    """Times run() until `least` runs (three where they take long) and `seconds` have passed: median, 10th and 90th
    percentile in ms, and the count. On the GPU the host stays at most two runs ahead, which hides its own work and
    still sees the clock."""
    device = torch.device(device)
    start, ms = time.perf_counter(), []
    if device.type == "cuda":
        events = [torch.cuda.Event(enable_timing=True)]
        events[0].record()
    passed = lambda: time.perf_counter() - start
    while len(ms) < least and (len(ms) < 3 or passed() < ENOUGH) or passed() < seconds and len(ms) < most:
        began = time.perf_counter()
        run()
        ms.append(1e3 * (time.perf_counter() - began))
        if device.type == "cuda":
            events.append(torch.cuda.Event(enable_timing=True))
            events[-1].record()
            events[max(0, len(events) - 3)].synchronize()
    if device.type == "cuda":
        torch.cuda.synchronize()
        ms = [a.elapsed_time(b) for a, b in zip(events, events[1:])]
    ms.sort()
    at = lambda share: ms[round(share * (len(ms) - 1))]
    return {"ms": at(0.5), "p10": at(0.1), "p90": at(0.9), "count": len(ms)}


class Training:
    """One epoch per step(): forward, cross-entropy over all vertices, backward, Adam."""

    def __init__(self, net, x, y, lr, captured=False, compile_mode=None):
        self.parameters = list(net.parameters())
        self.initial = [p.detach().clone() for p in self.parameters]
        self.optimiser = torch.optim.Adam(self.parameters, lr=lr, fused=True, capturable=captured)
        self.compiled = compile_mode is not None
        loss_of = lambda rows, labels: F.cross_entropy(net(rows), labels)
        if self.compiled:
            for fixed in (x, y, *net.graph):  # their addresses do not change: no copy into the graph in each step
                if type(fixed) is torch.Tensor and fixed.layout == torch.strided:
                    torch._dynamo.mark_static_address(fixed)
            loss_of = torch.compile(loss_of, mode=None if compile_mode == "default" else compile_mode, dynamic=False)
        self.loss = lambda: loss_of(x, y)
        self.graph = None

    def eager(self):
        if self.compiled:
            torch.compiler.cudagraph_mark_step_begin()
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        self.optimiser.step()
        return loss.detach().clone()  # a captured step writes its loss to the same place each time

    def rehearse(self):
        """Forward and backward without a step: what is compiled, tried out or loaded at first use is so afterwards."""
        self.loss().backward()
        self.optimiser.zero_grad(set_to_none=True)

    def capture(self):
        """After it, step() replays one CUDA graph that starts from the initial weights."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARMUP):
                self.eager()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.optimiser.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self.loss()
            loss.backward()
            self.optimiser.step()
        self.captured_loss = loss.detach()  # each replay writes it anew
        self.graph = graph
        self.restart()

    def restart(self):
        """Back to the initial weights and an optimiser that has seen nothing, all in place."""
        with torch.no_grad():
            for parameter, value in zip(self.parameters, self.initial):
                parameter.copy_(value)
            for state in self.optimiser.state.values():
                for tensor in state.values():
                    tensor.zero_()

    def step(self):
        if self.graph is None:
            return self.eager()
        self.graph.replay()
        return self.captured_loss


def measure(training, device, captured=False, least=10, seconds=1.0):
    """The figures of one peer. The peak counts what is alive, graph and features included, and the epochs' own."""
    cuda = torch.device(device).type == "cuda"
    training.rehearse()
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    if captured and cuda:
        training.capture()
    losses, longest = [], 0.0
    while len(losses) < (COMPILED_WARMUP if training.compiled else WARMUP) and (longest < LONG or training.compiled):
        began = time.perf_counter()
        losses.append(float(training.step()))
        longest = max(longest, time.perf_counter() - began)
    timed = repeated(training.step, device, least, seconds)
    peak = (torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()) if cuda else None
    return {
        "epoch_ms": round(timed["ms"], 4),
        "p10": round(timed["p10"], 4),
        "p90": round(timed["p90"], 4),
        "epochs": timed["count"],
        "peak_mb": round(peak[0] / 2**20, 1) if peak else None,
        "reserved_mb": round(peak[1] / 2**20, 1) if peak else None,
        "first_losses": losses[:3],
    }
