#!/usr/bin/env python3
"""Writes an invented set in IGBH's layout: papers, authors, institutes and fields of study, with
features of different widths.

    bench/hetero/make_igbh.py FOLDER        as many vertices and edges as IGBH-tiny, 1024 features
    bench/hetero/make_igbh.py FOLDER --scale 0.1 --widths paper=64,author=32,institute=16 --bare
    nacre train --data FOLDER --model rgcn --epochs 10

Papers have one of 19 labels. Vertices that are linked to a paper mostly share its label, and
features lean towards it, so that a model can learn something. Kinds that --widths leaves out have
no features. Relations are written in both directions (rev_…), as people who train on IGBH add them.
The script needs only the standard library.
"""
import argparse
import array
import pathlib
import random

CLASSES = 19
# These are the numbers of vertices and edges of IGBH-tiny.
VERTICES = {"paper": 100_000, "author": 357_041, "institute": 8_738, "fos": 84_220}
EDGES = {("paper", "cites", "paper"): 447_416, ("paper", "written_by", "author"): 455_642,
         ("author", "affiliated_to", "institute"): 44_532, ("paper", "topic", "fos"): 718_445}
VARIANTS = 32  # rows of features for each class, which are drawn once and then repeated


def npy(path, payload, descr, shape):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
        for part in payload:
            file.write(part)


def feature_rows(rng, topics, width, signal=0.5):
    """Yields the bytes of one row after the other."""
    pool = []
    for _ in range(CLASSES):
        center = [rng.gauss(0, signal) for _ in range(width)]
        pool.append([array.array("f", (c + rng.gauss(0, 1) for c in center)).tobytes() for _ in range(VARIANTS)])
    for topic in topics:
        yield pool[topic][rng.randrange(VARIANTS)]


def write(folder, scale=1.0, widths=None, bare=False, reverse=True, seed=1):
    """Writes the set under `folder`/processed and returns the numbers of vertices and edges.
    With `bare`, features that are 1024 wide have no .npy header, as in the large sets."""
    rng = random.Random(seed)
    widths = dict.fromkeys(VERTICES, 1024) if widths is None else widths
    base = pathlib.Path(folder) / "processed"
    topics = {kind: [rng.randrange(CLASSES) for _ in range(max(CLASSES, round(count * scale)))]
              for kind, count in VERTICES.items()}
    for kind, of in topics.items():
        width = widths.get(kind, 0)
        if width == 0:
            continue
        path = base / kind / "node_feat.npy"
        rows = feature_rows(rng, of, width)
        if bare and width == 1024:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(rows))
        else:
            npy(path, rows, "<f4", (len(of), width))
    npy(base / "paper/node_label_19.npy", [array.array("f", topics["paper"]).tobytes()], "<f4", (len(topics["paper"]),))
    members = {kind: [[] for _ in range(CLASSES)] for kind in topics}
    for kind, of in topics.items():
        for v, topic in enumerate(of):
            members[kind][topic].append(v)
    edges = 0
    for (src, name, dst), count in EDGES.items():
        pairs = array.array("q")
        for _ in range(max(1, round(count * scale))):
            s = rng.randrange(len(topics[src]))
            near = members[dst][topics[src][s]]
            # The square of a uniform number is often small, so few vertices get many of the edges.
            place = rng.random() ** 2
            d = near[int(place * len(near))] if near and rng.random() < 0.7 else int(place * len(topics[dst]))
            pairs.extend((s, d))
        back = array.array("q", pairs)
        back[0::2], back[1::2] = pairs[1::2], pairs[0::2]
        both = [((src, name, dst), pairs)] + ([((dst, "rev_" + name, src), back)] if reverse else [])
        for triple, values in both:
            npy(base / "__".join(triple) / "edge_index.npy", [values.tobytes()], "<i8", (len(values) // 2, 2))
            edges += len(values) // 2
    return sum(map(len, topics.values())), edges


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on IGBH-tiny's numbers of vertices and edges")
    parser.add_argument("--widths", help="KIND=WIDTH,…: kinds left out have no features")
    parser.add_argument("--bare", action="store_true", help="write no headers where features are 1024 wide")
    parser.add_argument("--no-reverse", action="store_true", help="write relations in one direction only")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    widths = None
    if args.widths is not None:
        widths = {kind: int(width) for kind, width in (part.split("=") for part in args.widths.split(",") if part)}
    vertices, edges = write(args.folder, args.scale, widths, args.bare, not args.no_reverse, args.seed)
    print(f"{args.folder}: {vertices} vertices, {edges} edges")


if __name__ == "__main__":
    main()
