#!/usr/bin/env python3
"""Lets every system call of a run fail once: the n-th write, sync, rename, opened or mapped
file, new folder, thread or allocation, for n = 1, 2, 3, … Each time the program must end with
one clear line and status 1 or 2, or go on if the call did not matter. It must leave nothing
half-written, and the next run must continue from whole files.

    anomaly_test.py PROGRAM FAULTS_LIBRARY

With NACRE_ANOMALIES=all, every n up to LIMIT is tried; otherwise only a sample of them, which
takes about a minute.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import time

import cli

LIBRARY = ""
ALL = os.environ.get("NACRE_ANOMALIES") == "all"
LIMIT = 400  # the largest n tried of one kind in one case; of allocations only a sample is tried
PLENTY = 40 if ALL else 4  # number of randomly chosen allocations that fail, besides the first ones

SMALL = ("--data", "small.npz", "--threads", 2)
TRAIN = ("train", *SMALL, "--model", "gcn", "--hidden", 8, "--epochs", 2, "--checkpoint-every", 1, "--checkpoint", "run")
BATCHES = ("train", *SMALL, "--model", "sage", "--hidden", 8, "--epochs", 2, "--mode", "minibatch", "--batch-size", 8,
           "--fanout", "3,2", "--checkpoint", "run")
CONVERT = ("data", "convert", "edges.txt", "out.nacre", "--features", "x.npy", "--labels", "y.npy")
# With so many epochs, a search pays; the plan that the search finds is kept in the cache.
PLAN = ("plan", *SMALL, "--model", "gcn", "--epochs", 200000, "--output", "plan.json")


class Anomalies(cli.CliTest):
    def environment(self):
        return dict(super().environment(), NACRE_CACHE=str(self.dir / "cache"))

    def setUp(self):
        super().setUp()
        self.write("small.npz", cli.small_npz())
        members = cli.small_members()
        self.write("x.npy", members["x"])
        self.write("y.npy", members["y"])
        self.write("edges.txt", "".join(f"{v} {(v + step) % cli.NODES}\n" for v in range(cli.NODES) for step in (1, 3, 9)))
        self.inputs = self.files()
        self.tried = 0

    def faulty(self, arguments, fault="", after=None):
        """Runs the program with a fault; returns its result and the text that the library
        logged."""
        log = self.dir / "faults.log"
        log.unlink(missing_ok=True)
        environment = dict(self.environment(), LD_PRELOAD=LIBRARY, NACRE_FAULT=fault, NACRE_FAULT_LOG=str(log))
        if after:
            environment["NACRE_FAULT_AFTER"] = after
        start = time.monotonic()
        try:
            done = subprocess.run([cli.PROGRAM, *map(str, arguments)], cwd=self.dir, env=environment, timeout=60,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  preexec_fn=cli.limits(None, None))
        except subprocess.TimeoutExpired:
            self.fail(f"{arguments} with {fault} hangs")
        noted = log.read_text() if log.exists() else ""
        log.unlink(missing_ok=True)
        text = [stream.decode(errors="replace") for stream in (done.stdout, done.stderr)]
        return cli.Result(done.returncode, *text, time.monotonic() - start), noted

    def clear(self):
        for path in self.dir.iterdir():
            if path.name not in self.inputs:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def calls(self, arguments, after=None):
        """Returns how many calls of each kind a run without a fault makes."""
        result, noted = self.faulty(arguments, after=after)
        self.assertEqual(result.code, 0, result)
        counts = [line for line in noted.splitlines() if line.startswith("calls ")][-1]
        return {kind: int(count) for kind, count in (word.split("=") for word in counts.split()[1:])}

    def check_failed(self, result, fault, what):
        self.assertIn(result.code, (0, 1, 2), what)
        self.assertNotIn("internal error", result.err, what)
        self.assertNotIn("json.exception", result.err, what)
        self.assertNotIn("terminate", result.err, what)
        errors = [line for line in result.err.splitlines() if line.startswith("nacre: ")]
        self.assertEqual(len(errors), 0 if result.code == 0 else 1, what)
        if errors:
            self.assertEqual(result.err.splitlines()[-1], errors[0], what)
        if errors and fault.startswith("memory"):
            self.assertEqual((result.code, errors[0]), (1, "nacre: out of memory"), what)
        self.assertFalse(self.leftovers(fault), what)

    def leftovers(self, fault):
        """Returns unfinished files. An allocation that fails inside a destructor ends the program
        at once; the unfinished checkpoint that it may leave is removed by the next run."""
        allowed = "/.tmp-epoch-" if fault.startswith("memory") else "\0"
        return [name for name in self.files() if ".tmp" in name and allowed not in name]

    def check_run_folder(self, what):
        """Checks that a finished run has one line of metrics for each epoch and no unfinished
        files."""
        if not (self.dir / "run").exists():
            return
        self.assertFalse([name for name in self.files() if ".tmp" in name], what)
        epochs = [json.loads(line)["epoch"] for line in self.read("run/metrics.jsonl").splitlines()]
        last = json.loads(self.read("run/config.json"))["training"]["epochs"]
        self.assertEqual(epochs, list(range(1, last + 1)), what)

    def numbers(self, kind, count):
        if kind != "memory":
            step = 1 if ALL else {"write": 4, "sync": 2, "rename": 2, "open": 2}.get(kind, 1)
            return range(1, min(count, LIMIT) + 1, step)
        noise = random.Random(count)
        first = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144] if ALL else [1, 5, 34]
        return sorted(set(first) | {noise.randrange(1, count) for _ in range(PLENTY)})

    def check(self, arguments, made, prepare=None, again=None, kinds=None):
        """Lets the calls of a command fail in turn. `made` is the file that an undisturbed run
        writes; after a failure and another run it must have the same bytes."""
        prepare and prepare()
        counts = self.calls(arguments)
        want = self.read(made)
        for kind, count in counts.items():
            if kinds and kind not in kinds:
                continue
            for n in self.numbers(kind, count):
                for onwards in ("", "+") if ALL or (kind == "write" and n % 12 == 1) else ("",):
                    fault = f"{kind}:{n}{onwards}"
                    self.clear()
                    prepare and prepare()
                    result, noted = self.faulty(arguments, fault)
                    what = f"{fault} in {' '.join(map(str, arguments))}\n{noted}{result}"
                    self.check_failed(result, fault, what)
                    if result.code == 0:
                        self.assertEqual(self.read(made), want, what)
                    done = self.nacre(*(again or arguments)) if result.code else result
                    self.assertEqual(done.code, 0, f"run again after {what}\n{done}")
                    self.assertEqual(self.read(made), want, f"run again after {what}\n{done}")
                    self.check_run_folder(f"run again after {what}\n{done}")
                    self.tried += 1
        print(f"{self.id().split('.')[-1]}: {self.tried} failures; calls {counts}", flush=True)

    def test_training(self):
        self.check(TRAIN, "run/model.safetensors", again=(*TRAIN, "--resume"))

    def test_mini_batches(self):
        self.check(BATCHES, "run/model.safetensors", again=(*BATCHES, "--resume"))

    def test_resumed_run(self):
        self.check((*TRAIN, "--resume", "--epochs", 4), "run/model.safetensors", prepare=lambda: self.ok(*TRAIN))

    def test_threads_refused_inside_loops(self):
        """oneTBB starts threads in the first loop, and these threads start others. Each of them
        is refused once."""
        large = ("train", "--data", "twin:cora@0.5", "--threads", 4, "--epochs", 2, "--checkpoint", "run")
        self.check(large, "run/model.safetensors", again=(*large, "--resume"), kinds=("thread",))
        self.assertGreater(self.tried, 3, "only the threads that are tried before the first loop were refused")

    def test_checkpoints_without_memory(self):
        """Lets allocations fail from the moment the folder of a checkpoint is made until the
        program ends."""
        run = (*TRAIN, "--epochs", 1)
        after = ".tmp-epoch-"
        count = self.calls(run, after)["memory"]
        want = self.read("run/model.safetensors")
        self.assertGreater(count, 100)
        for n in range(1, count + 1, 1 if ALL else max(1, count // 40)):
            for onwards in ("", "+"):
                fault = f"memory:{n}{onwards}"
                self.clear()
                result, noted = self.faulty(run, fault, after)
                what = f"{fault} after {after}\n{noted}{result}"
                self.assertIn(result.code, (0, 1), what)
                self.assertNotIn("internal error", result.err, what)
                self.assertNotIn("terminate", result.err, what)
                # If no memory is left at all, nothing can be removed: the next run does it.
                if not onwards:
                    self.assertFalse(self.leftovers(fault), what)
                self.ok(*run, "--resume")
                self.assertEqual(self.read("run/model.safetensors"), want, what)
                self.check_run_folder(what)
                self.tried += 1
        print(f"test_checkpoints_without_memory: {self.tried} failures of {count} allocations", flush=True)

    def test_conversion(self):
        self.check(CONVERT, "out.nacre")

    def test_plan_cache(self):
        """The plan depends on timing, so its bytes are not compared; after every failure, a plan
        must be found and kept."""
        self.ok(*PLAN)
        self.inputs += ["cache"]  # keeps the machine's profile, which takes seconds to measure
        plans = self.dir / "cache/plans"
        for kind, count in self.calls_without(plans).items():
            # If a thread is refused, the machine is measured again for fewer threads, which takes
            # long.
            for n in self.numbers(kind, count) if kind != "thread" else ():
                shutil.rmtree(plans, ignore_errors=True)
                self.clear()
                fault = f"{kind}:{n}"
                result, noted = self.faulty(PLAN, fault)
                what = f"{fault}\n{noted}{result}"
                self.check_failed(result, fault, what)
                self.ok(*PLAN)
                entry, = plans.iterdir()
                self.assertGreater(entry.stat().st_size, 0, what)
                self.tried += 1
        print(f"test_plan_cache: {self.tried} failures", flush=True)

    def calls_without(self, plans):
        shutil.rmtree(plans)
        self.clear()
        return self.calls(PLAN)


if __name__ == "__main__":
    LIBRARY = os.path.abspath(sys.argv.pop(2))
    if "--sanitized" in sys.argv:
        print("skipped: sanitizers bring their own allocator")
    else:
        cli.main()
