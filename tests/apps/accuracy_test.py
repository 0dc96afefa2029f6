#!/usr/bin/env python3
"""Trains on the real citation graphs and compares the mean accuracy over seeds 0 to 9 with
published ones.

    accuracy_test.py PROGRAM SOURCE_ROOT
"""
import statistics
import sys

import cli

SEEDS = range(10)
SOURCE_ROOT = "."


class Accuracy(cli.CliTest):
    def mean(self, file, *options):
        folder = cli.datasets(SOURCE_ROOT)
        if folder is None:
            self.skipTest("the real data sets are not here (NACRE_DATASETS)")
        scores = []
        for seed in SEEDS:
            j = self.ok("train", "--data", folder / file, *options, "--seed", seed, "--no-checkpoint", "--json", "-q",
                        timeout=600).last_json()
            scores.append(j["test_acc"])
        mean = statistics.mean(scores)
        print(f"{file} {options[1]}: {100 * mean:.2f} ± {100 * statistics.stdev(scores):.2f} %", flush=True)
        return mean

    GCN = ("--model", "gcn", "--layers", 2, "--hidden", 16, "--dropout", 0.5, "--weight-decay", 5e-4, "--lr", 0.01, "--epochs",
           200)
    GAT = ("--model", "gat", "--layers", 2, "--hidden", 64, "--heads", 8, "--dropout", 0.6, "--input-dropout", 0.6,
           "--attention-dropout", 0.6, "--weight-decay", 5e-4, "--lr", 0.005, "--epochs", 200)

    def test_gcn_on_cora(self):
        self.assertGreaterEqual(self.mean("cora.npz", *self.GCN), 0.81)

    def test_gcn_on_citeseer(self):
        self.assertGreaterEqual(self.mean("citeseer.npz", *self.GCN), 0.698)

    def test_gat_on_cora(self):
        self.assertGreaterEqual(self.mean("cora.npz", *self.GAT), 0.823)


if __name__ == "__main__":
    SOURCE_ROOT = sys.argv.pop(2)
    cli.main()
