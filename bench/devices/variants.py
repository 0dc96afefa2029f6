#!/usr/bin/env python3
"""Times a training run with variants of kernels that are named instead of chosen.

    bench/devices/variants.py build/bundle/nacre --data /dev/shm/reddit.nacre --model gcn \\
        --devices cuda:0@32,cuda:0@32,cuda:0@32,cuda:0@32 --shares 1,1,1,1 \\
        --try "" --try "columns=tiles;sources=all at once" \\
        --try "columns=tiles of 32 columns;sources=all at once"

`nacre plan` writes the plan of the run, the variants of each --try are written into it for all
kernels (docs/dev/planner.md), and `nacre train --plan` runs it. An empty --try takes what Nacre
chooses. Kernels for which a named variant cannot run take the next one.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def nacre(program, *words):
    done = subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()
    return done.stdout, ""


def variants_of(text):
    return dict(pair.split("=", 1) for pair in text.split(";") if pair)


def taken(plan):
    """Returns how often each variant of sums over rows is named in a plan."""
    counts = {}
    for kernel in json.loads(plan.read_text())["kernels"]:
        for choice in kernel.get("variants", []):
            if choice["decision"] in ("columns", "sources"):
                name = f"{choice['decision']}: {choice['variant']}"
                counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nacre")
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--devices", required=True)
    parser.add_argument("--shares", default="uniform")
    parser.add_argument("--halo-rows", default="late")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--try", dest="tries", action="append", required=True, metavar="DECISION=VARIANT;…")
    o = parser.parse_args()
    model = ["--data", o.data, "--model", o.model, "--layers", o.layers, "--hidden", o.hidden, "--dropout", 0.5, "-q",
             "--devices", o.devices, "--shares", o.shares, "--halo-rows", o.halo_rows]
    model += ["--precision", o.precision] if "cuda" in o.devices else []
    with tempfile.TemporaryDirectory(prefix="nacre-variants-") as folder:
        plan = pathlib.Path(folder) / "plan.json"
        _, error = nacre(o.nacre, "plan", *model, "--output", plan)
        if error:
            sys.exit(error)
        print(f"chosen: {taken(plan)}", flush=True)
        for number, text in enumerate(o.tries):
            named = pathlib.Path(folder) / f"named{number}.json"
            content = json.loads(plan.read_text())
            if text:
                content["options"]["variants"] = variants_of(text)
            named.write_text(json.dumps(content))
            out, error = nacre(o.nacre, "train", *model, "--plan", named if text else "auto", "--epochs", o.epochs,
                               "--eval-every", o.epochs, "--no-checkpoint", "--json")
            if error:
                print(f"{text or 'as chosen':<60} {error.splitlines()[-1]}", flush=True)
                continue
            result = json.loads(out.splitlines()[-1])
            kernels = [rank["kernels_ms"] for rank in result["ranks"] or []]
            print(f"{text or 'as chosen':<60} {result['epoch_ms_median']:>8.2f} ms ({result['epoch_ms_p10']:.2f} to "
                  f"{result['epoch_ms_p90']:.2f}); kernels {', '.join(f'{ms:.2f}' for ms in kernels)} ms; loss "
                  f"{result.get('loss', result.get('train_loss'))}", flush=True)


if __name__ == "__main__":
    main()
