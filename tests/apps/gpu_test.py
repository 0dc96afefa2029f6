#!/usr/bin/env python3
"""Runs the program on a GPU if NACRE_TEST_DEVICE=cuda is set. The plug-in lies beside the
program or in the folder NACRE_PLUGIN_PATH."""
import json
import os
import tempfile

import cli

TWIN = ("--data", "twin:cora@0.2")
SMALL = ("--hidden", 8, "--layers", 2)
GPU = ("--device", "cuda")


class Gpu(cli.CliTest):
    gpu = True

    @classmethod
    def setUpClass(cls):
        if os.environ.get("NACRE_TEST_DEVICE") != "cuda":
            raise cli.unittest.SkipTest("NACRE_TEST_DEVICE is not cuda")
        cls.cache = tempfile.mkdtemp(prefix="nacre-cache-")
        cls.addClassCleanup(cli.shutil.rmtree, cls.cache, ignore_errors=True)

    def environment(self):
        return dict(super().environment(), NACRE_CACHE=self.cache)

    def train(self, *arguments):
        return self.ok("train", *TWIN, *SMALL, "--epochs", 3, "--json", "-q", *arguments, timeout=600).last_json()

    def test_devices(self):
        self.assertIn("cuda:0", self.ok("devices").out)
        gpus = json.loads(self.ok("devices", "--json").out)["cuda"]
        self.assertGreater(gpus[0]["multiprocessors"], 0)
        self.refused("train", *TWIN, "--device", f"cuda:{len(gpus)}", says="was not found", memory=None)

    def test_trains_like_the_cpu(self):
        for model in ("gcn", "sage", "gat", "rgcn"):
            with self.subTest(model):
                want = self.train("--model", model, "--device", "cpu", "--no-checkpoint")
                got = self.train("--model", model, *GPU, "--checkpoint", model)
                self.assertIsNone(want["device_peak_mb"])
                self.assertNotEqual(got["device"], "cpu")
                self.assertAlmostEqual(got["loss"], want["loss"], delta=1e-4 * want["loss"])
                self.assertGreater(got["device_peak_mb"], 0)
                self.assertLessEqual(got["device_peak_mb"], 1.1 * got["planned_mb"] + 8)
                for device in ("cpu", "cuda"):
                    j = self.ok("eval", "--checkpoint", model, "--device", device, "--json").last_json()
                    self.assertAlmostEqual(j["test_acc"], got["test_acc"], delta=0.02)
        self.train("--model", "gcn", *GPU, "--precision", "tf32", "--no-checkpoint")

    def test_runs_repeat_and_resume_bit_for_bit(self):
        common = ("train", *TWIN, *SMALL, "--dropout", 0.5, *GPU, "--deterministic", "--checkpoint-every", 1, "-q")
        self.ok(*common, "--epochs", 4, "--checkpoint", "whole", timeout=600)
        self.ok(*common, "--epochs", 2, "--checkpoint", "part", timeout=600)
        self.ok(*common, "--epochs", 4, "--checkpoint", "part", "--resume", timeout=600)
        self.assertEqual(self.read("part/model.safetensors"), self.read("whole/model.safetensors"))

    def test_batches_are_the_same_wherever_they_are_made(self):
        common = ("--model", "sage", "--mode", "minibatch", "--batch-size", 30, "--fanout", "5,3", "--deterministic",
                  *GPU, "--no-checkpoint")
        want = self.train(*common)
        self.assertLessEqual(want["device_percent"], 100.1)
        self.assertGreater(want["waiting_percent"], 0)
        self.assertIn(want["fullest"], ("device", "host threads", "link", "launching thread"))
        for features in ("host", "device"):
            for sample in ("host", "device"):
                got = self.train(*common, "--features-on", features, "--sample-on", sample)
                self.assertEqual(got["loss"], want["loss"], (features, sample))
                self.assertEqual(got["link_percent"] is None, features == "device")
        self.tiers(common, want)
        out = self.ok("train", *TWIN, *SMALL, *common, "--epochs", 2, "--trace", "trace.json", timeout=600).out
        for word in ("fullest: ", "device ", "host threads ", "making ready ", "launching thread "):
            self.assertIn(word, out)
        self.assertIn(b"fullest: ", self.read("trace.json"))
        self.refused("train", *TWIN, *SMALL, *common, "--memory-limit", "2M", says="--batch-size", memory=None)
        self.refused("train", *TWIN, *SMALL, *common, "--sampler", "layer", "--sample-on", "device",
                     says="--sample-on", memory=None)

    def tiers(self, common, want):
        """Checks that the run is the same, however few rows are in device memory."""
        runs = {}
        rows = want["features"]["rows"]
        self.assertEqual(rows["host"] + rows["peer"] + rows["disk"], 0)
        for budget, way in (("1M", "link"), ("200K", "copy"), ("20K", "link")):
            metrics = f"{budget}.jsonl"
            got = self.train(*common, "--feature-budget", budget, "--host-rows", way, "--metrics", metrics)
            self.assertEqual(got["loss"], want["loss"], (budget, way))
            tiers = runs[budget] = got["features"]
            self.assertEqual((tiers["host_rows"], tiers["placement"]), (way, "probability"))
            self.assertEqual(tiers["rows"]["local"] + tiers["rows"]["host"], rows["local"])
            self.assertGreater(tiers["rows"]["host"], 0)
            self.assertGreater(tiers["link_mb"], 0)
            self.assertEqual(tiers["pinned_mb"] > 0, way == "link")
            self.assertLessEqual(got["device_peak_mb"], got["planned_mb"] + 8)
            lines = [json.loads(line)["feature_rows"] for line in self.read(metrics).decode().splitlines()]
            for tier in ("batches", "local", "host"):
                self.assertEqual(sum(line[tier] for line in lines), tiers["rows"][tier])
        half = self.train(*common, "--feature-type", "bf16", "--feature-budget", "200K", "--trace", "rows.json")
        self.assertAlmostEqual(half["loss"], want["loss"], delta=0.02 * want["loss"])
        self.assertIn(b'"feature rows"', self.read("rows.json"))
        out = self.ok("train", *TWIN, *SMALL, *common, "--epochs", 2, "--feature-budget", "200K", timeout=600).out
        self.assertIn("% from the host", out)
        near = self.train(*common, "--feature-budget", "200K", "--locality", 8)
        again = self.train(*common, "--feature-budget", "200K", "--locality", 8, "--host-rows", "copy")
        self.assertEqual(near["loss"], again["loss"])
        share = [run["rows"]["local"] / run["rows"]["host"] for run in (runs["200K"], near["features"])]
        self.assertGreater(share[1], share[0])
        self.refused("train", *TWIN, *SMALL, *common, "--locality", 8, says="--feature-budget", memory=None)
        self.refused("train", *TWIN, *SMALL, *common, "--feature-budget", "200K", "--locality", "auto",
                     says="measured times", memory=None)
        run = ("--model", "sage", "--mode", "minibatch", "--batch-size", 30, "--fanout", "5,3", *GPU)
        self.train(*run, "--feature-budget", "200K", "--locality", "auto", "--no-checkpoint")
        explained = json.loads(self.ok("explain", *TWIN, *SMALL, *run, "--feature-budget", "200K", "--steps", 0, "--json",
                                       "-q", timeout=600).out)
        methods = [each["placement"] for each in explained["placements"]]
        self.assertEqual(methods[0], "probability")
        self.assertIn("degree", methods)

    def test_kernels_are_compiled_once_and_people_are_told(self):
        empty = tempfile.mkdtemp(prefix="nacre-cache-")
        self.addCleanup(cli.shutil.rmtree, empty, ignore_errors=True)
        self.cache = empty  # a cache folder for this test alone
        common = ("train", *TWIN, *SMALL, "--model", "sage", "--mode", "minibatch", "--batch-size", 30, "--fanout", "5,3",
                  "--epochs", 2, *GPU, "--no-checkpoint")
        err = self.ok(*common, timeout=600).err
        self.assertRegex(err, r"compiling \d+ kernels? for .+; later runs use them again")
        self.assertRegex(err, r"compiled \d+ kernels? in ")
        kept = sorted(os.listdir(os.path.join(empty, "kernels")))
        self.assertGreater(len(kept), 10)
        self.ok(*common, timeout=600)
        self.assertEqual(sorted(os.listdir(os.path.join(empty, "kernels"))), kept, "a second run compiles nothing")

    def test_profile(self):
        j = json.loads(self.ok("profile", *GPU, "--json", "-q", timeout=600).out)
        figures = {key: value for key, value in j.items() if isinstance(value, float)}
        self.assertEqual(len(figures), 18)
        for key, value in figures.items():
            self.assertGreater(value, 0, key)
        kept = [name for name in os.listdir(self.cache) if name.startswith("gpu-")]
        self.assertEqual(len(kept), 1)
        with open(os.path.join(self.cache, kept[0])) as file:
            self.assertEqual(json.load(file), j)

    def test_schedules_follow_where_neighbours_are_drawn(self):
        common = ("plan", *TWIN, *SMALL, "--model", "sage", "--mode", "minibatch", "--batch-size", 30, "--fanout", "5,3",
                  *GPU, "--schedule", "all-gpu")
        self.assertIn("all-gpu", self.ok(*common, timeout=600).out)
        refused = self.nacre(*common, "--sample-on", "host", timeout=600)
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("needs a GPU that draws neighbours, but with these settings the host draws them", refused.err)

    def test_explain(self):
        common = ("explain", *TWIN, *SMALL, *GPU, "--steps", 1, "--search-seconds", 0.1)
        out = self.ok(*common, "--model", "gat", "-v", timeout=600).out
        for word in ("distance to the floor", "lost us", "GB/s", "TFLOP/s", "alternatives", "total"):
            self.assertIn(word, out)
        j = json.loads(self.ok(*common, "--model", "gcn", "--json", timeout=600).out)
        self.assertGreater(j["device"]["copy_bytes"], 0)
        for kernel in j["kernels"]:
            if not kernel["once"]:
                for key in ("predicted_ms", "measured_ms", "floor_ms", "over_floor", "gb_s"):
                    self.assertGreater(kernel[key], 0, kernel)

    def test_emitted_sources_are_those_of_the_gpu(self):
        name = json.loads(self.ok("devices", "--json").out)["cuda"][0]["name"]
        self.ok("plan", *TWIN, *SMALL, *GPU, "--emit-cuda", "kernels", timeout=600)
        self.assertIn(name, self.read("kernels/kernels.txt").decode().splitlines()[0])


if __name__ == "__main__":
    cli.main()
