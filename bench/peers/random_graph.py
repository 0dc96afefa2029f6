#!/usr/bin/env python3
"""Writes an arxiv-shaped random graph (power-law degrees, random features and labels) as .npz, for trying the peer
scripts without nacre. Timings on it stand for the shape only; accuracies mean nothing."""
import argparse

import numpy as np


def power_law_ids(rng, num_nodes, count, exponent):
    """`count` vertex ids; the vertex of rank r is drawn with weight (r + 10)^(-1 / (exponent - 1))."""
    weight = (np.arange(num_nodes) + 10.0) ** (-1.0 / (exponent - 1.0))
    cumulative = np.cumsum(weight)
    ranks = np.searchsorted(cumulative, rng.random(count) * cumulative[-1])
    return rng.permutation(num_nodes)[ranks]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--nodes", type=int, default=169_343)
    parser.add_argument("--edges", type=int, default=1_166_243)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--classes", type=int, default=40)
    parser.add_argument("--relations", type=int, default=7)
    parser.add_argument("--exponent", type=float, default=2.3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    rng = np.random.default_rng(args.seed)
    source = rng.integers(0, args.nodes, args.edges)
    target = power_law_ids(rng, args.nodes, args.edges, args.exponent)
    order = rng.permutation(args.nodes)
    train, val = int(0.54 * args.nodes), int(0.18 * args.nodes)
    np.savez(
        args.out,
        edge_index=np.stack([source, target]).astype(np.int64),
        edge_type=rng.integers(0, args.relations, args.edges),
        x=rng.standard_normal((args.nodes, args.features), dtype=np.float32),
        y=rng.integers(0, args.classes, args.nodes),
        train_idx=np.sort(order[:train]),
        val_idx=np.sort(order[train : train + val]),
        test_idx=np.sort(order[train + val :]),
    )
    degree = np.bincount(target, minlength=args.nodes)
    print(f"{args.out}: {args.nodes} vertices, {args.edges} edges, largest in-degree {degree.max()}")


if __name__ == "__main__":
    main()
