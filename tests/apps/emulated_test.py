#!/usr/bin/env python3
"""Runs the program on the emulated GPU: many cold starts with random delays, and device calls
that fail in turn.

    python3 tests/apps/emulated_test.py build/release/nacre build/release/emulator -v

NACRE_EMULATE_ALL=1 makes 200 cold starts and tries many more failures; without it there are
fewer of both.
"""
import concurrent.futures
import json
import os
import pathlib
import struct
import subprocess
import sys
import time

import cli

PLUGIN = ""  # the folder of the emulated device
ALL = bool(os.environ.get("NACRE_EMULATE_ALL"))
COLD_STARTS = 200 if ALL else 32
SMALL = ("--data", "twin:cora@0.1", "--hidden", 8, "--layers", 2, "--device", "cuda", "--threads", 3)
BATCHES = ("--mode", "minibatch", "--batch-size", 2, "--fanout", "4,3")
MODELS = {
    "sage": ("--dropout", 0.5),
    "gat": ("--heads", 2),
    "gcn": ("--precision", "bf16"),
    "rgcn": ("--relations", 3, "--precision", "tf32"),
}
PLACES = ((), ("--features-on", "host"), ("--features-on", "device"), ("--sample-on", "host"),
          ("--feature-budget", "100K", "--host-rows", "link"),
          ("--feature-budget", "100K", "--host-rows", "copy", "--feature-type", "bf16"),
          ("--feature-budget", "100K", "--host-rows", "link", "--cache", "lookahead"),
          ("--feature-budget", "50K", "--host-rows", "copy", "--cache", "lookahead", "--feature-type", "f16"))


class Emulated(cli.CliTest):
    """Runs the program with the emulated GPU. All runs share their compiled kernels."""

    def environment(self, **changes):
        own = {name: value for name, value in os.environ.items() if not name.startswith("NACRE_EMULATOR_")}
        own.update(NACRE_PLUGIN_PATH=PLUGIN, NACRE_EMULATOR_CACHE=os.path.join(PLUGIN, "images"),
                   NACRE_CACHE=str(self.dir / "cache"))
        own.update({name: str(value) for name, value in changes.items()})
        return own

    def run_with(self, *arguments, timeout=120, **changes):
        start = time.monotonic()
        done = subprocess.run([cli.PROGRAM, *map(str, arguments)], cwd=self.dir, env=self.environment(**changes),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", timeout=timeout, check=False)
        return cli.Result(done.returncode, done.stdout, done.stderr, time.monotonic() - start)


class ColdStarts(Emulated):
    """Starts mini-batch runs with empty caches, whose kernels are compiled while batches are
    being loaded."""

    def start(self, number, **changes):
        # Runs with successive numbers take the models in turn, and the next set of places follows
        # after each round of models. So all combinations occur, even if only every third number is
        # run.
        model, places = list(MODELS)[number % len(MODELS)], PLACES[number // len(MODELS) % len(PLACES)]
        return self.run_with("train", *SMALL, *BATCHES, "--model", model, *MODELS[model], *places, "--epochs", 4,
                             "--no-checkpoint", "--json", "-q", NACRE_CACHE=self.dir / f"cache{number}",
                             **{"NACRE_EMULATOR_SEED": number, **changes})

    def failures(self, numbers, **changes):
        with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
            results = list(pool.map(lambda i: self.start(i, **changes), numbers))
        return [(i, r) for i, r in enumerate(results) if r.code != 0 or r.last_json()["loss"] is None]

    def test_none_fails(self):
        began = time.monotonic()
        failed = self.failures(range(COLD_STARTS))
        print(f"{COLD_STARTS} cold starts in {time.monotonic() - began:.0f} s", file=sys.stderr)
        self.assertEqual(len(failed), 0, "".join(f"\nrun {i}: {r}" for i, r in failed[:3]))

    def test_the_old_fault_would_be_found(self):
        """While one thread recorded, calls of all other threads once failed. With that rule,
        some of these runs must fail."""
        # Every third seed makes the loader threads slow. Whether they are slow at the wrong moment
        # is a matter of chance.
        failed = []
        for first in range(2, 2 + 5 * 48, 48):
            failed = failed or self.failures(range(first, first + 48, 3), NACRE_EMULATOR_RECORDING="alone")
        self.assertTrue(any("while launches are recorded" in r.err for _, r in failed), failed)
        for i, result in failed:
            self.assertNotIn("terminate", result.err, f"run {i}: {result}")
            self.assertEqual(result.code, 1, f"run {i}: {result}")


class SpoiltCache(Emulated):
    """Puts kernels into the cache that have the right checksum but cannot be loaded."""

    def test_kernels_are_compiled_again(self):
        train = ("train", *SMALL, "--model", "sage", *BATCHES, "--epochs", 1, "--no-checkpoint", "--json", "-q")
        first = self.run_with(*train)
        self.assertEqual(first.code, 0, first)
        entries = sorted((self.dir / "cache/kernels").iterdir())
        whole = [entry.read_bytes() for entry in entries]

        def image_of(file):
            key, value = struct.unpack("<QQ", file[8:24])
            return file[24 + key:24 + key + value]

        spoilt = {"empty": lambda image: b"", "garbage": lambda image: os.urandom(3000), "text": lambda image: b"no kernel",
                  "cut": lambda image: image[:len(image) // 2], "cut at the end": lambda image: image[:-100],
                  "of another machine": lambda image: image[:18] + b"\xf3\x00" + image[20:],
                  "without its kernel": lambda image: image.replace(b"nacre_entry_", b"other_entry_")}
        for what, spoil in spoilt.items():
            for entry, file in zip(entries, whole):
                entry.write_bytes(cli.resealed(file, spoil(image_of(file))))
            result = self.run_with(*train)
            self.assertEqual(result.code, 0, f"{what}\n{result}")
            self.assertEqual(result.last_json()["loss"], first.last_json()["loss"], what)
            lines = [line for line in result.err.splitlines() if line.startswith("warning: ")]
            self.assertEqual(len(lines), 1, f"{what}\n{result}")
            self.assertIn("cannot be loaded and are compiled again", lines[0])
            self.assertEqual([entry.read_bytes() for entry in entries], whole, f"{what}: not replaced")
        self.assertEqual(self.run_with(*train).err, "", "nothing is left to warn of")


class RowCache(Emulated):
    """Trains with rows that change from batch to batch (--cache lookahead)."""

    TRAIN = ("train", *SMALL, *BATCHES, "--model", "sage", "--dropout", 0.5, "--deterministic",
             "--feature-budget", "100K", "--checkpoint-every", 1, "--json", "-q")

    def train(self, folder, *arguments, epochs=4, **changes):
        result = self.run_with(*self.TRAIN, "--epochs", epochs, "--checkpoint", folder, *arguments, **changes)
        self.assertEqual(result.code, 0, result)
        return result.last_json()

    def weights(self, folder):
        return [path.read_bytes() for path in sorted((self.dir / folder).rglob("*.safetensors"))]

    def test_weights_are_those_of_rows_that_stay(self):
        stays = self.train("stays")
        self.assertEqual(stays["features"]["cache"], "static")
        want, misses = self.weights("stays"), set()
        self.assertTrue(want)
        for number, options in enumerate((("--host-rows", "link"), ("--host-rows", "copy"), ("--prefetch", 0),
                                          ("--prefetch", 6, "--sample-on", "host"), ("--no-relax", "--no-subtasks"),
                                          ("--schedule", "all-gpu"))):
            # Every third seed makes the threads of the loader slow, so that batches overtake each
            # other.
            made = self.train(f"cached{number}", "--cache", "lookahead", *options, NACRE_EMULATOR_SEED=3 * number + 2)
            self.assertEqual(self.weights(f"cached{number}"), want, options)
            got, rows = made["features"], made["features"]["rows"]
            self.assertEqual((got["cache"], got["lookahead"]["seats"]), ("lookahead", got["device_rows"]))
            self.assertEqual(rows["local"] + rows["host"],
                             stays["features"]["rows"]["local"] + stays["features"]["rows"]["host"])
            self.assertAlmostEqual(got["link_mb"] * 2**20, rows["host"] * 1433 * 4, delta=1)
            misses.add(rows["host"])
        self.assertEqual(len(misses), 1, "the rows of the host depend on the batches alone")
        self.assertLess(misses.pop(), stays["features"]["rows"]["host"])

    def test_a_run_goes_on(self):
        whole = self.train("whole", "--cache", "lookahead")
        self.train("parts", "--cache", "lookahead", epochs=2)
        last = self.train("parts", "--cache", "lookahead", "--resume")
        self.assertEqual(last["loss"], whole["loss"])
        self.assertEqual(self.weights("parts")[-1], self.weights("whole")[-1])

    def test_plans_count_what_an_epoch_reads(self):
        options = ("--cache", "lookahead", "--shuffle", "never")
        done = self.run_with("plan", *SMALL, *BATCHES, "--model", "sage", "--feature-budget", "100K",
                             *options, "--json")
        self.assertEqual(done.code, 0, done)
        planned = json.loads(done.out)["features"]["lookahead"]
        made = self.train("one", *options, epochs=1)["features"]
        self.assertEqual(planned["drawn_host_rows"], made["rows"]["host"])
        self.assertEqual(planned["drawn_rows"], made["rows"]["host"] + made["rows"]["local"])
        stays = self.train("stays", "--shuffle", "never", epochs=1)["features"]
        self.assertEqual(planned["drawn_host_rows_static"], stays["rows"]["host"])


class Memory(Emulated):
    """Starts runs that do not fit into the memory of the device."""

    def test_what_does_not_fit_is_refused_before_it_is_read(self):
        large = ("train", "--data", "twin:products@0.2", "--model", "gcn", "--layers", 3, "--hidden", 128, "--device",
                 "cuda", "--no-checkpoint", "--epochs", 1)
        for options, changes, says in (((), {"NACRE_EMULATOR_MEMORY": 64 << 20}, "free on the device"),
                                       (("--memory-limit", "64M"), {}, "--memory-limit")):
            result = self.run_with(*large, *options, **changes)
            self.assertEqual(result.code, 2, result)
            self.assertIn("the device's memory", result.err, result)
            self.assertIn(says, result.err, result)
            self.assertNotIn("twin:products@0.2: ", result.err, "the data were read")
        # Rows of nodes that are learned are weights: they lie on the device in mini-batches, too.
        learned = ("train", "--data", "twin:products@0.2", "--features", "learned", "--model", "sage", "--hidden", 256,
                   "--mode", "minibatch", "--device", "cuda", "--no-checkpoint", "--epochs", 1)
        result = self.run_with(*learned, NACRE_EMULATOR_MEMORY=256 << 20)
        self.assertEqual(result.code, 2, result)
        self.assertIn("the device's memory", result.err, result)
        self.assertNotIn("twin:products@0.2: ", result.err, "the data were read")


def numbers(most):
    """Yields 1, 2, 3, 5, 8 and so on up to `most`; with NACRE_EMULATE_ALL, many more numbers."""
    n, step = 1, 1
    while n <= most:
        yield n
        n += step
        step = max(step + 1, n // (12 if ALL else 2))


class Anomalies(Emulated):
    """Lets the n-th device call, allocation or compilation fail. The program must end with one
    clear line, and the next run must succeed."""

    RUNS = {
        "full": ("--model", "gcn", "--dropout", 0.5),
        "batches": ("--model", "sage", *BATCHES, "--features-on", "host"),
        "cached": ("--model", "sage", *BATCHES, "--feature-budget", "100K", "--cache", "lookahead"),
    }

    def train(self, what, folder, *arguments, **changes):
        return self.run_with("train", *SMALL, *self.RUNS[what], "--epochs", 2, "--checkpoint", folder,
                             "--checkpoint-every", 1, "--json", "-q", *arguments, **changes)

    def train_on(self, what, folder):
        """Starts the next run with the same folder, which resumes if the failed run wrote a
        checkpoint."""
        saved = any((self.dir / folder).glob("epoch*"))
        return self.train(what, folder, *(["--resume"] if saved else []))

    def check(self, result, what, codes):
        self.assertIn(result.code, codes, f"{what}\n{result}")
        for word in ("terminate", "Segmentation", "Aborted", "std::"):
            self.assertNotIn(word, result.err, f"{what}\n{result}")
        lines = [line for line in result.err.splitlines() if line.startswith("nacre: ")]
        self.assertEqual(len(lines), 1, f"{what}\n{result}")

    def fail_all(self, kind, codes, most, stays=""):
        def one(job):
            what, n = job
            fault = f"{kind}:{n}{stays}"
            folder = f"{what}-{kind}-{n}{stays and '-on'}"
            result = self.train(what, folder, NACRE_EMULATOR_FAIL=fault, NACRE_CACHE=self.dir / f"cache-{folder}")
            return what, n, folder, fault, result

        for what in self.RUNS:
            reached = False
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                for _, n, folder, fault, result in pool.map(one, [(what, n) for n in numbers(most)]):
                    # The run makes fewer than n such calls, or can do without the one that failed.
                    if result.code == 0:
                        continue
                    reached = True
                    self.check(result, f"{what}, {fault}", codes)
                    if n % 2 or ALL:
                        again = self.train_on(what, folder)
                        self.assertEqual(again.code, 0, f"{what} after {fault}\n{again}")
            self.assertTrue(reached, f"{what}: no {kind} failed")

    def test_calls(self):
        self.fail_all("call", (1,), 4000)

    def test_calls_that_fail_for_ever(self):
        self.fail_all("call", (1,), 4000, "+")

    def test_work_that_fails_later(self):
        self.fail_all("work", (1,), 4000)

    def test_allocations(self):
        self.fail_all("allocation", (2,), 600)

    def test_compilations(self):
        self.fail_all("compile", (1,), 60)

    def test_too_little_memory_is_the_users_to_mend(self):
        for memory in (0, 100_000, 2_000_000):
            result = self.train("full", f"memory{memory}", NACRE_EMULATOR_MEMORY=memory)
            self.check(result, f"{memory} bytes", (2,))


def main():
    global PLUGIN
    PLUGIN = str(pathlib.Path(sys.argv.pop(2)).resolve())
    cli.main()


if __name__ == "__main__":
    main()
