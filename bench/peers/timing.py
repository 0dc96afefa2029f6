"""Times training epochs: eager, compiled, or captured as one CUDA graph. It uses events on the
GPU and the clock on the CPU."""
import time

import torch
import torch.nn.functional as F

WARMUP = 3
LONG = 1.0  # seconds; for longer epochs, one epoch of warm-up is enough
ENOUGH = 3.0  # seconds; if runs take longer, three of them are enough
# Number of first calls that are not timed, in which a compiled function is traced, recorded and
# specialised.
COMPILED_WARMUP = 8


def repeated(run, device, least=10, seconds=1.0, most=2000):
    """Times run() until `least` runs (three if they take long) and `seconds` have passed.
    Returns median, 10th and 90th percentile in ms, and the count. On the GPU, the host stays at
    most two runs ahead, which hides its own work but lets it check the clock."""
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
    """A training run; each step() is one epoch: forward, cross-entropy over all vertices,
    backward, Adam."""

    def __init__(self, net, x, y, lr, captured=False, compile_mode=None):
        self.parameters = list(net.parameters())
        self.initial = [p.detach().clone() for p in self.parameters]
        self.optimiser = torch.optim.Adam(self.parameters, lr=lr, fused=True, capturable=captured)
        self.compiled = compile_mode is not None
        loss_of = lambda rows, labels: F.cross_entropy(net(rows), labels)
        if self.compiled:
            # Tell the compiler that the addresses of these tensors do not change, so that no step
            # copies them into the graph.
            for fixed in (x, y, *net.graph):
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
        """Runs forward and backward without a step, so that everything that happens at first use
        (compiling, trying out, loading) has happened."""
        self.loss().backward()
        self.optimiser.zero_grad(set_to_none=True)

    def capture(self):
        """Makes step() replay one CUDA graph that starts from the initial weights."""
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
        self.captured_loss = loss.detach()  # each replay writes it again
        self.graph = graph
        self.restart()

    def restart(self):
        """Restores the initial weights and a fresh optimiser state, all in place."""
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
    """Returns the figures of one peer. The peak counts everything alive, including graph and
    features, and what the epochs need."""
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
