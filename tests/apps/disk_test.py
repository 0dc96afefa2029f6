#!/usr/bin/env python3
"""Tests features that stay on disk because of --host-budget: the same weights as with all features
in memory, resuming, the bill, packing, and what happens if the disk or the file fails.

    disk_test.py PROGRAM FAULTS_LIBRARY
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import cli

LIBRARY = ""
DATA = None  # folder with the data, made once

TRAIN = ("train", "--model", "sage", "--hidden", 16, "--mode", "minibatch", "--fanout", "8,4", "--batch-size", 8,
         "--split", "random:0.03/0.02/0.02", "--epochs", 2, "--eval-every", 2, "--deterministic", "--seed", 3,
         "--threads", 2)
# The budget is a third of the bytes of the features.
BUDGET = ("--host-budget", "1500k")


class Disk(cli.CliTest):
    @classmethod
    def setUpClass(cls):
        global DATA
        DATA = pathlib.Path(tempfile.mkdtemp(prefix="nacre-disk-"))
        cls.addClassCleanup(shutil.rmtree, DATA, ignore_errors=True)
        for twin, name in (("twin:arxiv@0.05", "short.nacre"), ("twin:cora", "words.nacre")):
            subprocess.run([cli.PROGRAM, "data", "convert", twin, str(DATA / name), "-q"], check=True,
                           stdout=subprocess.DEVNULL)

    def train(self, *options, run="run", data="short.nacre"):
        result = self.ok(*TRAIN, "--data", DATA / data, "--json", "--checkpoint", run, *options)
        return result.last_json()

    def weights(self, run="run"):
        return (self.dir / run / "model.safetensors").read_bytes()

    def faulty(self, *arguments, fault="", ring=False):
        environment = dict(self.environment(), LD_PRELOAD=LIBRARY, NACRE_FAULT=fault)
        if not ring:
            environment["NACRE_FAULT_NO_RING"] = "1"
        done = subprocess.run([cli.PROGRAM, *map(str, arguments)], cwd=self.dir, env=environment, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return cli.Result(done.returncode, done.stdout.decode(), done.stderr.decode(), 0)

    def test_weights_are_those_of_features_in_memory(self):
        self.assertIsNone(self.train(run="memory")["disk"])
        want = self.weights("memory")
        for name, options in {"auto": (), "packed": ("--pack", "on"), "in place": ("--pack", "off"),
                              "one by one": ("--prefetch", 0), "folder": ("--pack-folder", ".")}.items():
            with self.subTest(name):
                told = self.train(*BUDGET, *options, run=name)
                self.assertEqual(self.weights(name), want)
                disk = told["disk"]
                self.assertGreater(disk["rows_from_memory"], 0)
                self.assertGreater(disk["rows_from_disk"], 0)
                self.assertGreater(disk["bytes"], 0)
                self.assertGreater(disk["evaluation"]["rows_from_disk"], 0)
                self.assertGreater(told["features"]["rows"]["disk"], 0)
                self.assertGreater(told["features"]["rows"]["host"], 0)
                self.assertTrue(name != "packed" or disk["rows_packed"] > 0)
                self.assertFalse(name == "in place" and "rows_packed" in disk)
                self.assertLessEqual(told["peak_mb"], told["planned_mb"])
                lines = [json.loads(line) for line in self.read(f"{name}/metrics.jsonl").splitlines()]
                self.assertEqual(len(lines), 2)
                self.assertTrue(all(line["disk"]["rows_from_disk"] > 0 for line in lines))
                self.assertTrue(all(line["feature_rows"]["disk"] > 0 for line in lines))
                self.assertFalse([f for f in self.files() if ".nacre-pack" in f])

    def test_other_samplers(self):
        for options in (("--sampler", "layer", "--fanout", "100,50"), ("--sampler", "saint-walk", "--budget", 20)):
            with self.subTest(options):
                arguments = [word for word in map(str, TRAIN)]
                at = arguments.index("--fanout")
                del arguments[at:at + 2]
                for run, budget in (("a", ()), ("b", BUDGET)):
                    self.ok(*arguments, "--data", DATA / "short.nacre", "--checkpoint", run, *options, *budget)
                self.assertEqual(self.weights("a"), self.weights("b"))
                shutil.rmtree(self.dir / "a")
                shutil.rmtree(self.dir / "b")

    def test_features_that_fit_stay_in_memory(self):
        self.assertIsNone(self.train("--host-budget", "1G")["disk"])

    def test_refusals(self):
        data = ("--data", DATA / "short.nacre")
        self.refused("train", *data, "--model", "sage", *BUDGET, says="--mode minibatch")
        self.refused(*TRAIN, *data, "--pack", "on", says="add --host-budget")
        self.refused(*TRAIN, *data, *BUDGET, "--pack", "off", "--pack-folder", ".", says="packs none")
        self.refused(*TRAIN, *data, *BUDGET, "--pack-folder", "absent", says="is not a folder")
        self.refused(*TRAIN, *data, "--host-budget", "100k", says="give at least")
        self.refused(*TRAIN, *data, *BUDGET, "--feature-type", "bf16", says="rows on disk are f32")
        self.refused(*TRAIN, *data, "--host-budget", "0", says="is not a size")
        self.refused(*TRAIN, "--data", "twin:arxiv@0.05", *BUDGET, says="nacre data convert")
        self.refused(*TRAIN, "--data", DATA / "words.nacre", *BUDGET, says="--normalize-features none")

    def test_a_run_that_was_stopped_goes_on(self):
        want = (self.train(run="whole", *BUDGET), self.weights("whole"))[1]
        # The disk fails in the middle of an epoch.
        failed = self.faulty(*TRAIN, "--data", DATA / "short.nacre", *BUDGET, "--pack", "off", "--checkpoint", "run",
                             fault="read:3000")
        self.assertEqual(failed.code, 1, failed)
        errors = [line for line in failed.err.splitlines() if line.startswith("nacre: ")]
        self.assertEqual(len(errors), 1, failed)
        self.assertIn("features cannot be read: Input/output error", errors[0])
        self.assertTrue([f for f in self.files() if "epoch-" in f], "there is no checkpoint")
        self.ok("train", "--resume", "run")
        self.assertEqual(self.weights(), want)

    def test_failing_calls(self):
        for fault in ("read:1", "read:40", "read:700", "ring:1", "write:1+", "thread:1+"):
            with self.subTest(fault):
                result = self.faulty(*TRAIN, "--data", DATA / "short.nacre", *BUDGET, "--pack", "on", "--no-checkpoint",
                                     fault=fault, ring=fault.startswith("ring"))
                self.assertIn(result.code, (0, 1), result)
                errors = [line for line in result.err.splitlines() if line.startswith("nacre: ")]
                self.assertEqual(len([e for e in errors if "warning" not in e]), result.code, result)
                self.assertNotIn("terminate", result.err)

    def test_a_file_that_is_cut_short(self):
        data = self.dir / "copy.nacre"
        shutil.copy(DATA / "short.nacre", data)
        process = self.start(*TRAIN, "--data", data, *BUDGET, "--pack", "off", "--epochs", 900, "--eval-every", 900,
                             "--checkpoint", "run", "-v")
        metrics = self.dir / "run/metrics.jsonl"
        for _ in range(600):
            if metrics.exists() and len(metrics.read_text().splitlines()) >= 2:
                break
            time.sleep(0.05)
        os.truncate(data, os.path.getsize(data) // 2)  # cuts the file in the middle of the features
        self.assertEqual(process.wait(60), 1)
        errors = [line for line in self.read("stderr.txt").decode().splitlines() if line.startswith("nacre: ")]
        self.assertEqual(len(errors), 1, errors)
        self.assertIn("was cut short by another program", errors[0])
        self.assertTrue([f for f in self.files() if "epoch-" in f and ".tmp" not in f])


if __name__ == "__main__":
    LIBRARY = os.path.abspath(sys.argv.pop(2))
    cli.main()
