#!/usr/bin/env python3
"""Prints Nacre's GPU figures beside its peers' as Markdown, and which of the aims they meet.

    gpu_table.py NACRE.jsonl PEERS.jsonl… [--strict]

NACRE.jsonl has one line per cell: {"model", "data", "epoch_ms", "p10", "p90", "peak_mb",
"first_losses"}, and optionally {"kind": "spmm", "data", "width", "ms"} for the aggregation alone.
PEERS.jsonl is what gpu.py writes. The last line of a cell counts. With --strict, the status is 1
unless every aim is met."""
import argparse
import json
import math
import pathlib
import sys

GRAPHS = ("cora", "arxiv", "reddit", "products")
MODELS = ("gcn", "sage", "gat", "rgcn")
# The first losses may differ by FIRST_TOLERANCE, and later ones by LATER_TOLERANCE. Programs round
# tf32 differently, and training steps enlarge the differences.
FIRST_TOLERANCE, LATER_TOLERANCE = 5e-4, 1e-2


def read(paths):
    lines = []
    for path in paths:
        file = pathlib.Path(path)
        for text in file.read_text().splitlines() if file.exists() else []:
            if text.strip():
                line = json.loads(text)
                stem = line.get("data", "").split(":")[-1].split("@")[0].split("/")[-1]
                lines.append({**line, "data": stem.removesuffix(".npz").removeprefix("twin_")})
    return lines


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


class Cell:
    """One model on one graph. RGCN's SplitRGCNConv is not a layer of PyG, so it is shown but
    left out of PyG's best."""

    def __init__(self, model, data, mine, runs):
        self.model, self.data, self.mine = model, data, mine
        self.pyg = {p: r for p, r in runs.items() if r["peer"] == "pyg" and r.get("layer") != "SplitRGCNConv"}
        self.split = {p: r for p, r in runs.items() if r.get("layer") == "SplitRGCNConv"}
        self.expert = {p: r for p, r in runs.items() if r["peer"] == "expert"}

    def ratio(self, runs):
        """Returns how many times faster nacre is than the fastest of `runs`."""
        return min(r["epoch_ms"] for r in runs.values()) / self.mine["epoch_ms"] if runs and self.mine else None

    def share(self, runs, least=False):
        """Returns nacre's peak memory over that of the fastest run, or of the leanest."""
        peaks = {p: r for p, r in runs.items() if r.get("peak_mb")}
        if not peaks or not self.mine or not self.mine.get("peak_mb"):
            return None
        chosen = min(peaks.values(), key=lambda r: r["peak_mb" if least else "epoch_ms"])
        return self.mine["peak_mb"] / chosen["peak_mb"]

    def loss_error(self, steps):
        """Returns the largest relative difference between nacre's losses and any peer's, before
        these steps (a slice)."""
        worst = None
        for run in (*self.pyg.values(), *self.split.values(), *self.expert.values()):
            pairs = zip((self.mine or {}).get("first_losses") or [], run.get("first_losses") or [])
            for a, b in list(pairs)[steps]:
                worst = max(worst or 0.0, abs(a - b) / max(abs(b), 1e-12))
        return worst


FIRST, LATER = slice(1), slice(1, None)


def cells(nacre, peers):
    mine = {(r["model"], r["data"]): r for r in nacre if r.get("kind") != "spmm" and "epoch_ms" in r}
    runs = {}
    for r in peers:
        if r.get("kind") == "epoch":
            key = runs.setdefault((r["model"], r["data"]), {})
            key.pop(r["path"], None)
            if "error" not in r:
                key[r["path"]] = r
    keys = {*mine, *runs}
    place = lambda name, names: names.index(name) if name in names else len(names)
    rank = lambda key: (place(key[0], MODELS), place(key[1], GRAPHS), key)
    return [Cell(*key, mine.get(key), runs.get(key, {})) for key in sorted(keys, key=rank)]


def markdown(rows):
    head = [rows[0], ["---" if i < 2 else "---:" for i in range(len(rows[0]))]]
    return "\n".join("| " + " | ".join(row) + " |" for row in head + rows[1:])


def number(value, digits=2):
    return "–" if value is None else f"{value:.{digits}f}"


def fastest(runs):
    """Returns `ms (GiB) path` of the fastest run."""
    if not runs:
        return "–"
    path, run = min(runs.items(), key=lambda item: item[1]["epoch_ms"])
    memory = f" ({run['peak_mb'] / 1024:.2f})" if run.get("peak_mb") else ""
    return f"{run['epoch_ms']:.3g}{memory} {path}"


def epoch_table(all_cells):
    rows = [["model", "graph", "nacre ms (GiB)", "p10–p90", "PyG", "×", "split RGCN", "×", "expert", "×",
             "memory / PyG", "memory / expert", "first loss", "next losses"]]
    for c in all_cells:
        own = fastest({"": c.mine}).strip() if c.mine else "–"
        spread = f"{c.mine['p10']:.3g}–{c.mine['p90']:.3g}" if c.mine and "p10" in c.mine else "–"
        errors = [c.loss_error(steps) for steps in (FIRST, LATER)]
        rows.append([c.model, c.data, own, spread, fastest(c.pyg), number(c.ratio(c.pyg)), fastest(c.split),
                     number(c.ratio(c.split)), fastest(c.expert), number(c.ratio(c.expert)), number(c.share(c.pyg)),
                     number(c.share(c.expert)), *("–" if e is None else f"{e:.0e}" for e in errors)])
    return markdown(rows)


def spmm_pairs(nacre, peers):
    """Returns {(data, width): (nacre ms, cuSPARSE ms, algorithm)}."""
    mine = {(r["data"], r["width"]): r["ms"] for r in nacre if r.get("kind") == "spmm" and "ms" in r}
    theirs = {(r["data"], r["width"]): r for r in peers if r.get("kind") == "spmm" and "ms" in r}
    return {key: (mine.get(key), r["ms"], r["algorithm"]) for key, r in sorted(theirs.items())}


def spmm_table(pairs):
    rows = [["graph", "width", "nacre ms", "cuSPARSE ms", "algorithm", "×"]]
    for (data, width), (mine, theirs, algorithm) in pairs.items():
        ratio = theirs / mine if mine else None
        rows.append([data, str(width), number(mine, 4), number(theirs, 4), algorithm, number(ratio)])
    return markdown(rows)


def known(values):
    return [v for v in values if v is not None]


def aims(all_cells, pairs):
    """Returns [(verdict, text)]."""
    named = [c for c in all_cells if c.model in MODELS and c.data in GRAPHS]
    found = []

    def aim(text, values, holds, summary, wanted=1):
        """Adds a verdict. `wanted` is the number of values it needs; with fewer, it says that it
        is partial."""
        verdict = ("met" if holds(values) else "MISSED") if values else "not measured"
        if 0 < len(values) < wanted:
            verdict += f" (on {len(values)} of {wanted})"
        found.append((verdict, f"{text}: {summary(values)}" if values else text))

    least = lambda values: f"smallest {min(values):.2f}"
    most = lambda values: f"largest {max(values):.2f}"
    mean = lambda values: f"{geomean(values):.2f} over {len(values)} cells, {least(values)}"
    aim("geometric mean over PyG at least 4", known(c.ratio(c.pyg) for c in named), lambda v: geomean(v) >= 4, mean, 14)
    rgcn = [c for c in named if c.model == "rgcn"]
    aim("RGCN over PyG at least 10", known(c.ratio(c.pyg) for c in rgcn), lambda v: geomean(v) >= 10, mean, 4)
    expert = known(c.ratio(c.expert) for c in named)
    aim("geometric mean over the expert at least 1.5", expert, lambda v: geomean(v) >= 1.5, mean, 9)
    aim("no cell below 1.1 of the expert", expert, lambda v: min(v) >= 1.1, least, 9)
    run = [(c.model, c.data) for c in named if c.mine]
    aim("all sixteen cells run", run, lambda v: len(v) == len(GRAPHS) * len(MODELS), lambda v: f"{len(v)} do")
    for text, leanest in (("fastest", False), ("leanest", True)):
        shares = known(c.share(c.pyg, leanest) for c in named)
        aim(f"peak memory at most half of PyG's ({text} path)", shares, lambda v: max(v) <= 0.5, most, 14)
    shares = known(c.share(c.expert) for c in named)
    aim("peak memory never above the expert's", shares, lambda v: max(v) <= 1, most, 9)
    for text, steps, tolerance in (("first losses", FIRST, FIRST_TOLERANCE), ("next losses", LATER, LATER_TOLERANCE)):
        aim(f"{text} agree with every peer's within {tolerance:g}", known(c.loss_error(steps) for c in all_cells),
            lambda v, most=tolerance: max(v) <= most, lambda v: f"largest difference {max(v):.1e}")
    ratios = [theirs / mine for mine, theirs, _ in pairs.values() if mine]
    aim("aggregation never slower than cuSPARSE", ratios, lambda v: min(v) >= 1, least, 32)
    aim("aggregation at least 1.3 of cuSPARSE in the geometric mean", ratios, lambda v: geomean(v) >= 1.3, mean, 32)
    return found


def show(nacre_path, peer_paths):
    """Prints all tables and returns whether every aim is met."""
    nacre, peers = read([nacre_path]), read(peer_paths)
    all_cells, pairs = cells(nacre, peers), spmm_pairs(nacre, peers)
    if all_cells:
        print(epoch_table(all_cells))
    if pairs:
        print("\n" + spmm_table(pairs))
    for name, lines in (("nacre ", nacre), ("", peers)):
        latest = {(r["data"], r.get("kind"), r.get("model"), r.get("path"), r.get("width")): r for r in lines}
        for r in latest.values():
            if "error" in r:
                print(f"\n{name}{r.get('model') or r.get('kind')} {r.get('path', '')} on {r['data']}: {r['error']}")
    checked = aims(all_cells, pairs)
    print()
    for verdict, text in checked:
        print(f"- {verdict}: {text}")
    return all(verdict == "met" for verdict, _ in checked)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nacre")
    parser.add_argument("peers", nargs="+")
    parser.add_argument("--strict", action="store_true")
    args = parser.parse_args()
    met = show(args.nacre, args.peers)
    sys.exit(1 if args.strict and not met else 0)


if __name__ == "__main__":
    main()
