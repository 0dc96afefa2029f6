#!/usr/bin/env python3
"""Compares training on features that stay on disk (--host-budget) with mapped features, under the
same memory limit.

    bench/disk/measure.py build/release/nacre --folder /mnt/disk
    bench/disk/measure.py build/release/nacre --folder /mnt/disk --graph twin:products@0.42 \\
        --budget 1G --batch-size 512 --read-ahead /sys/block/loop0/queue/read_ahead_kb=128,0

The script gives the nodes of --graph rows of --row-bytes bytes and trains on three variants: with
all features in memory, with --host-budget, and with mapped features. The limit is what the run with
--host-budget holds at most, and 8 MiB. A control group enforces it from the end of the first epoch
on, so the script must be run by root. The graph is read before a run begins, which keeps its pages
out of the control group; the pages of the features are dropped from memory.

Bytes are those that /proc counts for the process, and times those of metrics.jsonl. Both are
medians of the epochs after the second one. Evaluation is not part of them.

For each page that is missing, the system reads many pages around it. --read-ahead names a file of
/sys and the values (KiB) with which mapped features are measured; 0 reads no page too many. A loop
device that is mounted on --folder has such a file of its own.
"""
import argparse
import json
import mmap
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time
import zipfile

SLACK = 8 << 20
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text):
    return int(float(text[:-1]) * UNITS[text[-1]]) if text[-1] in UNITS else int(text)


class Group:
    """A control group with a memory limit, of version 1 or 2."""

    def __init__(self):
        root = pathlib.Path("/sys/fs/cgroup")
        self.old = (root / "memory").is_dir()
        self.folder = (root / "memory" if self.old else root) / f"nacre-disk-{os.getpid()}"
        self.folder.mkdir()

    def limit(self, bytes):
        """Sets the limit; 0 means none. The system may need several attempts to free so much."""
        name = "memory.limit_in_bytes" if self.old else "memory.max"
        for _ in range(200):
            try:
                (self.folder / name).write_text(str(bytes) if bytes else "-1" if self.old else "max")
                return
            except OSError:
                time.sleep(0.01)
        raise SystemExit(f"{self.held() / 2**20:.0f} MiB are held, so the limit cannot be {bytes / 2**20:.0f} MiB")

    def held(self):
        """Returns the bytes of memory that belong to no file."""
        words = dict(line.split() for line in (self.folder / "memory.stat").read_text().splitlines())
        return int(words["rss" if self.old else "anon"])

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        self.folder.rmdir()


def write_rows(file, rows, row_bytes):
    """Writes a matrix of small numbers as an .npy file, and returns the first row. Every row begins
    in another place of one block of numbers."""
    dice = random.Random(1)
    block = b"".join(dice.choice((b"\0\0\0\x3d", b"\0\0\0\x3e", b"\0\0\0\xbd", b"\0\0\x80\xbe")) for _ in range(1 << 16)) * 2
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {row_bytes // 4}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    places = [dice.randrange(1 << 16) * 4 for _ in range(rows)]
    for at in places:
        file.write(block[at:at + row_bytes])
    return block[places[0]:places[0] + row_bytes]


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = pathlib.Path(options.folder)
        self.group = Group()
        self.data = self.folder / f"{options.graph.replace(':', '-')}-{options.row_bytes}.nacre"
        self.mark = self.data.with_suffix(".row")  # the first row, which tells where the rows are
        if not self.mark.exists():
            self.make_data()
        with open(self.data, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as bytes:
            self.rows_at = bytes.find(self.mark.read_bytes())
        self.rows_bytes = self.nodes() * options.row_bytes

    def nacre(self, *words):
        return subprocess.run([self.options.nacre, *map(str, words)], check=True, stdout=subprocess.PIPE).stdout

    def nodes(self):
        return json.loads(self.nacre("data", "info", self.options.graph, "--json"))["num_nodes"]

    def make_data(self):
        plain, made = self.folder / "plain.npz", self.folder / "made.npz"
        self.nacre("data", "export", self.options.graph, plain, "--force", "-q")
        with zipfile.ZipFile(plain) as old, zipfile.ZipFile(made, "w") as new:
            for name in old.namelist():
                with new.open(name, "w", force_zip64=True) as file:
                    if name == "x.npy":
                        first = write_rows(file, self.nodes(), self.options.row_bytes)
                    else:
                        shutil.copyfileobj(old.open(name), file)
        self.nacre("data", "convert", made, self.data, "--force", "-q")
        self.mark.write_bytes(first)
        plain.unlink()
        made.unlink()

    def settle_pages(self):
        """Reads the file, so that the graph is in memory, and drops the pages of the rows."""
        os.sync()
        with open(self.data, "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            for begin, end in ((0, self.rows_at), (self.rows_at + self.rows_bytes, os.path.getsize(self.data))):
                file.seek(begin)
                while begin < end and (piece := file.read(min(1 << 20, end - begin))):
                    begin += len(piece)
            os.posix_fadvise(file.fileno(), self.rows_at, self.rows_bytes, os.POSIX_FADV_DONTNEED)

    def train(self, limit, *words):
        """Trains, and returns the bytes and seconds of an epoch, and the most memory that was held.
        The limit holds after the first epoch, because nacre compares its bill with the limit, and
        the bill counts pages of the program that belong to nobody's control group."""
        o = self.options
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        self.settle_pages()
        self.group.limit(0)
        words = ["train", "--data", self.data, "--model", "sage", "--hidden", 16, "--mode", "minibatch", "--fanout", o.fanout,
                 "--batch-size", o.batch_size, "--epochs", o.epochs, "--eval-every", 1000, "--threads", o.threads,
                 "--normalize-features", "none", "--deterministic", "--checkpoint", run, "-q", *words]
        if o.split:
            words += ["--split", o.split]
        process = self.process = subprocess.Popen([o.nacre, *map(str, words)], preexec_fn=self.group.enter)
        metrics, marks, held, began = run / "metrics.jsonl", [], 0, time.monotonic()
        while process.poll() is None:
            lines = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
            counts = pathlib.Path(f"/proc/{process.pid}/io").read_text().split() if process.poll() is None else []
            if lines > len(marks) and counts:
                if not marks:
                    self.group.limit(limit)
                marks += [int(counts[counts.index("read_bytes:") + 1])] * (lines - len(marks))
            held = max(held, self.group.held())
            if time.monotonic() - began > o.seconds and len(marks) > 2 or len(marks) == o.epochs - 1:
                process.kill()
            time.sleep(0.005)
        process.wait()
        if len(marks) < 3:
            raise SystemExit(f"{' '.join(map(str, words))}: ended with {process.returncode} after {len(marks)} epochs")
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        times = [line["seconds"] for line in lines[2:len(marks)]]
        bytes = [after - before for before, after in zip(marks[1:], marks[2:])]
        return {"bytes": statistics.median(bytes), "seconds": statistics.median(times), "epochs": len(bytes), "held": held,
                "disk": lines[len(marks) - 1].get("disk")}

    def measure(self):
        o = self.options
        print(f"features {self.rows_bytes / 2**20:.0f} MiB, budget {o.budget}, rows of {o.row_bytes} bytes", flush=True)
        if not o.no_reference:
            self.show("in memory", self.train(0), None)
        budget = ("--host-budget", size(o.budget), "--pack", o.pack)
        limit = self.train(0, *budget)["held"] + SLACK
        disk = self.train(limit, *budget)
        self.show(f"--host-budget, limit {limit / 2**20:.0f} MiB", disk, None)
        if disk["disk"]:
            print("  ", json.dumps(disk["disk"]), flush=True)
        path, _, values = o.read_ahead.partition("=")
        before = pathlib.Path(path).read_text() if values else ""
        for value in values.split(",") if values else [""]:
            try:
                if value:  # holds for files that are opened from now on
                    pathlib.Path(path).write_text(value)
                run = self.train(limit)
            finally:
                if values:
                    pathlib.Path(path).write_text(before)
            self.show(f"mapped, {value} KiB read ahead" if value else "mapped", run, disk)

    def show(self, name, run, disk):
        text = f"{name}: {run['bytes'] / 1e6:.1f} MB read and {run['seconds']:.2f} s in an epoch ({run['epochs']} measured, {run['held'] / 2**20:.0f} MiB held)"
        if disk:
            text += f"; {run['bytes'] / disk['bytes']:.1f} times the bytes, {run['seconds'] / disk['seconds']:.1f} times the time"
        print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nacre")
    parser.add_argument("--folder", required=True, help="folder for data and runs, on the disk to measure")
    parser.add_argument("--graph", default="twin:products@0.02")
    parser.add_argument("--row-bytes", type=int, default=4096)
    parser.add_argument("--budget", default="20M")
    parser.add_argument("--pack", default="auto")
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--fanout", default="10,5")
    parser.add_argument("--split", default="")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=120, help="seconds after which a run is ended")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--read-ahead", default="")
    parser.add_argument("--no-reference", action="store_true", help="do not train with all features in memory")
    bench = Bench(parser.parse_args())
    try:
        bench.measure()
    finally:
        bench.process.kill()
        bench.process.wait()
        bench.group.remove()


if __name__ == "__main__":
    sys.exit(main())
