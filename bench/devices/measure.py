#!/usr/bin/env python3
"""Measures training on parts of one GPU, and prints one table for each question.

    bench/devices/measure.py build/bundle/nacre
    bench/devices/measure.py build/release/nacre --cpu --scale 0.01 --tables cost --epochs 12

    cost        four equal devices against one that has as many multiprocessors, with and without
                overlap
    shares      unequal devices: equal shares, shares by cores, and shares that the run finds
    host        a whole GPU, and the same GPU with 16 cores of its host
    placement   which rows travel: every fixed choice and auto, for several hidden sizes
    simulated   what nacre simulate predicts for the runs of the first two tables

Every measurement is one line of JSON in --out, written at once. A line that is already there is not
measured again, so the script can be stopped and started again. A run that fails is noted, and the
others go on. After --seconds no further run is started, and the tables say what is missing. Data
are made once in --folder, and the graphs are cut before anything is measured.

Work is moved between devices only if the rest of the run saves more time than moving takes, so runs
with --shares auto are started as very long ones and interrupted after --auto-seconds.

On parts of one GPU, --shares flops gives the shares of cores, and --shares frequency those of
uniform, because all multiprocessors are alike. Each pair is measured once.

--cpu takes threads of the host instead of multiprocessors, one for every 16 of them. This shows
that the script works; the times of a busy machine say little.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

FOUR = (32, 32, 32, 32)
WHOLE = 128
UNEQUAL = ((16, 32, 64), (8, 24, 80))
RULES = ("uniform", "cores", "auto")
SAME_AS = {"uniform": "uniform, frequency", "cores": "cores, flops", "auto": "auto"}
CHOICES = ("late", "narrow", "early", "columns", "sums", "auto")
HIDDEN = (16, 64, 256, 1024, 32, 128, 512)
WANTED_COST = {"reddit": 1.25, "products": 1.35}
WANTED_GAIN = {"gcn": 1.33, "gat": 1.23}


class Run:
    """One training run. Its key tells it apart from all others."""

    def __init__(self, graph, model, parts, shares="uniform", hidden=256, rows="auto", overlap=True):
        self.graph, self.model, self.parts, self.shares = graph, model, tuple(parts), shares
        self.hidden, self.rows, self.overlap = hidden, rows, overlap

    def key(self):
        return "|".join(map(str, (self.graph, self.model, "-".join(map(str, self.parts)), self.shares, self.hidden,
                                  self.rows, "overlap" if self.overlap else "no-overlap")))

    def title(self):
        more = "" if self.overlap else ", no overlap"
        return f"{self.graph} {self.model} {self.hidden}, {'+'.join(map(str, self.parts))}, {self.shares}, {self.rows}{more}"


class Bench:
    def __init__(self, options):
        self.o = options
        self.start = time.monotonic()
        self.folder = pathlib.Path(options.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.out = pathlib.Path(options.out)
        self.known = {}
        if self.out.exists():
            for line in self.out.read_text().splitlines():
                record = json.loads(line)
                if "error" not in record:
                    self.known[record["key"]] = record

    def left(self):
        return self.o.seconds - (time.monotonic() - self.start)

    def say(self, text):
        print(f"[{time.monotonic() - self.start:5.0f} s] {text}", flush=True)

    def keep(self, record):
        with open(self.out, "a") as file:
            file.write(json.dumps(record) + "\n")
        if "error" not in record:
            self.known[record["key"]] = record
        return record

    def nacre(self, *words, seconds=120, threads=None, interrupt=None):
        """Returns what the command prints as JSON, or {"error": …}. With `interrupt`, the command
        is interrupted after so many seconds and prints what it has."""
        environment = dict(os.environ, NACRE_CACHE=str(self.folder / "cache"))
        command = [self.o.nacre, *map(str, words), "-q"]
        if threads:
            command += ["--threads", str(threads)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        try:
            try:
                out, err = process.communicate(timeout=interrupt or max(1, seconds))
            except subprocess.TimeoutExpired:
                if not interrupt:
                    raise
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return {"error": f"no result after {seconds:.0f} s"}
        if process.returncode not in ((0, 130) if interrupt else (0,)):
            last = (err.strip().splitlines() or ["no message"])[-1]
            return {"error": f"status {process.returncode}: {last[:300]}"}
        try:
            return json.loads(out.splitlines()[-1]) if "--json" in words else {}
        except (IndexError, ValueError):
            return {"error": "the command has printed no JSON"}

    def device(self, part):
        if isinstance(part, str):
            return part
        return f"cpu:{max(1, part // 16)}" if self.o.cpu else f"cuda:{self.o.gpu}@{part}"

    def data(self, graph):
        return str(self.folder / f"{graph}{'' if self.o.scale == 1 else f'-{self.o.scale:g}'}.nacre")

    # ---- Making the data and partitions, before anything is measured

    def make_data(self, graph):
        if pathlib.Path(self.data(graph)).exists():
            return
        twin = f"twin:{graph}" + ("" if self.o.scale == 1 else f"@{self.o.scale:g}")
        made = self.nacre("data", "make", twin, self.data(graph), seconds=self.left())
        self.say(f"{graph}: {made.get('error', 'made')}")

    def cut(self, graph, shares):
        words = ("partition", "--data", self.data(graph), "--shares", ",".join(map(str, shares)))
        done = self.nacre(*words, seconds=self.left(), threads=self.o.cut_threads)
        self.say(f"{graph} cut by {shares}: {done.get('error', 'done')}")

    def prepare(self):
        with concurrent.futures.ThreadPoolExecutor(self.o.jobs) as pool:
            list(pool.map(self.make_data, self.o.graphs))
            cuts = []
            if "cost" in self.o.tables or "placement" in self.o.tables:
                cuts += [(g, FOUR) for g in self.o.graphs if g in WANTED_COST or g == self.o.swept]
            if "shares" in self.o.tables:
                cuts += [(g, shares) for g in self.o.graphs for shares in ((1, 1, 1), *UNEQUAL)]
            list(pool.map(lambda cut: self.cut(*cut), cuts))

    # ---- Measurements.

    def train(self, run, epochs=None):
        if run.key() in self.known:
            return self.known[run.key()]
        if self.left() < 5:
            return None
        interrupt = None
        epochs = epochs or self.o.epochs
        if run.shares == "auto" and len(run.parts) > 1:
            interrupt, epochs = self.o.auto_seconds.get(run.graph, 30), 1000000
        words = ["train", "--data", self.data(run.graph), "--model", run.model, "--layers", self.o.layers, "--hidden",
                 run.hidden, "--dropout", 0.5, "--epochs", epochs, "--eval-every", epochs, "--no-checkpoint", "--json"]
        if not self.o.cpu:
            words += ["--precision", self.o.precision]
        if len(run.parts) == 1 and self.o.cpu:
            words += ["--device", "cpu", "--threads", self.device(run.parts[0])[4:]]
        elif len(run.parts) == 1:
            words += ["--device", self.device(run.parts[0])]
        else:
            words += ["--devices", ",".join(map(self.device, run.parts)), "--shares", run.shares, "--halo-rows",
                      run.rows] + ([] if run.overlap else ["--no-overlap"])
        begin = time.monotonic()
        result = self.nacre(*words, seconds=min(self.o.longest, self.left() + 30), interrupt=interrupt)
        record = {"key": run.key(), "graph": run.graph, "model": run.model, "parts": run.parts, "shares": run.shares,
                  "hidden": run.hidden, "rows": run.rows, "overlap": run.overlap, "run_s": time.monotonic() - begin}
        if "error" in result:
            record["error"] = result["error"]
            self.say(f"{run.title()}: {result['error']}")
            return self.keep(record)
        record.update(epoch_ms=result["epoch_ms_median"], p10=result["epoch_ms_p10"], p90=result["epoch_ms_p90"],
                      ranks=result.get("ranks") or [], halo_rows=result.get("halo_rows"))
        waits = [100 * r["waiting_s"] / r["step_s"] for r in record["ranks"] if r.get("step_s")]
        record["longest_wait_percent"] = max(waits, default=None)
        self.say(f"{run.title()}: {record['epoch_ms']:.2f} ms ({record['p10']:.2f} to {record['p90']:.2f}), "
                 f"run of {record['run_s']:.0f} s")
        return self.keep(record)

    def cost_runs(self):
        for graph in self.o.graphs:
            for model in ("gcn", "sage") if graph in WANTED_COST else ():
                yield Run(graph, model, (WHOLE,))
                yield Run(graph, model, FOUR)
                yield Run(graph, model, FOUR, overlap=False)

    def share_runs(self):
        for model in ("gcn", "gat"):
            for parts in UNEQUAL:
                for graph in self.o.graphs:
                    for rule in RULES:
                        yield Run(graph, model, parts, rule)

    def host_runs(self):
        for graph in self.o.graphs[:2]:
            gpu = "cpu:2" if self.o.cpu else f"cuda:{self.o.gpu}"
            for devices in ((gpu,), (gpu, "cpu:1" if self.o.cpu else "cpu:16")):
                yield Run(graph, "gcn", devices, "auto")

    def placement_runs(self):
        for hidden in self.o.hidden:
            for rows in CHOICES:
                yield Run(self.o.swept, "gcn", FOUR, hidden=hidden, rows=rows)

    def simulate(self, run):
        measured = self.known.get(run.key())
        key = "simulated|" + run.key()
        if measured is None or key in self.known or self.left() < 5:
            return
        hardware = self.folder / ("-".join(map(str, run.parts)) + ".toml")
        hardware.write_text(self.hardware(run.parts))
        words = ["simulate", "--data", self.data(run.graph), "--model", run.model, "--layers", self.o.layers, "--hidden",
                 run.hidden, "--dropout", 0.5, "--hardware", hardware, "--ranks", len(run.parts), "--json"]
        words += [] if self.o.cpu else ["--precision", self.o.precision]
        if len(run.parts) > 1:
            shares = [r["share"] for r in measured["ranks"]]
            words += ["--shares", ",".join(f"{share:.6f}" for share in shares), "--halo-rows", run.rows]
            words += [] if run.overlap else ["--no-overlap"]
        result = self.nacre(*words, seconds=max(5, self.left() + 30))
        record = {"key": key, "measured_ms": measured["epoch_ms"]}
        if "error" in result:
            self.say(f"simulated {run.title()}: {result['error']}")
            self.keep({**record, "error": result["error"]})
            return
        record["epoch_ms"] = result["runs"][0]["epoch_ms"]
        self.keep(record)

    def hardware(self, parts):
        text = 'name = "parts of one GPU"\noverlap = false\n'
        for part in dict.fromkeys(parts):
            text += f'\n[[device]]\nname = "{self.device(part)}"\ncount = {parts.count(part)}\n'
            if self.o.cpu:
                text += f'kind = "cpu"\nthreads = {self.device(part)[4:]}\n'
            else:
                text += f'like = "h200x8"\nmultiprocessors = {part}\n'
        return text + f"\n[inside]\nlatency = {self.o.latency}\n"

    def measure(self):
        """Makes all measurements, those that matter most first."""
        tables = self.o.tables
        runs = []
        if "cost" in tables:
            runs += list(self.cost_runs())
        shares = list(self.share_runs()) if "shares" in tables else []
        runs += [run for run in shares if run.model == "gcn"]
        runs += list(self.host_runs()) if "host" in tables else []
        placement = list(self.placement_runs()) if "placement" in tables else []
        most = [run for run in placement if run.hidden in self.o.hidden[:4]]
        runs += most + [run for run in shares if run.model != "gcn"] + [run for run in placement if run not in most]
        for run in runs:
            try:
                self.train(run)
            except Exception as error:  # the failure is noted, and the other runs go on
                self.say(f"{run.title()}: {error!r}")
        if "simulated" in tables:
            wanted = list(self.cost_runs()) + list(self.share_runs())
            with concurrent.futures.ThreadPoolExecutor(self.o.jobs) as pool:
                list(pool.map(self.simulate, wanted))

    # ---- Tables.

    def ms(self, run):
        record = self.known.get(run.key())
        return record["epoch_ms"] if record else math.nan

    def print_tables(self):
        if "cost" in self.o.tables:
            self.print_cost()
        if "shares" in self.o.tables:
            self.print_shares()
        if "host" in self.o.tables:
            self.print_host()
        if "placement" in self.o.tables:
            self.print_placement()
        if "simulated" in self.o.tables:
            self.print_simulated()

    def print_cost(self):
        print(f"\ncost of distribution: one device of {WHOLE}, four of 32 (median ms of an epoch)")
        print(f"{'graph':<10} {'model':<6} {'one':>9} {'four':>9} {'longer':>7} {'no overlap':>11} {'longer':>7} {'wanted':>7}")
        for graph in [g for g in self.o.graphs if g in WANTED_COST]:
            for model in ("gcn", "sage"):
                one = self.ms(Run(graph, model, (WHOLE,)))
                four = self.ms(Run(graph, model, FOUR))
                plain = self.ms(Run(graph, model, FOUR, overlap=False))
                print(f"{graph:<10} {model:<6} {one:>9.2f} {four:>9.2f} {four / one:>7.2f} {plain:>11.2f} "
                      f"{plain / one:>7.2f} {WANTED_COST[graph]:>7.2f}{mark(four / one <= WANTED_COST[graph])}")

    def print_shares(self):
        print("\nunequal devices (median ms of an epoch); 'over best': auto against the best fixed rule, at most 1.03")
        print(f"{'graph':<10} {'model':<6} {'parts':<10}" + "".join(f" {SAME_AS[r]:>19}" for r in RULES) +
              f" {'gain':>6} {'over best':>10} {'longest wait':>13}")
        for model in ("gcn", "gat"):
            gains = []
            for parts in UNEQUAL:
                for graph in self.o.graphs:
                    uniform, cores, auto = (self.ms(Run(graph, model, parts, rule)) for rule in RULES)
                    gain, over = uniform / auto, auto / min(uniform, cores)
                    record = self.known.get(Run(graph, model, parts, "auto").key(), {})
                    wait = record.get("longest_wait_percent")
                    wait = math.nan if wait is None else wait
                    if math.isfinite(gain):
                        gains.append(gain)
                    print(f"{graph:<10} {model:<6} {'-'.join(map(str, parts)):<10} {uniform:>19.2f} {cores:>19.2f} "
                          f"{auto:>19.2f} {gain:>6.2f} {over:>10.3f}{mark(over <= 1.03)} {wait:>11.1f} %{mark(wait <= 10)}")
            if gains:
                mean = math.exp(sum(map(math.log, gains)) / len(gains))
                print(f"{model}: geometric mean of the gain over uniform {mean:.2f} in {len(gains)} cells, wanted "
                      f"{WANTED_GAIN[model]}{mark(mean >= WANTED_GAIN[model])}")

    def print_host(self):
        print("\na GPU alone, and with cores of its host (median ms of an epoch)")
        runs = list(self.host_runs())
        for alone, both in zip(runs[::2], runs[1::2]):
            ratio = self.ms(both) / self.ms(alone)
            print(f"{alone.graph:<10} {alone.model:<6} {self.ms(alone):>9.2f} {self.ms(both):>9.2f} {ratio:>7.3f}"
                  f"{mark(ratio <= 1.02)}")

    def print_placement(self):
        print(f"\nwhich rows travel, {self.o.swept} gcn, four of 32 (median ms; predicted ms in brackets)")
        print(f"{'hidden':>6}" + "".join(f" {choice:>18}" for choice in CHOICES) + f" {'best':>8} {'auto / best':>12}")
        for hidden in sorted(self.o.hidden):
            cells, fixed = "", []
            for choice in CHOICES:
                record = self.known.get(Run(self.o.swept, "gcn", FOUR, hidden=hidden, rows=choice).key())
                if record is None:
                    cells += f" {'–':>18}"
                    continue
                predicted = (record.get("halo_rows") or {}).get("predicted_ms") or math.nan
                cells += f" {record['epoch_ms']:>9.2f} ({predicted:>6.2f})"
                if choice != "auto":
                    fixed.append((record["epoch_ms"], choice))
            auto = self.ms(Run(self.o.swept, "gcn", FOUR, hidden=hidden))
            best = min(fixed, default=(math.nan, "–"))
            print(f"{hidden:>6}{cells} {best[1]:>8} {auto / best[0]:>12.3f}{mark(auto / best[0] <= 1.03)}")
        self.print_volumes()

    def print_volumes(self):
        """Prints the bytes that ranks receive, as planned and as counted."""
        differ = total = 0
        for run in self.placement_runs():
            for rank in self.known.get(run.key(), {}).get("ranks", []):
                total += 1
                differ += rank.get("step_planned_bytes") != rank.get("step_received_bytes")
        print(f"bytes of rows that a rank receives: counted as planned for {total - differ} of {total} ranks")

    def print_simulated(self):
        print("\nsimulated epochs against measured ones (wanted: within 15 %)")
        ratios = []
        for run in [*self.cost_runs(), *self.share_runs()]:
            record = self.known.get("simulated|" + run.key())
            if record is None:
                continue
            ratio = record["epoch_ms"] / record["measured_ms"]
            ratios.append(ratio)
            print(f"{run.title():<60} {record['epoch_ms']:>9.2f} {record['measured_ms']:>9.2f} {ratio:>6.2f}"
                  f"{mark(abs(ratio - 1) <= 0.15)}")
        if ratios:
            print(f"{sum(abs(r - 1) <= 0.15 for r in ratios)} of {len(ratios)} within 15 %")


def mark(good):
    return "" if good else "  MISSED"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nacre")
    parser.add_argument("--tables", default="cost,shares,host,placement,simulated",
                        help="the tables to measure, from cost, shares, host, placement and simulated")
    parser.add_argument("--graphs", default="arxiv,reddit,products,proteins")
    parser.add_argument("--scale", type=float, default=1, help="size of the twins")
    parser.add_argument("--swept", default="arxiv", help="the graph of the table placement")
    parser.add_argument("--hidden", default=",".join(map(str, HIDDEN)), help="hidden sizes of the table placement")
    parser.add_argument("--folder", default="/dev/shm/nacre-devices")
    parser.add_argument("--out", help="results, default: results.jsonl in --folder")
    parser.add_argument("--seconds", type=float, default=530, help="no run is started after so many seconds")
    parser.add_argument("--longest", type=float, default=100, help="seconds of one run at most")
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--auto-seconds", default="arxiv=8,proteins=20,reddit=30,products=55",
                        help="how long runs with --shares auto take")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--latency", type=float, default=20e-6, help="simulated seconds of a communication")
    parser.add_argument("--jobs", type=int, default=4, help="commands that run at once before and after the measurements")
    parser.add_argument("--cut-threads", type=int, default=4)
    parser.add_argument("--prepare", action="store_true", help="only make the data and cut the graphs")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    options.graphs = options.graphs.split(",")
    options.tables = options.tables.split(",")
    options.auto_seconds = {graph: float(seconds) for graph, seconds in
                            (entry.split("=") for entry in options.auto_seconds.split(","))}
    options.hidden = [int(size) for size in options.hidden.split(",")]
    options.out = options.out or str(pathlib.Path(options.folder) / "results.jsonl")
    bench = Bench(options)
    bench.prepare()
    if options.prepare:
        return
    bench.measure()
    bench.print_tables()
    print(f"{time.monotonic() - bench.start:.0f} s; results in {options.out}")


if __name__ == "__main__":
    sys.exit(main())
