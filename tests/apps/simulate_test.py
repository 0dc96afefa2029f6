#!/usr/bin/env python3
"""Tests nacre plan and nacre explain for several devices, and nacre simulate: what they predict and
count, and how wrong descriptions of hardware are refused."""
import json
import unittest

import cli

DATA = ("--data", "twin:cora@0.3")
GCN = (*DATA, "--model", "gcn", "--hidden", 16)
RANKS = ("--devices", "cpu:1,cpu:1,cpu:1")

HARDWARE = """\
name = "two small boxes"
machines = 2

[[device]]
name = "core"
kind = "cpu"
count = 2
memory = "2G"

[inside]
bandwidth = 10e9
latency = 1e-6

[between]
bandwidth = 1e9
latency = 2e-5
"""


class Test(cli.CliTest):
    def json(self, *arguments):
        return json.loads(self.ok(*arguments, "--json", "-q").out)


class SeveralDevices(Test):
    def test_the_plan_shows_every_rank(self):
        planned = self.json("plan", *GCN, *RANKS, "--plan", "off")
        several = planned["several_devices"]
        ranks = several["ranks"]
        self.assertEqual([rank["device"] for rank in ranks], ["cpu:1"] * 3)
        self.assertAlmostEqual(sum(rank["share"] for rank in ranks), 1)
        for rank in ranks:
            self.assertLess(rank["memory_bytes"], rank["memory_limit_bytes"])
            parts = rank["computing_ms"] + rank["communication_ms"] + rank["waiting_ms"]
            self.assertAlmostEqual(rank["step_ms"], parts)
            self.assertGreater(rank["received_bytes"], rank["received_row_bytes"])
        self.assertAlmostEqual(several["step_ms"], max(rank["step_ms"] for rank in ranks))
        self.assertIn("--halo-rows auto chooses", several["rows"])
        kinds = {call["what"].split()[0] for call in several["calls"]}
        self.assertEqual(kinds, {"exchange", "exchange_add", "all_reduce"})
        for call in several["calls"]:
            self.assertEqual(planned["kernels"][call["kernel"]]["kind"], "exchange")
        text = self.ok("plan", *GCN, *RANKS, "--plan", "off", "-q").out
        for word in ("runs on   cpu:1,cpu:1,cpu:1", "halo", "the host: ", "exchange_add", "all_reduce", "waiting"):
            self.assertIn(word, text)

    def test_training_does_what_was_planned(self):
        for rows in ("late", "early"):
            with self.subTest(rows=rows):
                options = (*GCN, *RANKS, "--shares", "1,2,3", "--partition", "fennel", "--halo-rows", rows)
                planned = self.json("plan", *options)["several_devices"]["ranks"]
                trained = self.json("train", *options, "--epochs", 3, "--no-checkpoint")["ranks"]
                for plan, run in zip(planned, trained):
                    for field in ("device", "share", "nodes", "edges", "halo_nodes"):
                        self.assertEqual(plan[field], run[field])
                    self.assertAlmostEqual(plan["memory_bytes"] / 2**20, run["planned_mb"])

    def test_the_written_plan_can_be_trained(self):
        self.ok("plan", *GCN, *RANKS, "--halo-rows", "narrow", "-q", "-o", "plan.json")
        self.assertNotIn("several_devices", self.read("plan.json").decode())

    def test_explain_measures_the_largest_rank(self):
        explained = self.json("explain", *GCN, *RANKS, "--steps", 1)
        kernels = explained["kernels"]
        self.assertIn("exchange", {kernel["kind"] for kernel in kernels})
        for kernel in kernels:
            if not kernel["once"]:
                self.assertGreater(kernel["measured_ms"], 0)
        self.assertEqual(len(explained["several_devices"]["ranks"]), 3)
        text = self.ok("explain", *GCN, *RANKS, "--steps", 1, "-q").out
        self.assertIn("measured", text)
        self.assertIn("--halo-rows auto chooses", text)

    def test_what_needs_one_device_is_refused(self):
        for option in (("--picture", "a.svg"), ("--emit-cuda", "cuda"), ("--bill",)):
            self.refused("plan", *GCN, *RANKS, *option, says="is for one device")
        self.refused("plan", *GCN, *RANKS, "--device", "cpu", says="--devices names several")
        self.refused("plan", *GCN, "--halo-rows", "late", says="is for several devices")
        self.refused("plan", *GCN, "--devices", "cpu:1,cuda:77", says="cuda")


class Simulate(Test):
    def simulate(self, text, *arguments):
        self.write("hardware.toml", text)
        return self.json("simulate", *GCN, "--hardware", "hardware.toml", *arguments)

    def test_a_table_over_numbers_of_devices(self):
        result = self.simulate(HARDWARE)
        self.assertEqual([run["devices"] for run in result["runs"]], [1, 2, 4])
        self.assertEqual([run["machines"] for run in result["runs"]], [1, 1, 2])
        self.assertEqual(result["scale"], 1)
        self.assertTrue(any("1 GB/s" in line for line in result["assumptions"]))
        for run in result["runs"]:
            self.assertTrue(run["fits"])
            self.assertGreater(run["epoch_ms"], 0)
            self.assertLess(run["memory_bytes"], run["memory_limit_bytes"])
            self.assertEqual(len(run["ranks"]), run["devices"])
            for field in ("computing_ms", "communication_ms", "waiting_ms", "received_bytes", "efficiency", "cut"):
                self.assertGreaterEqual(run[field], 0)
        self.assertEqual(result["runs"][0]["efficiency"], 1)
        self.assertEqual(result["runs"][0]["received_bytes"], 0)
        text = self.ok("simulate", *GCN, "--hardware", "hardware.toml", "--ranks", 4, "-q").out
        for word in ("two small boxes; assumptions:", "between machines: 1 GB/s", "efficiency", "columns and sums are left out"):
            self.assertIn(word, text)

    def test_counts_are_those_of_a_plan(self):
        options = ("--shares", "2,1,1", "--halo-rows", "late", "--partition", "random")
        run = self.simulate(HARDWARE, "--ranks", 3, *options)["runs"][0]
        planned = self.json("plan", *GCN, *RANKS, *options)["several_devices"]
        for rank, plan in zip(run["ranks"], planned["ranks"]):
            for field in ("nodes", "edges", "halo_nodes", "sent_bytes", "received_bytes", "memory_bytes"):
                self.assertEqual(rank[field], plan[field], field)

    def test_large_twins_are_counted_on_small_ones(self):
        result = self.json("simulate", "--data", "twin:igb-large", "--model", "sage", "--count-on", 2e-5, "--hardware",
                           "h200x8", "--ranks", "8,64")
        self.assertEqual(result["nodes"], 100_000_000)
        self.assertAlmostEqual(result["scale"], 50_000, delta=50)
        self.assertEqual(result["counted_on"], "twin:igb-large@2e-05")
        self.assertTrue(any("stands for" in line for line in result["assumptions"]))
        eight, many = result["runs"]
        self.assertEqual(many["machines"], 8)
        self.assertGreater(eight["computing_ms"], many["computing_ms"])
        self.assertGreater(eight["memory_bytes"], many["memory_bytes"])
        self.assertGreater(sum(rank["memory_bytes"] for rank in eight["ranks"]), 100e6 * 1024 * 4)

    def test_profiles_are_rates(self):
        self.ok("explain", *GCN, "--device", "cpu", "--threads", 1, "--steps", 2, "--search-seconds", 0, "-q",
                "--save-profile", "core.json")
        device = HARDWARE.replace("count = 2", 'count = 2\nprofile = "core.json"')
        result = self.simulate(device, "--ranks", 2)
        self.assertTrue(any("measured on" in line for line in result["assumptions"]))
        slow = self.simulate(device.replace("count = 2", "count = 2\ntogether = 0.1"), "--ranks", 2)
        self.assertGreater(slow["runs"][0]["epoch_ms"], result["runs"][0]["epoch_ms"])
        fast = self.simulate(HARDWARE.replace("[inside]", "[device.rates]\nflops = 1e15\n\n[inside]"), "--ranks", 2)
        usual = self.simulate(HARDWARE, "--ranks", 2)
        self.assertLess(fast["runs"][0]["epoch_ms"], usual["runs"][0]["epoch_ms"])
        self.refused("explain", *GCN, "--steps", 0, "--save-profile", "core.json", says="needs measured kernels")

    def test_wrong_descriptions_are_refused(self):
        cases = (
            ('name = "a', "line 1: is not TOML"),
            ("machines = 2\n", "describes no device"),
            (HARDWARE.replace("count = 2", "count = 0"), "line 7: 'count' must be a whole number from 1"),
            (HARDWARE.replace("count = 2", "cuont = 2"), "line 7: [[device]] has no key 'cuont' (did you mean 'count'?)"),
            (HARDWARE.replace('"2G"', '"much"'), "line 8: 'much' is not a size"),
            (HARDWARE.replace('"cpu"', '"tpu"'), "line 6: 'tpu' is not a kind of device"),
            (HARDWARE.replace("10e9", "-1"), "line 11: 'bandwidth' must be a number above 0"),
            (HARDWARE.replace("bandwidth = 1e9\n", ""), "no bandwidth between them"),
            (HARDWARE.replace("[inside]", "[insde]"), "has no key 'insde' (did you mean 'inside'?)"),
            (HARDWARE.replace("[[device]]", "[device]"), "must be a list of tables"),
            (HARDWARE.replace("count = 2", 'profile = "machine"\nthreads = 4001'), "run nacre profile --threads 4001"),
            (HARDWARE.replace("count = 2", 'profile = "gone.json"'), "gone.json"),
            (HARDWARE.replace("count = 2", "together = 2"), "at most 1"),
            (HARDWARE.replace("[inside]", '[[device]]\nname = "core"\n\n[inside]'), "two devices named 'core'"),
            ("a = " + "[" * 50 + "]" * 50, "line 1: is nested deeper"),
        )
        for text, says in cases:
            with self.subTest(says=says):
                self.write("bad.toml", text)
                self.refused("simulate", *GCN, "--hardware", "bad.toml", says=says)

    def test_wrong_options_are_refused(self):
        self.write("hardware.toml", HARDWARE)
        simulate = ("simulate", *GCN, "--hardware", "hardware.toml")
        self.refused("simulate", *GCN, "--hardware", "h300x8", says="choose h200x8")
        self.refused(*simulate, "--ranks", "5", says="more than the 4 devices")
        self.refused(*simulate, "--ranks", "0", says="is not a number of devices")
        self.refused(*simulate, "--shares", "1,2", says="add --ranks 2")
        self.refused(*simulate, "--precision", "tf32", says="needs a GPU")
        self.refused(*simulate, "--count-on", "2", says="--count-on")
        self.refused(*simulate, "--data", "nowhere.npz", "--count-on", "0.1", says="is for twins")
        self.refused(*simulate, "--heads", 2, says="is for models with attention")
        self.refused(*simulate, "--halo-rows", "columns", says="cannot be simulated yet")
        self.refused(*simulate, "--shares", "flops", says="needs devices that are there")
        shares = [rank["share"] for rank in self.simulate(HARDWARE, "--shares", "uniform")["runs"][-1]["ranks"]]
        self.assertEqual(shares, [1 / len(shares)] * len(shares))


if __name__ == "__main__":
    cli.main()
