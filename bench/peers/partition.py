#!/usr/bin/env python3
"""Compares the edge cut of `nacre partition` with that of METIS' own program, for the same
work of nodes, the same target shares and the same tolerance.

    partition.py --nacre build/release/nacre                        twin:arxiv and twin:reddit@0.2
    partition.py --nacre build/release/nacre --data twin:products   one graph

`gpmetis` comes with Debian's package metis; the script needs numpy. Both programs see the
undirected graph: an edge counts twice if it exists in both directions. Cuts are counted by this
script on the directed edges, for both sides alike."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    np = None

ROW_WORK, EDGE_WORK = 10, 1
TOLERANCE = 0.03
ROWS = 1 << 16  # lines of a graph that are written at a time
AIM = 1.03      # nacre's cut may be this many times that of gpmetis


def find_metis():
    return shutil.which("gpmetis") if np is not None else None


def undirected(src, dst, nodes):
    """Returns offsets, neighbours and weights of the undirected graph without self loops. The
    weight of an edge is the number of directed edges that it stands for."""
    apart = src != dst
    keys = np.concatenate([dst[apart].astype(np.int64) * nodes + src[apart], src[apart].astype(np.int64) * nodes + dst[apart]])
    keys.sort()
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
    weights = np.diff(np.append(first, len(keys))).astype(np.int32)
    keys = keys[first]
    offsets = np.searchsorted(keys, np.arange(nodes + 1, dtype=np.int64) * nodes)
    return offsets, (keys % nodes).astype(np.int32), weights


def write_metis(path, src, dst, nodes):
    """Writes a graph as METIS reads it. The work of a node is what nacre takes it to be."""
    work = ROW_WORK + EDGE_WORK * np.bincount(dst, minlength=nodes)
    offsets, neighbours, weights = undirected(src, dst, nodes)
    equal = len(weights) == 0 or weights.min() == weights.max()
    with open(path, "w") as file:
        file.write(f"{nodes} {len(neighbours) // 2} {'010' if equal else '011'} 1\n")
        for begin in range(0, nodes, ROWS):
            end = min(nodes, begin + ROWS)
            low, high = offsets[begin], offsets[end]
            words = list(map(str, (neighbours[low:high] + 1).tolist()))
            if not equal:
                words = [f"{v} {w}" for v, w in zip(words, weights[low:high].tolist())]
            at = (offsets[begin:end + 1] - low).tolist()
            works = work[begin:end].tolist()
            file.write("".join(f"{works[i]} {' '.join(words[at[i]:at[i + 1]])}\n" for i in range(end - begin)))


def cut_of(parts, src, dst):
    return int(np.count_nonzero(parts[src] != parts[dst]))


def distance(parts, dst, nodes, shares):
    """Returns the largest distance of a part's work from its target, as a share of the target."""
    work = ROW_WORK + EDGE_WORK * np.bincount(dst, minlength=nodes)
    filled = np.bincount(parts, weights=work, minlength=len(shares))
    target = work.sum() * np.array(shares) / sum(shares)
    return float(np.max(np.abs(filled / target - 1)))


def run_metis(metis, graph, shares, seed):
    """Returns the part of each node, and the seconds that gpmetis says it took to find them."""
    weights = graph.with_suffix(".shares")
    weights.write_text("".join(f"{i} = {share / sum(shares):.9f}\n" for i, share in enumerate(shares)))
    done = subprocess.run([metis, f"-tpwgts={weights}", f"-ufactor={round(1000 * TOLERANCE)}", f"-seed={seed}", str(graph),
                           str(len(shares))], capture_output=True, text=True, check=False)
    parts = pathlib.Path(f"{graph}.part.{len(shares)}")
    if done.returncode != 0 or not parts.exists():
        raise SystemExit(f"partition.py: gpmetis failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    seconds = [line.split()[1] for line in done.stdout.splitlines() if line.strip().startswith("Partitioning:")]
    return np.fromfile(parts, sep=" ", dtype=np.int32), float(seconds[0]) if seconds else float("nan")


def run_nacre(nacre, data, shares, folder, seed):
    parts = folder / "parts.npy"
    parts.unlink(missing_ok=True)
    done = subprocess.run([nacre, "partition", "--data", data, "--shares", ",".join(map(str, shares)), "--row-work",
                           str(ROW_WORK), "--edge-work", str(EDGE_WORK), "--imbalance", str(TOLERANCE), "--seed", str(seed),
                           "--no-partition-cache", "-o", str(parts), "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"partition.py: nacre failed\n{done.stderr[-2000:]}")
    return np.load(parts), json.loads(done.stdout)


def compare(nacre, metis, data, all_shares, folder, seeds):
    """Yields a row of figures for each list of shares."""
    exported = folder / "graph.npz"
    subprocess.run([nacre, "data", "convert", "--force", "-q", data, str(exported)], check=True, stdout=sys.stderr)
    with np.load(exported) as file:
        src, dst = file["edge_index"].astype(np.int32)
        nodes = int(file["num_nodes"]) if "num_nodes" in file.files else len(file["x"])
    exported.unlink()
    graph = folder / "graph.metis"
    began = time.monotonic()
    write_metis(graph, src, dst, nodes)
    print(f"{data}: written for gpmetis in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    for shares in all_shares:
        row = {"data": data, "shares": shares, "edges": len(src), "ratio": []}
        for seed in range(seeds):
            own, said = run_nacre(nacre, data, shares, folder, seed)
            theirs, seconds = run_metis(metis, graph, shares, seed)
            cuts = cut_of(own, src, dst), cut_of(theirs, src, dst)
            assert cuts[0] == said["cut_edges"], "nacre counts another cut"
            row["ratio"].append(cuts[0] / max(1, cuts[1]))
            row.update(nacre_cut=cuts[0], metis_cut=cuts[1], nacre_off=distance(own, dst, nodes, shares),
                       metis_off=distance(theirs, dst, nodes, shares), nacre_s=said["seconds"], metis_s=seconds)
        row["ratio"] = float(np.exp(np.mean(np.log(row["ratio"]))))
        yield row


def table(rows):
    lines = ["| graph | shares | cut of nacre | cut of gpmetis | ratio | nacre off target | gpmetis off target | nacre s | gpmetis s |",
             "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for r in rows:
        cuts = [f"{100 * r[side] / max(1, r['edges']):.2f} %" for side in ("nacre_cut", "metis_cut")]
        lines.append(f"| {r['data']} | {','.join(map(str, r['shares']))} | {cuts[0]} | {cuts[1]} | {r['ratio']:.3f} | "
                     f"{100 * r['nacre_off']:.1f} % | {100 * r['metis_off']:.1f} % | {r['nacre_s']:.1f} | {r['metis_s']:.1f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nacre", required=True, help="the program to measure")
    parser.add_argument("--data", action="append", help="a graph; may be repeated")
    parser.add_argument("--shares", action="append", help="shares such as 1,2,4; may be repeated")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each; the ratio is their geometric mean")
    parser.add_argument("--folder", help="folder for large temporary files; default: the system's")
    args = parser.parse_args()
    metis = find_metis()
    if metis is None:
        print("partition.py: skipped, because gpmetis (Debian's package metis) or numpy is missing", file=sys.stderr)
        return 0
    shares = [tuple(map(int, text.split(","))) for text in args.shares or ("1,1,1,1", "1,2,4")]
    rows = []
    for data in args.data or ("twin:arxiv", "twin:reddit@0.2"):
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            for row in compare(os.path.abspath(args.nacre), metis, data, shares, pathlib.Path(folder), args.seeds):
                rows.append(row)
                print(json.dumps(row), file=sys.stderr, flush=True)
    print(table(rows))
    return 0 if all(row["ratio"] <= AIM and row["nacre_off"] <= TOLERANCE + 1e-9 for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
