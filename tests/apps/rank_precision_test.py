#!/usr/bin/env python3
"""Trains one graph on several GPUs of which some store values as bf16, and lets runs switch ranks
to bf16 by themselves. The GPUs may be emulated."""
import json
import os
import unittest

import cli
from launched import LaunchedTest


@unittest.skipIf(os.environ.get("NACRE_TEST_DEVICE") != "cuda", "NACRE_TEST_DEVICE is not cuda")
class Bf16(LaunchedTest):
    """Tests ranks that store values as bf16, and runs that switch ranks to bf16 by themselves."""

    gpu = True
    MODEL = ("--data", "easy.npz", "--model", "gcn", "--layers", 3, "--hidden", 32, "--seed", 1)
    TWO = ("--devices", "cuda:0@8,cuda:0@8", "--shares", "1,1")

    def setUp(self):
        super().setUp()
        # The graph has rings of one class each, with few edges between them, so that every
        # precision learns all classes.
        nodes, classes, width = 240, 3, 16
        src = [v for v in range(nodes) for _ in range(4)]
        dst = [(v + step * classes) % nodes for v in range(nodes) for step in (1, 2, 5)]
        dst = [u for v in range(nodes) for u in (*dst[3 * v:3 * v + 3], (v + 1 if v % 12 == 0 else v + 9) % nodes)]
        x = [((v * 7 + j * 3) % 11 - 5) / 8 + (1 if j == v % classes else 0) for v in range(nodes) for j in range(width)]
        self.write("easy.npz", cli.npz({"edge_index": cli.npy(src + dst, (2, len(src))), "x": cli.npy(x, (nodes, width), "<f4"),
                                        "y": cli.npy([v % classes for v in range(nodes)]), "train_idx": cli.npy(list(range(90))),
                                        "val_idx": cli.npy(list(range(90, 120))), "test_idx": cli.npy(list(range(120, 240)))}))

    def check(self, made, exact, precisions):
        self.assertEqual([rank["precision"] for rank in made["ranks"]], precisions)
        for rank in made["ranks"]:
            self.assertEqual(rank["step_received_bytes"], rank["step_planned_bytes"])
        self.assertAlmostEqual(made["test_acc"], exact["test_acc"], delta=0.003)
        self.assertGreater(made["test_acc"], 0.95)

    def test_rows_travel_as_bf16(self):
        common = (*self.MODEL, "--epochs", 30, "--halo-rows", "late")
        exact = self.train("f32", *common, *self.TWO)
        self.check(exact, exact, ["f32", "f32"])
        wide = sum(rank["step_received_bytes"] for rank in exact["ranks"])
        for precision in ("bf16", "bf16,f32", "tf32,bf16"):
            made = self.train(precision, *common, *self.TWO, "--precision", precision)
            self.check(made, exact, precision.split(",") if "," in precision else [precision] * 2)
            self.assertLess(sum(rank["step_received_bytes"] for rank in made["ranks"]), 0.7 * wide)
        host = ("--devices", "cuda:0@8,cpu:1", "--shares", "1,1", "--precision", "bf16")
        made = self.train("host", *common, *host)
        self.check(made, exact, ["bf16", "f32"])
        self.assertLess(sum(rank["step_received_bytes"] for rank in made["ranks"]), 0.7 * wide)
        processes = self.launched(2, "train", *common, *host, "--checkpoint", "processes", "--json").last_json()
        self.check(processes, exact, ["bf16", "f32"])
        self.assertEqual([rank["step_received_bytes"] for rank in processes["ranks"]],
                         [rank["step_received_bytes"] for rank in made["ranks"]])

    def test_the_plan_shows_it(self):
        plan = ("plan", *self.MODEL[:-2], "--halo-rows", "late", *self.TWO)
        wide = self.ok(*plan, "--json").last_json()["several_devices"]
        self.assertNotIn("as bf16", json.dumps(wide))
        text = self.ok(*plan, "--precision", "bf16").out
        self.assertRegex(text, r"exchange h\d\[32\] as bf16")
        self.assertIn("cuda:0@8 bf16", text)
        for precision, half in (("bf16", True), ("bf16,f32", True), ("f32,f32", False)):
            ranks = self.ok(*plan, "--precision", precision, "--json").last_json()["several_devices"]
            for now, before in zip(ranks["ranks"], wide["ranks"]):
                self.assertEqual(now["received_row_bytes"] < 0.7 * before["received_row_bytes"], half)
        self.assertIn("as bf16 to and from 1 rank", self.ok(*plan, "--precision", "f32,bf16").out +
                      self.ok(*plan, "--precision", "bf16,f32").out)

    def profile(self):
        """Writes a profile of the GPU that makes bytes, and not launches, take the time."""
        figures = dict.fromkeys(("copy_bytes", "far_gather_16_bytes", "far_gather_64_bytes", "far_gather_256_bytes",
                                 "near_gather_16_bytes", "near_gather_64_bytes", "near_gather_256_bytes",
                                 "up_pinned_bytes", "up_pageable_bytes", "down_pinned_bytes", "down_pageable_bytes",
                                 "link_gather_64_bytes", "link_gather_256_bytes"), 1e6)
        figures |= {"gemm_f32_flops": 1e9, "gemm_tf32_flops": 1e9, "gemm_bf16_flops": 2e9, "launch_seconds": 1e-9,
                    "graph_launch_seconds": 1e-9}
        label = "emulated GPU, 8 multiprocessors"
        (self.dir / "cache").mkdir(exist_ok=True)
        self.write("cache/gpu-emulated-gpu-8-multiprocessors.json", json.dumps(
            {"format": "nacre-gpu-profile", "version": 2, "device": label, "l2_bytes": 4 << 20, **figures}))

    @unittest.skipIf("NACRE_EMULATOR_CACHE" not in os.environ, "the GPU is not emulated")
    def test_ranks_switch_by_themselves(self):
        # The model learns the classes soon, so the run stops early. But as the run could be long, a
        # switch is expected to pay.
        common = (*self.MODEL, "--epochs", 100000, "--patience", 30)
        exact = self.train("f32", *common, *self.TWO)
        declined = self.ok("train", *common, *self.TWO, "--precision", "auto", "--no-checkpoint", "--json")
        self.assertIn("all devices keep their precision", declined.err)
        self.check(declined.last_json(), exact, ["tf32", "tf32"])
        self.profile()
        for shares in (("--shares", "1,1"), ("--shares", "auto")):
            two = (*self.TWO[:2], *shares)
            result = self.ok("train", *common, *two, "--precision", "auto", "--checkpoint", shares[1], "--json")
            self.assertIn("switch", result.err)
            self.assertIn("has too much work" if "a rank switches" in result.err else "have too much work", result.err)
            made = result.last_json()
            self.assertIn("bf16", [rank["precision"] for rank in made["ranks"]])
            self.check(made, exact, [rank["precision"] for rank in made["ranks"]])
            losses = [line["loss"] for line in self.metrics(shares[1])]
            self.assertGreater(len(losses), 20)
            # The switch comes after five epochs. Nothing is lost then: the loss goes on as before.
            for epoch, (loss, want) in enumerate(zip(losses, [line["loss"] for line in self.metrics("f32")])):
                self.assertLess(abs(loss - want), 0.02 * losses[0], epoch)
        processes = self.launched(2, "train", *common, *self.TWO, "--precision", "auto", "--no-checkpoint", "--json")
        self.assertIn("switch", processes.err)
        self.check(processes.last_json(), exact, [rank["precision"] for rank in processes.last_json()["ranks"]])
        host = self.ok("train", *common, "--devices", "cuda:0@8,cpu:1", "--shares", "9,1", "--precision", "auto",
                       "--no-checkpoint", "--json")
        self.check(host.last_json(), exact, [host.last_json()["ranks"][0]["precision"], "f32"])

    def test_what_is_refused(self):
        train = ("train", *self.MODEL, "--no-checkpoint", "--precision", "auto")
        self.refused(*train, "--device", "cuda", says="'auto' is for several devices")
        self.refused(*train, "--devices", "cpu:1,cpu:1", says="'auto' needs a GPU")


if __name__ == "__main__":
    cli.main()
