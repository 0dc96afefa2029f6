#!/usr/bin/env python3
"""Divides the nodes of an .npz file, which all have a row of one matrix of features, into kinds
with features of their own. A kind keeps the first columns of its rows. Edges must have types.

    nacre data export twin:mag@0.01 mag.npz
    bench/hetero/give_kinds.py mag.npz kinds.npz paper=7364x128 author=11346x64 institution=88x32 \\
        field=599x16
    nacre train --data kinds.npz --undirected --model rgcn --mode minibatch --fanout 10,10

paper=7364x128 says that the first 7,364 nodes are papers with 128 features; 0 columns are no
features. Nodes of twin:mag have kinds in this order, and their numbers grow with the scale
(docs/twins.md). The script needs only the standard library.
"""
import argparse
import array
import ast
import bisect
import itertools
import zipfile

MAGIC = b"\x93NUMPY"


def read_npy(data):
    """Returns the header of an .npy file and the bytes that follow it."""
    size = 2 if data[6] == 1 else 4
    end = 8 + size + int.from_bytes(data[8:8 + size], "little")
    return ast.literal_eval(data[8 + size:end].decode()), data[end:]


def npy(descr, shape, payload):
    text = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little") + text + payload


def words(list):
    longest = max(len(word.encode()) for word in list)
    return npy(f"|S{longest}", (len(list),), b"".join(word.encode().ljust(longest, b"\0") for word in list))


def integers(list):
    return npy("<i8", (len(list),), array.array("q", list).tobytes())


def relations(edges, types, offsets):
    """Returns the kinds that the edges of each type lead from and to."""
    ends, of = array.array("q", read_npy(edges)[1]), array.array("q", read_npy(types)[1])
    first = {}
    for edge, type in enumerate(of):
        first.setdefault(type, edge)
    kind_of = lambda vertex: bisect.bisect_right(offsets, vertex) - 1
    return [(kind_of(ends[edge]), kind_of(ends[len(of) + edge])) for _, edge in sorted(first.items())]


def divide(source, target, kinds):
    """`kinds` are tuples of a name, a number of nodes and a number of columns."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        header, rows = read_npy(old.read("x.npy"))
        nodes, columns = header["shape"]
        if header["descr"] != "<f4" or sum(count for _, count, _ in kinds) != nodes or \
                any(width > columns for _, _, width in kinds):
            raise SystemExit(f"{source} has {nodes} nodes with {columns} features")
        for name in old.namelist():
            if name != "x.npy":
                new.writestr(name, old.read(name))
        offsets = [0, *itertools.accumulate(count for _, count, _ in kinds)]
        new.writestr("node_types.npy", words([name for name, _, _ in kinds]))
        new.writestr("node_offsets.npy", integers(offsets))
        pairs = relations(old.read("edge_index.npy"), old.read("edge_type.npy"), offsets)
        new.writestr("relation_name.npy", words([f"{kinds[a][0]}-{kinds[b][0]}" for a, b in pairs]))
        new.writestr("relation_src.npy", integers([a for a, _ in pairs]))
        new.writestr("relation_dst.npy", integers([b for _, b in pairs]))
        for (name, count, width), first in zip(kinds, offsets):
            if width > 0:
                part = b"".join(rows[v * columns * 4:(v * columns + width) * 4] for v in range(first, first + count))
                new.writestr(f"x_{name}.npy", npy("<f4", (count, width), part))


def kind(text):
    name, sizes = text.split("=")
    count, width = sizes.split("x")
    return name, int(count), int(width)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("kinds", nargs="+", type=kind, help="for example paper=7364x128")
    args = parser.parse_args()
    divide(args.source, args.target, args.kinds)


if __name__ == "__main__":
    main()
