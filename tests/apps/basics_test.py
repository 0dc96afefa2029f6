#!/usr/bin/env python3
"""Tests what people who train models expect to find: drawn splits, words as names of nodes and
classes, features for graphs that have none, several seeds, warm starts, and options of the
training step."""
import csv
import json
import math
import random
import statistics

import cli

QUICK = ("--hidden", 8, "--epochs", 4, "--dropout", 0)
PEOPLE = [f"person {i}" for i in range(60)]
TEAM = ["red", "green", "blue"]


def friends():
    """Writes a table of friends by name. There are three teams, and most friends are of the same
    team."""
    noise = random.Random(7)
    lines = ["source,target"]
    for i in range(60):
        for _ in range(4):
            j = noise.randrange(20) * 3 + i % 3 if noise.random() < 0.9 else noise.randrange(60)
            lines.append(f'{PEOPLE[i]},{PEOPLE[j]}')
    return "\n".join(lines) + "\n"


def teams(of=range(60)):
    order = list(of)
    random.Random(3).shuffle(order)
    return "name,class\n" + "".join(f"{PEOPLE[i]},{TEAM[i % 3]}\n" for i in order)


class Basics(cli.CliTest):
    def small(self, **changes):
        return self.write("small.npz", cli.small_npz(**changes))

    def train(self, *arguments):
        return self.ok("train", *QUICK, "--json", *arguments).last_json()

    def test_splits(self):
        bare = self.small(train_idx=None, val_idx=None, test_idx=None)
        self.refused("train", "--data", bare, *QUICK, says="--split random:0.6/0.2/0.2")
        self.refused("train", "--data", bare, *QUICK, "--split", "random:0.9/0.9/0.9", says="more than 1")
        self.refused("train", "--data", bare, *QUICK, "--split", "thirds", says="--split")
        trained = self.train("--data", bare, "--split", "stratified:0.5/0.25/0.25", "--split-seed", 3,
                             "--checkpoint", "run")
        # eval draws the same split again, also if the data lie in another place.
        self.write("moved.npz", self.read(bare))
        for where in ((), ("--data", "moved.npz")):
            again = self.ok("eval", "--checkpoint", "run", "--json", *where).last_json()
            self.assertEqual((again["test_acc"], again["val_acc"]), (trained["test_acc"], trained["val_acc"]))
        self.refused("train", "--data", bare, *QUICK, "--split", "stratified:0.5/0.25/0.25", "--split-seed", 4,
                     "--checkpoint", "run", "--resume", says="split_seed is 3 there and 4 here")
        self.ok("data", "convert", bare, "split.nacre", "--split", "per-class:2/6/6")
        info = self.ok("data", "info", "split.nacre", "--json").last_json()
        self.assertEqual(info["splits"], {"train": 6, "val": 6, "test": 6})

    def test_edge_weights_can_be_ignored(self):
        weighted = self.small(edge_weight=cli.npy([1.5] * 120, descr="<f4"))
        self.refused("train", "--data", weighted, "--model", "gat", *QUICK, says="--ignore-edge-weights")
        trained = self.train("--data", weighted, "--model", "gat", "--ignore-edge-weights", "--checkpoint", "run")
        again = self.ok("eval", "--checkpoint", "run", "--json").last_json()
        self.assertEqual(again["test_acc"], trained["test_acc"])

    def test_words_for_nodes_and_classes(self):
        graph, labels = self.write("friends.csv", friends()), self.write("teams.csv", teams(range(48)))
        trained = self.ok("train", "--data", graph, "--labels", labels, "--features", "learned", "--undirected",
                          "--split", "stratified:0.5/0.25/0.25", "--model", "sage", "--hidden", 16, "--epochs", 60,
                          "--lr", 0.02, "--checkpoint", "run", "--json").last_json()
        self.assertGreater(trained["test_acc"], 0.6)
        self.ok("predict", "--checkpoint", "run", "-o", "p.csv")
        with open(self.dir / "p.csv", newline="") as file:
            rows = {row["node"]: row["prediction"] for row in csv.DictReader(file)}
        self.assertEqual(sorted(rows), sorted(PEOPLE))
        right = sum(rows[name] == TEAM[i % 3] for i, name in enumerate(PEOPLE))
        self.assertGreater(right, 40)
        self.ok("predict", "--checkpoint", "run", "-o", "p.npy")
        with open(self.dir / "p.nodes.csv", newline="") as file:
            self.assertEqual(sorted(row["node"] for row in csv.DictReader(file)), sorted(PEOPLE))
        with open(self.dir / "p.classes.csv", newline="") as file:
            self.assertEqual([row["name"] for row in csv.DictReader(file)], sorted(TEAM))
        # The names of the classes come from the model, so data without labels, or without some
        # classes, get the same names.
        self.write("few.csv", teams([1, 4, 7, 2, 5]))
        few = self.ok("eval", "--checkpoint", "run", "--data", graph, "--labels", "few.csv", "--json")
        self.assertIn("test_acc", few.last_json())
        self.ok("predict", "--checkpoint", "run", "--data", graph, "-o", "q.csv")
        self.assertEqual(self.read("q.csv"), self.read("p.csv"))
        self.ok("data", "convert", graph, "friends.nacre", "--labels", labels)
        self.assertEqual(self.ok("data", "info", "friends.nacre", "--json").last_json()["num_classes"], 3)

    def test_features_are_made(self):
        bare = self.small(x=None)
        self.refused("train", "--data", bare, *QUICK, says="--features learned, degree or onehot")
        for kind in ("learned", "degree", "onehot"):
            with self.subTest(kind):
                run = "run-" + kind
                trained = self.train("--data", bare, "--features", kind, "--checkpoint", run)
                again = self.ok("eval", "--checkpoint", run, "--json").last_json()
                self.assertEqual(again["test_acc"], trained["test_acc"])
        for kind in ("learned", "degree", "onehot"):
            run = "batches-" + kind
            trained = self.train("--data", bare, "--features", kind, "--mode", "minibatch", "--batch-size", 7,
                                 "--fanout", "3,3", "--checkpoint", run)
            again = self.ok("eval", "--checkpoint", run, "--json").last_json()
            self.assertEqual(again["test_acc"], trained["test_acc"], kind)
        noted = self.ok("train", "--data", self.small(), *QUICK, "--features", "degree", "--no-checkpoint")
        self.assertIn("those that the data bring are not used", noted.err + noted.out)

    def test_seeds(self):
        small = self.small()
        j = self.train("--data", small, "--seeds", "0-2,5", "--checkpoint", "runs")
        self.assertEqual(j["seeds"], [0, 1, 2, 5])
        scores = [run["test_acc"] for run in j["runs"]]
        self.assertAlmostEqual(j["test_acc_mean"], statistics.mean(scores), places=5)
        self.assertAlmostEqual(j["test_acc_std"], statistics.stdev(scores), places=5)
        alone = self.train("--data", small, "--seed", 5, "--checkpoint", "alone")
        self.assertEqual(alone["test_acc"], scores[3])
        self.assertEqual(self.read("alone/model.safetensors"), self.read("runs/seed-5/model.safetensors"))
        text = self.ok("train", "--data", small, *QUICK, "--seeds", "3,4", "--no-checkpoint").out
        self.assertIn("seed 4: test", text)
        self.assertRegex(text, r"accuracy of 2 seeds: test 0\.\d+ ± 0\.\d+")
        for wrong in ("", "a", "3-1", "1,1", "0-", "0-99999999"):
            self.refused("train", "--data", small, *QUICK, "--seeds", wrong, says="--seeds")
        self.refused("train", "--data", small, *QUICK, "--seeds", "0-1", "--seed", 1, says="--seed")

    def test_warm_starts(self):
        small = self.small()
        self.train("--data", small, "--checkpoint", "first")
        second = self.train("--data", small, "--init", "first", "--epochs", 1, "--lr", 1e-9, "--checkpoint", "second",
                            "--select", "last")
        first = self.ok("eval", "--checkpoint", "first", "--json").last_json()
        self.assertEqual(second["test_acc"], first["test_acc"])
        self.refused("train", "--data", small, *QUICK, "--hidden", 9, "--init", "first", says="has the shape")
        self.refused("train", "--data", small, *QUICK, "--init", "nowhere", says="--init")
        self.train("--data", small, "--model", "sage", "--layers", 3, "--checkpoint", "other")
        self.refused("train", "--data", small, *QUICK, "--init", "other", says="--init")
        self.train("--data", small, "--hidden", 9, "--init", "first", "--init-partial", "--no-checkpoint")

    def test_what_shapes_a_step_is_kept_and_resumed(self):
        small = self.small()
        shape = ("--data", small, "--clip-grad-norm", 0.3, "--ema", 0.9, "--label-smoothing", 0.1, "--class-weights",
                 "balanced", "--lr-schedule", "plateau", "--lr-patience", 0, "--lr-gamma", 0.5, "--metric", "macro_f1")
        for mode in ((), ("--mode", "minibatch", "--batch-size", 6, "--fanout", "4,4")):
            with self.subTest(mode):
                name = "batches" if mode else "whole"
                arguments = ("train", "--hidden", 8, "--dropout", 0.2, *shape, *mode, "--checkpoint-every", 1)
                whole = self.ok(*arguments, "--epochs", 8, "--checkpoint", name, "--json").last_json()
                self.ok(*arguments, "--epochs", 3, "--checkpoint", name + "-cut")
                self.ok(*arguments, "--epochs", 8, "--checkpoint", name + "-cut", "--resume", "--threads", 1)
                self.assertEqual(self.read(name + "/model.safetensors"), self.read(name + "-cut/model.safetensors"))
                rates = [json.loads(line)["lr"] for line in self.read(name + "/metrics.jsonl").splitlines()]
                self.assertLess(rates[-1], rates[0])
                again = self.ok("eval", "--checkpoint", name, "--json").last_json()
                self.assertEqual((again["metric"], again["test_acc"]), ("macro_f1", whole["test_acc"]))
                self.refused(*arguments, "--ema", 0.5, "--epochs", 9, "--checkpoint", name, "--resume",
                             says="training.ema is 0.9 there and 0.5 here")

    def test_settings_out_of_range(self):
        small = self.small()
        for option, value in (("--clip-grad-norm", -1), ("--ema", 1), ("--label-smoothing", 1.5), ("--lr-patience", -1),
                              ("--class-weights", "1,2"), ("--class-weights", "nowhere"), ("--metric", "f2")):
            with self.subTest(option):
                self.refused("train", "--data", small, *QUICK, option, value)

    def test_metrics_of_several_labels(self):
        y = [(v >> k) & 1 for v in range(40) for k in range(3)]
        multi = self.small(y=cli.npy(y, (40, 3), "|u1"))
        for metric in ("macro_f1", "average_precision", "micro_f1", "roc_auc"):
            j = self.train("--data", multi, "--metric", metric, "--label-smoothing", 0.1, "--no-checkpoint")
            self.assertEqual(j["metric"], metric)
            self.assertTrue(0 <= j["test_acc"] <= 1)
        plain = self.train("--data", multi, "--no-checkpoint")
        for weights in ("balanced", "1,0.5,4"):
            for mode in ((), ("--mode", "minibatch", "--batch-size", 7, "--fanout", "3,3")):
                j = self.train("--data", multi, "--no-checkpoint", "--class-weights", weights, *mode)
                self.assertTrue(math.isfinite(j["loss"]), (weights, mode))
                self.assertNotEqual(j["loss"], plain["loss"], (weights, mode))
        self.refused("train", "--data", multi, *QUICK, "--class-weights", "1,2", says="there are 3 classes")


if __name__ == "__main__":
    cli.main()
