#!/usr/bin/env python3
"""Random graphs with the counts of well-known ones: power-law degrees, random features and labels,
made on the GPU if there is one. Timings on them are those of the shape; accuracies mean nothing.

    random_graph.py OUT.npz --shape arxiv    for nacre and the peer scripts; all vertices train"""
import argparse

import torch

import graph_file

# The counts, exponents and largest degrees are those of src/nacre/data/twin_specs.cpp. `into` has
# the exponent and the largest of the in-degrees and, if the graph is directed, `out` those of the
# out-degrees.
SHAPES = {
    "cora": {"nodes": 2708, "edges": 10556, "features": 1433, "classes": 7, "into": (2.7, 168)},
    "arxiv": {"nodes": 169343, "edges": 1166243, "features": 128, "classes": 40, "into": (2.4, 13155),
              "out": (3.5, 436)},
    "reddit": {"nodes": 232965, "edges": 114615892, "features": 602, "classes": 41, "into": (2.3, 21657)},
    "products": {"nodes": 2449029, "edges": 123718280, "features": 100, "classes": 47, "into": (2.6, 17481)},
    "tiny": {"nodes": 500, "edges": 3000, "features": 24, "classes": 5, "into": (2.4, 60), "out": (3.0, 20)},
}


def rank_weights(nodes, edges, exponent, largest, device):
    """Returns cumulative weights (r + c)^(-1 / (exponent - 1)) of the ranks r, with c such that
    rank 0 expects `largest` edges."""
    rank = torch.arange(nodes, dtype=torch.float64, device=device)
    low, high = -6.0, 9.0
    for _ in range(50):
        middle = (low + high) / 2
        weight = (rank + 10.0**middle) ** (-1.0 / (exponent - 1.0))
        if edges * float(weight[0] / weight.sum()) > largest:
            low = middle
        else:
            high = middle
    return torch.cumsum(weight, 0)


def draw(cumulative, order, count, generator):
    """Draws `count` vertices; order[r] is the vertex of rank r."""
    parts = []
    for first in range(0, count, 1 << 24):
        size = min(1 << 24, count - first)
        point = torch.rand(size, dtype=torch.float64, device=cumulative.device, generator=generator) * cumulative[-1]
        parts.append(order[torch.searchsorted(cumulative, point).clamp_(max=len(order) - 1)])
    return torch.cat(parts)


def make(name, device="cpu", seed=0):
    """Returns the graph on the CPU, as graph_file.load gives it."""
    shape = SHAPES[name]
    nodes, edges = shape["nodes"], shape["edges"]
    generator = torch.Generator(device).manual_seed(seed)
    order = torch.randperm(nodes, device=device, generator=generator)
    into = rank_weights(nodes, edges, *shape["into"], device)
    if "out" in shape:
        target = draw(into, order, edges, generator)
        other = torch.randperm(nodes, device=device, generator=generator)
        source = draw(rank_weights(nodes, edges, *shape["out"], device), other, edges, generator)
        source = torch.where(source == target, (source + 1) % nodes, source)
        edge_index = torch.stack([source, target])
    else:
        ends = [draw(into, order, edges // 2, generator) for _ in range(2)]
        ends[0] = torch.where(ends[0] == ends[1], (ends[0] + 1) % nodes, ends[0])
        edge_index = torch.stack([torch.cat(ends), torch.cat(ends[::-1])])
    label = torch.randint(shape["classes"], (nodes,), device=device, generator=generator)
    label[: shape["classes"]] = torch.arange(shape["classes"], device=device)  # every class occurs
    x = torch.randn(nodes, shape["features"], device=device, generator=generator)
    data = {"edge_index": edge_index, "x": x, "y": label}
    return graph_file.with_counts({key: value.cpu() for key, value in data.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--shape", choices=SHAPES, default="arxiv")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    data = make(args.shape, args.device, args.seed)
    graph_file.write(args.out, data)
    out, into = (int(torch.bincount(ends).max()) for ends in data["edge_index"])
    nodes, edges = data["num_nodes"], data["edge_index"].size(1)
    print(f"{args.out}: {nodes} vertices, {edges} edges, largest degrees {into} in, {out} out")


if __name__ == "__main__":
    main()
