#!/usr/bin/env python3
"""Converts, trains and predicts on graphs with several kinds of nodes, one command each."""
import json
import pathlib
import sys

import cli

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "hetero"))
import make_igbh

WIDTHS = {"paper": 32, "author": 24, "institute": 8}  # fields of study have no features
SCALE = 0.01 if "--sanitized" in sys.argv else 0.04


class Hetero(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.vertices, self.edges = make_igbh.write(self.dir / "igbh", SCALE, WIDTHS)

    def losses(self, run):
        return [json.loads(line)["loss"] for line in self.read(run + "/metrics.jsonl").splitlines()]

    def test_igbh_trains_with_one_command(self):
        for model in ("rgcn", "gat"):
            with self.subTest(model):
                r = self.ok("train", "--data", "igbh", "--model", model, "--hidden", 16, "--epochs", 6, "--lr", 0.02,
                            "--checkpoint", model, "--json")
                self.assertIn("4 kinds of nodes: paper (32 features), author (24 features), institute (8 features) "
                              "projected to 16; rows of 16 numbers are learned for fos", r.err)
                losses = self.losses(model)
                self.assertEqual(losses, sorted(losses, reverse=True))
                self.assertLess(losses[-1], 0.8 * losses[0])
                if not cli.SANITIZED:
                    self.assertGreater(r.last_json()["test_acc"], 3 / make_igbh.CLASSES)
                j = self.ok("eval", "--checkpoint", model, "--json").last_json()
                self.assertEqual(j["test_acc"], r.last_json()["test_acc"])
        raw = self.read("rgcn/model.safetensors")
        header = json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")])
        self.assertEqual(header["input.author.weight"]["shape"], [24, 16])
        fields = max(make_igbh.CLASSES, round(make_igbh.VERTICES["fos"] * SCALE))
        self.assertEqual(header["embedding.fos.weight"]["shape"], [fields, 16])
        # Four relations and their reverses.
        self.assertEqual(header["layers.0.weight"]["shape"], [8, 16, 16])
        self.ok("predict", "--checkpoint", "rgcn", "-o", "p.csv")
        self.assertEqual(len(self.read("p.csv").splitlines()), 1 + self.vertices)

    def test_interrupted_runs_continue_to_the_same_weights(self):
        common = ("train", "--data", "igbh", "--model", "rgcn", "--hidden", 8, "--dropout", 0.3)
        self.ok(*common, "--epochs", 4, "--checkpoint", "whole", "--threads", 1)
        self.ok(*common, "--epochs", 2, "--checkpoint", "parts", "--threads", 2)
        self.ok(*common, "--epochs", 4, "--checkpoint", "parts", "--resume")
        self.assertEqual(self.read("parts/model.safetensors"), self.read("whole/model.safetensors"))

    def test_mini_batches_train_with_one_command(self):
        for run, sampler in (("few", "--fanout 5,5"), ("walks", "--sampler saint-walk --budget 200")):
            with self.subTest(sampler):
                r = self.ok("train", "--data", "igbh", "--model", "rgcn", "--mode", "minibatch", *sampler.split(),
                            "--batch-size", 256, "--hidden", 16, "--epochs", 5, "--lr", 0.02, "--checkpoint", run,
                            "--json")
                losses = self.losses(run)
                self.assertLess(losses[-1], 0.8 * losses[0])
                if not cli.SANITIZED:
                    self.assertGreater(r.last_json()["test_acc"], 3 / make_igbh.CLASSES)
                j = self.ok("eval", "--checkpoint", run, "--json").last_json()
                self.assertEqual(j["test_acc"], r.last_json()["test_acc"])
                self.ok("predict", "--checkpoint", run, "-o", "p.csv")
                self.assertEqual(len(self.read("p.csv").splitlines()), 1 + self.vertices)

    def test_all_neighbours_in_one_batch_are_the_whole_graph(self):
        common = ("train", "--data", "igbh", "--model", "rgcn", "--hidden", 16, "--epochs", 4, "--optimizer", "sgd",
                  "--lr", 0.2)
        self.ok(*common, "--checkpoint", "whole")
        self.ok(*common, "--mode", "minibatch", "--fanout", "-1,-1", "--batch-size", 1000000, "--checkpoint", "batch")
        for a, b in zip(self.losses("whole"), self.losses("batch"), strict=True):
            self.assertAlmostEqual(a, b, delta=1e-5)

    def test_interrupted_mini_batches_continue_to_the_same_weights(self):
        common = ("train", "--data", "igbh", "--model", "rgcn", "--hidden", 8, "--dropout", 0.3, "--mode", "minibatch",
                  "--fanout", "4,3", "--batch-size", 512)
        self.ok(*common, "--epochs", 2, "--checkpoint", "whole", "--threads", 1)
        self.ok(*common, "--epochs", 1, "--checkpoint", "parts", "--threads", 2)
        self.ok(*common, "--epochs", 2, "--checkpoint", "parts", "--resume")
        self.assertEqual(self.read("parts/model.safetensors"), self.read("whole/model.safetensors"))

    def test_options_for_one_table_are_refused_before_data_are_read(self):
        path = self.dir / "igbh/processed/author/node_feat.npy"
        path.write_bytes(path.read_bytes()[:-4] + b"\0\0\xc0\x7f")  # not a number
        batches = ("train", "--data", "igbh", "--model", "rgcn", "--mode", "minibatch")
        self.refused(*batches, "--host-budget", "1M", says="--host-budget: works for one table of features")
        self.refused(*batches, says="not finite")

    def test_a_model_meets_other_kinds(self):
        self.ok("train", "--data", "igbh", "--model", "rgcn", "--hidden", 8, "--epochs", 1, "--checkpoint", "run")
        make_igbh.write(self.dir / "other", SCALE, dict(WIDTHS, author=12))
        self.refused("eval", "--checkpoint", "run", "--data", "other", says="author (12 features)")


if __name__ == "__main__":
    cli.main()
