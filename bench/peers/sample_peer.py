#!/usr/bin/env python3
"""Neighbour sampling by others, on a graph that nacre exported (`nacre data export … .npz`); one
line of JSON each:

    sample_peer.py products.npz [--fanout 15,10,5] [--batch-size 1024] [--batches 20] [--threads 1]

pyg:     PyG's own sampler called directly, and through NeighborLoader. It needs pyg-lib or
         torch-sparse, and says which. PyG draws edges only for the vertices that the last hop
         found, nacre for all known so far (every layer needs them), so edges per batch differ:
         compare edges per second.
torch:   what can be written with tensor operations alone: draws with replacement (cheaper than
         without), a table with an entry per vertex, torch.unique for the new ones.

bench/sample times nacre. On a machine that is not idle, compare processor times."""
import argparse
import json
import sys
import time

import numpy as np
import torch


def load(path):
    """Returns (row offsets by destination, sources, edge_index sorted by destination, seeds)."""
    with np.load(path) as npz:
        edge_index = torch.from_numpy(npz["edge_index"]).long()
        seeds = torch.from_numpy(npz["train_idx"]).long() if "train_idx" in npz.files else None
        nodes = int(npz["num_nodes"]) if "num_nodes" in npz.files else len(npz["y"]) if "y" in npz.files else 0
    nodes = max(nodes, int(edge_index.max()) + 1 if edge_index.numel() else 0)
    if not bool((edge_index[1][1:] >= edge_index[1][:-1]).all()):
        edge_index = edge_index[:, torch.argsort(edge_index[1], stable=True)]
    offsets = torch.zeros(nodes + 1, dtype=torch.int64)
    torch.cumsum(torch.bincount(edge_index[1], minlength=nodes), 0, out=offsets[1:])
    return offsets, edge_index, torch.arange(nodes) if seeds is None or len(seeds) == 0 else seeds


class TensorSampler:
    def __init__(self, offsets, sources):
        self.offsets, self.sources = offsets, sources
        self.number = torch.full((len(offsets) - 1,), -1, dtype=torch.int64)

    def __call__(self, seeds, fanout):
        known, edges = seeds, 0
        self.number[seeds] = torch.arange(len(seeds))
        for count in fanout:
            begin = self.offsets[known]
            degree = self.offsets[known + 1] - begin
            targets = degree.nonzero().view(-1)
            draws = (torch.rand(len(targets), count) * degree[targets, None]).long()
            drawn = self.sources[(begin[targets, None] + draws).view(-1)]
            fresh = torch.unique(drawn[self.number[drawn] < 0])
            self.number[fresh] = torch.arange(len(known), len(known) + len(fresh))
            known = torch.cat([known, fresh])
            block = (self.number[drawn], targets.repeat_interleave(count))
            edges += len(block[0])
        self.number[known] = -1
        return edges, len(known)


def pyg_samplers(edge_index, nodes, fanout, batch_size):
    """Returns {name: sample}, where sample(seeds) returns (edges, vertices). Returns an empty
    map if there is no compiled sampler."""
    try:
        import torch_geometric.typing as have
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader
        from torch_geometric.sampler import NeighborSampler, NodeSamplerInput
    except ImportError as error:
        print(f"no PyG: {error}", file=sys.stderr)
        return {}
    back_end = "pyg-lib" if have.WITH_PYG_LIB else "torch-sparse" if have.WITH_TORCH_SPARSE else None
    if back_end is None:
        print("PyG is there, but neither pyg-lib nor torch-sparse, without which it cannot sample", file=sys.stderr)
        return {}
    data = Data(edge_index=edge_index, num_nodes=nodes)
    sampler = NeighborSampler(data, list(fanout), is_sorted=True)

    def direct(seeds):
        out = sampler.sample_from_nodes(NodeSamplerInput(input_id=None, node=seeds))
        return len(out.row), len(out.node)

    def loader(seeds):
        batches = NeighborLoader(data, list(fanout), input_nodes=seeds, batch_size=batch_size, neighbor_sampler=sampler)
        batch = next(iter(batches))
        return batch.edge_index.shape[1], batch.num_nodes

    return {f"pyg sampler ({back_end})": direct, f"pyg NeighborLoader ({back_end})": loader}


def timed(name, sample, seeds, options):
    order = seeds[torch.randperm(len(seeds))]
    batches = order.split(options.batch_size)
    sample(batches[0])
    edges = vertices = 0
    wall, cpu = time.perf_counter(), time.process_time()
    for i in range(options.batches):
        counts = sample(batches[i % len(batches)])
        edges, vertices = edges + counts[0], vertices + counts[1]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({
        "peer": name, "torch": torch.__version__, "threads": torch.get_num_threads(), "batch_size": options.batch_size,
        "batches": options.batches, "fanout": options.fanout, "edges_per_batch": edges / options.batches,
        "vertices_per_batch": vertices / options.batches, "edges_per_core_s": edges / cpu, "edges_per_wall_s": edges / wall,
    }), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--fanout", type=lambda text: [int(part) for part in text.split(",")], default=[15, 10, 5])
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    offsets, edge_index, seeds = load(options.graph)
    nodes = len(offsets) - 1
    for name, sample in pyg_samplers(edge_index, nodes, options.fanout, options.batch_size).items():
        timed(name, sample, seeds, options)
    tensors = TensorSampler(offsets, edge_index[0].contiguous())
    timed("torch tensors", lambda batch: tensors(batch, options.fanout), seeds, options)


if __name__ == "__main__":
    main()
