#!/usr/bin/env python3
"""Compares epochs that nacre simulate predicts with epochs that were measured on one H200.

    bench/simulate/known.py build/release/nacre [--count-on 0.05] [--only reddit]

No GPU is needed, so a change of prices shows its error here. The measured epochs are those of
docs/results.md and docs/results_log.md: 3 layers, hidden 256, dropout 0.5, tf32. Graphs are cut and
counted on twins of --count-on of their size, arxiv on the whole twin. Parts of the GPU are
described as `like = "h200x8"` with fewer multiprocessors. Epochs of parts on reddit were measured
before sums were divided into blocks of sources (docs/dev/planner.md).
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

FOUR = (32, 32, 32, 32)
UNEQUAL = (16, 32, 64)
# Each entry has the graph, the model, the multiprocessors and the shares of the parts, the value of
# --halo-rows, and the measured milliseconds of an epoch.
KNOWN = (
    ("products", "gcn", (128,), None, None, 95.2),
    ("products", "sage", (128,), None, None, 110.2),
    ("reddit", "gcn", (128,), None, None, 36.8),
    ("reddit", "sage", (128,), None, None, 38.4),
    ("arxiv", "gcn", (132,), None, None, 1.88),
    ("products", "gcn", FOUR, (1, 1, 1, 1), "late", 117.5),
    ("products", "sage", FOUR, (1, 1, 1, 1), "late", 143.8),
    ("products", "gcn", FOUR, (1, 1, 1, 1), "columns", 159.5),
    ("products", "gcn", FOUR, (1, 1, 1, 1), "sums", 117.2),
    ("products", "gcn", FOUR, (1, 1, 1, 1), "narrow", 168.4),
    ("products", "sage", FOUR, (1, 1, 1, 1), "narrow", 213.7),
    ("products", "gcn", FOUR, (1, 1, 1, 1), "early", 183.8),
    ("reddit", "gcn", FOUR, (1, 1, 1, 1), "late", 46.8),
    ("reddit", "sage", FOUR, (1, 1, 1, 1), "late", 49.6),
    ("reddit", "gcn", FOUR, (1, 1, 1, 1), "columns", 70.7),
    ("reddit", "gcn", FOUR, (1, 1, 1, 1), "sums", 47.0),
    ("reddit", "gcn", FOUR, (1, 1, 1, 1), "early", 56.9),
    ("reddit", "gcn", UNEQUAL, (1, 2, 4), "narrow", 46.0),
    ("reddit", "gcn", UNEQUAL, (1, 1, 1), "narrow", 79.3),
    ("arxiv", "gcn", UNEQUAL, (1, 2, 4), "narrow", 3.54),
    ("arxiv", "gcn", UNEQUAL, (1, 1, 1), "narrow", 8.47),
    ("arxiv", "gat", UNEQUAL, (1, 2, 4), "narrow", 10.95),
    ("arxiv", "gat", UNEQUAL, (1, 1, 1), "narrow", 20.2),
    ("arxiv", "gcn", (8, 24, 80), (1, 1, 1), "late", 10.7),
)


def hardware(parts, latency):
    text = 'name = "parts of one H200"\noverlap = false\n'
    for part in dict.fromkeys(parts):
        text += f'\n[[device]]\nname = "cuda:0@{part}"\ncount = {parts.count(part)}\nlike = "h200x8"\nmultiprocessors = {part}\n'
    return text + f"\n[inside]\nlatency = {latency}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nacre")
    parser.add_argument("--count-on", type=float, default=0.05)
    parser.add_argument("--only", default="", help="part of the title of the rows to compare")
    parser.add_argument("--latency", type=float, default=20e-6, help="seconds of a communication")
    o = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory(prefix="nacre-known-") as folder:
        for graph, model, parts, shares, rows, measured in KNOWN:
            title = f"{graph} {model} {'-'.join(map(str, parts))} {rows or ''} {','.join(map(str, shares or ()))}"
            if o.only not in title:
                continue
            path = pathlib.Path(folder) / "hardware.toml"
            path.write_text(hardware(parts, o.latency))
            words = ["simulate", "--data", f"twin:{graph}", "--model", model, "--layers", 3, "--hidden", 256, "--dropout",
                     0.5, "--precision", "tf32", "--plan", "off", "--hardware", path, "--ranks", len(parts), "--json", "-q"]
            words += [] if graph == "arxiv" else ["--count-on", o.count_on]
            words += ["--shares", ",".join(map(str, shares)), "--halo-rows", rows] if shares else []
            done = subprocess.run([o.nacre, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                print(f"{title:<48} {(done.stderr.strip().splitlines() or ['no message'])[-1]}", flush=True)
                continue
            run = json.loads(done.stdout.splitlines()[-1])["runs"][0]
            ratio = run["epoch_ms"] / measured
            ratios.append(ratio)
            print(f"{title:<48} predicted {run['epoch_ms']:>8.2f} ms (computing {run['computing_ms']:.2f}, moving "
                  f"{run['communication_ms']:.2f}, waiting {run['waiting_ms']:.2f}), measured {measured:>7.2f}, ratio "
                  f"{ratio:.2f}{'' if abs(ratio - 1) <= 0.15 else '  MISSED'}", flush=True)
    print(f"{sum(abs(r - 1) <= 0.15 for r in ratios)} of {len(ratios)} within 15 %")


if __name__ == "__main__":
    main()
