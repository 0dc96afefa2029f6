#!/usr/bin/env python3
"""Trains on mini-batches on several devices: as threads of one process (--devices), and as
processes that mpirun has started. A step is that of the joined batch on one device."""
import os
import unittest

import cli
from launched import LaunchedTest, RankTest

# DATA has 140 training nodes, so that batches of 7 nodes fill steps of two and of four batches.
DATA = ("--data", "twin:cora", "--mode", "minibatch")
MODELS = {
    "gcn": ("--model", "gcn", "--hidden", 16, "--clip-grad-norm", 0.5),
    "sage": ("--model", "sage", "--hidden", 12, "--ema", 0.9),
    "gat": ("--model", "gat", "--hidden", 8, "--heads", 2, "--class-weights", "balanced"),
}
ALL = ("--fanout", "-1,-1")
SAMPLED = ("--model", "gcn", "--hidden", 16, "--dropout", 0.3, "--fanout", "5,3")
BATCHES = ("train", *DATA, *SAMPLED, "--batch-size", 7)


class Threads(RankTest):
    def test_a_step_is_that_of_the_joined_batch(self):
        for name, options in MODELS.items():
            common = (*DATA, *options, *ALL, "--epochs", 3, "--seed", 3)
            self.train(f"{name}-14", *common, "--device", "cpu", "--batch-size", 14)
            two = self.train(f"{name}-2", *common, "--devices", "cpu:1,cpu:1", "--batch-size", 7)
            self.same(f"{name}-2", f"{name}-14")
            self.assertEqual([rank["step_batches"] for rank in two["ranks"]], [1, 1])
        self.train("gat-28", *common, "--device", "cpu", "--batch-size", 28)
        four = self.train("gat-4", *common, "--devices", "cpu:1,cpu:2", "--shares", "1,3", "--batch-size", 7)
        self.same("gat-4", "gat-28")
        self.assertEqual([rank["step_batches"] for rank in four["ranks"]], [1, 3])
        for rank in four["ranks"]:
            self.assertGreater(rank["sent_mb"], 0)
            self.assertGreater(rank["computing_s"], 0)

    def test_same_bytes_again_and_on_other_devices(self):
        common = (*DATA, *SAMPLED, "--batch-size", 7, "--epochs", 2, "--deterministic")
        self.train("a", *common, "--devices", "cpu:1,cpu:1")
        self.train("b", *common, "--devices", "cpu:2,cpu:2", "--prefetch", 0)
        self.assertEqual(self.read("a/model.safetensors"), self.read("b/model.safetensors"))
        # One device that computes both batches adds up the same gradients in another order.
        self.train("c", *common, "--devices", "cpu:1", "--shares", "2")
        self.same("c", "a")

    def test_every_sampler_trains(self):
        for sampler in (("layer", "--fanout", "40,40"), ("saint-vertex", "--budget", 60), ("saint-edge", "--budget", 60),
                        ("saint-walk", "--budget", 20)):
            made = self.train(sampler[0], *DATA, "--model", "sage", "--hidden", 16, "--sampler", *sampler, "--epochs", 4,
                              "--batch-size", 40, "--devices", "cpu:1,cpu:1")
            self.assertGreater(made["test_acc"], 0.3, sampler)

    def test_memory_plans_and_reports(self):
        made = self.train("run", *BATCHES[1:], "--epochs", 2, "--devices", "cpu:1,cpu:2", "--shares", "cores")
        self.assertEqual([rank["step_batches"] for rank in made["ranks"]], [1, 2])
        self.assertGreater(made["planned_mb"], made["peak_mb"])
        self.assertEqual(len(self.metrics("run")[0]["ranks"]), 2)
        text = self.ok("plan", *BATCHES[1:], "--devices", "cpu:1,cpu:1").out
        self.assertIn("20 mini-batches of 7 an epoch", text)
        self.ok("explain", *BATCHES[1:], "--devices", "cpu:1,cpu:1", "--steps", 1)
        self.ok("eval", "--checkpoint", "run")
        self.ok("predict", "--checkpoint", "run", "-o", "p.csv")

    def test_runs_continue_on_other_devices(self):
        common = (*BATCHES[1:], "--epochs", 2)
        self.train("run", *common, "--devices", "cpu:1,cpu:1,cpu:1")
        self.ok("train", "--resume", "run", "--epochs", 3)
        self.ok("train", "--resume", "run", "--epochs", 4, "--devices", "cpu:1,cpu:1")
        self.ok("train", "--resume", "run", "--epochs", 5, "--device", "cpu")
        self.assertEqual([m["epoch"] for m in self.metrics("run")], [1, 2, 3, 4, 5])

    def test_what_is_refused(self):
        two = (*BATCHES, "--no-checkpoint", "--devices", "cpu:1,cpu:1")
        self.refused(*two, "--shares", "0.5,1", says="0.5 is no number of batches")
        self.refused(*two, "--shares", "1,2,3", says="has 3 numbers for 2 devices")
        self.refused(*two, "--host-budget", "1M", says="for one device of a process")
        for option in (("--partition", "metis"), ("--halo-rows", "late"), ("--no-overlap",)):
            self.refused(*two, *option, says="mini-batches share out batches")
        self.refused(*two, "--feature-budget", "1M", says="is for a GPU")


class Processes(LaunchedTest):
    def test_a_step_is_that_of_the_joined_batch(self):
        common = (*DATA, *MODELS["sage"], *ALL, "--epochs", 3)
        self.train("one", *common, "--device", "cpu", "--batch-size", 14)
        several = ("train", *common, "--batch-size", 7, "--json", "-q")
        made = self.launched(2, *several, "--checkpoint", "two", "--threads", 1).last_json()
        self.assertEqual([rank["step_batches"] for rank in made["ranks"]], [1, 1])
        self.same("two", "one")
        self.train("four-one", *common, "--device", "cpu", "--batch-size", 28)
        self.launched(2, *several, "--checkpoint", "four", "--devices", "cpu:1+cpu:1,cpu:1", "--shares", "1,1,2")
        self.same("four", "four-one")
        # The run goes on with threads of one process.
        self.ok("train", "--resume", "two", "--epochs", 4, "--devices", "cpu:1,cpu:1,cpu:1")

    def test_same_batches_with_features_on_disk(self):
        self.ok("data", "convert", "twin:cora@0.5", "cora.nacre")
        common = ("train", "--data", "cora.nacre", "--normalize-features", "none", "--mode", "minibatch", *SAMPLED,
                  "--batch-size", 7, "--epochs", 2, "--json", "-q", "--threads", 1, "--deterministic")
        self.launched(2, *common, "--checkpoint", "memory")
        made = self.launched(2, *common, "--checkpoint", "disk", "--host-budget", "1500K").last_json()
        self.assertIsNotNone(made["disk"])
        self.assertEqual(self.read("memory/model.safetensors"), self.read("disk/model.safetensors"))

    def test_refused_by_all_processes(self):
        result = self.launch(2, *BATCHES, "--shares", "0.5,1")
        self.assertEqual(result.code, 2, result)
        self.assertEqual(result.err.count("is no number of batches"), 1, result)


@unittest.skipIf(os.environ.get("NACRE_TEST_DEVICE") != "cuda", "NACRE_TEST_DEVICE is not cuda")
class Gpus(LaunchedTest):
    """Parts of a GPU, which may be emulated, and a GPU beside cores of the host."""

    gpu = True

    def test_a_step_is_that_of_the_joined_batch(self):
        common = (*DATA, *MODELS["sage"], *ALL, "--epochs", 2)
        self.train("one", *common, "--device", "cpu", "--batch-size", 28)
        for name, devices in (("parts", "cuda:0@8,cuda:0@8"), ("mixed", "cuda:0@8,cpu:1")):
            made = self.train(name, *common, "--batch-size", 7, "--devices", devices, "--shares", "3,1")
            self.same(name, "one", first=2)
            self.assertEqual(made["device"], devices)
        self.launched(2, "train", *common, "--batch-size", 7, "--checkpoint", "processes", "--json", "-q", "--devices",
                      "cuda:0@8,cuda:0@8", "--shares", "1,3")
        self.same("processes", "one", first=2)


if __name__ == "__main__":
    cli.main()
