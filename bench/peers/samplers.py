#!/usr/bin/env python3
"""Compares the samplers of Nacre and DGL on one core, by themselves and inside a training of
GraphSAGE in PyTorch: sampled edges per second, and seconds of an epoch. Seconds are those of the
processor, so that other programs on the machine do not count.

    PYTHONPATH=build/release/python taskset -c 0 python bench/peers/samplers.py [--data twin:arxiv]

Needs torch and dgl (2.1 runs with torch 2.2 and NumPy 1).
"""
import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("DGLBACKEND", "pytorch")

import dgl
import numpy as np
import torch

import nacre


class Timer:
    """A Timer adds up the seconds that sampling takes and the edges that it returns."""

    def __init__(self):
        self.seconds, self.edges, self.steps = 0.0, 0, 0

    def over(self, batches, edges_of):
        """Yields the batches; counts the time in which they are made, but not that of their use."""
        batches = iter(batches)
        while True:
            start = time.process_time()
            batch = next(batches, None)
            if batch is None:
                return
            self.seconds += time.process_time() - start
            self.edges += edges_of(batch)
            self.steps += 1
            yield batch

    def rate(self):
        return self.edges / self.seconds / 1e6


class Sage(torch.nn.Module):
    """The model is GraphSAGE with the mean of the neighbours. It reads edges by local ids."""

    def __init__(self, widths):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(2 * a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, h, blocks):
        for layer, (src, dst, count) in zip(self.layers, blocks):
            total = torch.zeros(count, h.shape[1]).index_add_(0, dst, h[src])
            mean = total / torch.bincount(dst, minlength=count).clamp(min=1).unsqueeze(1)
            h = layer(torch.cat([h[:count], mean], dim=1))
            h = h if layer is self.layers[-1] else h.relu()
        return h


def of_nacre(graph, fanout, batch_size):
    def parts(batch):
        blocks = [(*torch.from_numpy(block.edge_index), block.num_dst) for block in batch.blocks]
        return torch.from_numpy(batch.n_id), torch.from_numpy(batch.seeds), blocks
    return nacre.sampler(graph, fanout=fanout, batch_size=batch_size), lambda batch: batch.num_edges, parts


def of_dgl(graph, fanout, batch_size):
    given = graph.to_dgl()
    sampler = dgl.dataloading.NeighborSampler(fanout[::-1])
    loader = dgl.dataloading.DataLoader(given, torch.from_numpy(graph.train_idx.astype(np.int64)), sampler,
                                        batch_size=batch_size, shuffle=True, num_workers=0)

    def parts(batch):
        nodes, seeds, blocks = batch
        return nodes, seeds, [(*block.edges(), block.num_dst_nodes()) for block in blocks]
    return loader, lambda batch: sum(block.num_edges() for block in batch[2]), parts


def measure(name, graph, fanout, batch_size, epochs):
    """Prints and returns the rate of a sampler by itself and inside a training."""
    batches, edges_of, parts = (of_nacre if name == "nacre" else of_dgl)(graph, fanout, batch_size)
    alone = Timer()
    for _ in range(epochs):
        for _ in alone.over(batches, edges_of):
            pass
    x, y = torch.tensor(graph.x), torch.tensor(graph.y).long()
    torch.manual_seed(0)
    model = Sage([x.shape[1]] + [64] * (len(fanout) - 1) + [graph.num_classes])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    inside, start, losses = Timer(), time.process_time(), []
    for batch in inside.over(batches, edges_of):
        nodes, seeds, blocks = parts(batch)
        loss = torch.nn.functional.cross_entropy(model(x[nodes], blocks), y[seeds])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    seconds = time.process_time() - start
    print(f"{name:<6} alone {alone.rate():7.1f} M edges/s, in training {inside.rate():7.1f} M edges/s; "
          f"{inside.steps} steps, {inside.edges / inside.steps:,.0f} edges each; epoch {seconds:.2f} s, of which "
          f"sampling {inside.seconds:.2f} s; loss {np.mean(losses[:3]):.3f} to {np.mean(losses[-3:]):.3f}", flush=True)
    return alone.rate(), inside.rate()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="twin:arxiv")
    parser.add_argument("--fanout", default="15,10,5")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    graph = nacre.load(options.data)
    fanout = [int(number) for number in options.fanout.split(",")]
    print(f"{graph}; DGL {dgl.__version__}, torch {torch.__version__}, {len(os.sched_getaffinity(0))} core(s)")
    rates = [measure(name, graph, fanout, options.batch_size, options.epochs) for name in ("nacre", "dgl", "nacre", "dgl")]
    for what, index in (("alone", 0), ("in training", 1)):
        ours, theirs = (max(rate[index] for rate in rates[which::2]) for which in (0, 1))
        print(f"{what}: {ours / theirs:.1f} times DGL")


if __name__ == "__main__":
    main()
