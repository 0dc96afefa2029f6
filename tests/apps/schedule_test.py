#!/usr/bin/env python3
"""Tests schedules of mini-batches: the costs that they are made from, how they are shown, and runs
that follow them."""
import json

import cli

TWIN = ("--data", "twin:cora@0.3")
SMALL = ("--hidden", 8, "--layers", 2)


class Schedules(cli.ProfiledTest):
    """Tests the costs of the operations of mini-batches, and schedules that are made from them."""
    BATCHES = (*TWIN, "--model", "sage", *SMALL, "--mode", "minibatch", "--fanout", "3,3", "--batch-size", 20)

    def test_costs_are_kept_and_used(self):
        j = json.loads(self.ok("profile", *self.BATCHES, "--seconds", 0.2, "-q", "--json").out)
        self.assertGreaterEqual(j["batches"], 8)
        self.assertLess(j["seconds"], 60)
        operations = {o["operation"] for o in j["operations"]}
        self.assertEqual(operations, {"sample", "reindex", "gather", "prepare", "bind", "aggregate", "combine",
                                      "combine_grad", "aggregate_grad", "update"})
        for o in j["operations"]:
            self.assertGreater(o["typical_s"], 0)
        plan = self.ok("plan", *self.BATCHES, "--plan", "off").out
        self.assertIn("predicted by the costs of this graph's operations", plan)
        other = self.ok("plan", *self.BATCHES, "--replace", "--plan", "off").out
        self.assertNotIn("costs of this graph", other)

    def test_are_shown_with_a_bound(self):
        self.ok("profile", *self.BATCHES, "--seconds", 0.2, "-q")
        gpu = ("--device", "cuda:typical", "--schedule")
        out = self.ok("plan", *self.BATCHES, *gpu, "salient").out
        for word in ("daha", "salient", "bytegnn", "in-turn", "no schedule takes less than", "to cuda:typical"):
            self.assertIn(word, out)
        s = json.loads(self.ok("plan", *self.BATCHES, *gpu, "daha", "--staleness", 2, "--json").out)["schedule"]
        self.assertEqual(s["staleness"], 2)
        for name, one in s["schedules"].items():
            self.assertGreaterEqual(one["gap"], -1e-9, name)
            self.assertGreaterEqual(one["predicted_s"], s["schedules"]["daha"]["predicted_s"] * (1 - 1e-9), name)
        self.assertEqual({b["batch"] for b in s["batches"]}, set(range(len(s["batches"]))))
        self.ok("plan", *self.BATCHES, "--plan", "off", "--schedule", "daha", "-o", "plan.json")
        self.assertEqual(json.loads(self.read("plan.json"))["schedule"]["devices"], ["cpu"])
        self.assertIn("--schedule daha places whole batches", self.ok(
            "plan", *self.BATCHES, "--plan", "off", "--schedule", "daha").out)
        self.ok("train", *self.BATCHES, "--plan", "plan.json", "--epochs", 1, "--no-checkpoint")

    def test_runs_follow_the_schedule_of_a_plan_file(self):
        self.ok("profile", *self.BATCHES, "--seconds", 0.2, "-q")
        self.ok("plan", *self.BATCHES, "--plan", "off", "--schedule", "daha", "-o", "plan.json")
        planned = json.loads(self.read("plan.json"))["batches"]
        self.assertEqual(set(planned["computed"]), {"d"})
        self.assertGreater(planned["predicted_s"], 0)
        run = ("train", *self.BATCHES, "--epochs", 2, "--json", "--schedule")
        result = self.ok(*run, "daha", "--plan", "plan.json", "--checkpoint", "run")
        self.assertIn("schedule daha: ", result.err)
        schedule = json.loads(result.out)["schedule"]
        self.assertEqual((schedule["name"], schedule["computed"]["host"]), ("daha", 0))
        self.assertEqual(schedule["pattern"]["computed"], planned["computed"])
        batches = schedule["computed"]["device"]
        self.assertGreater(schedule["predicted_epoch_ms"], 0)
        self.assertEqual(json.loads(self.read("run/plan.json"))["batches"], planned)
        # Places are also followed where the plan file has others: the host then computes beside the
        # CPU of the run.
        file = json.loads(self.read("plan.json"))
        file["batches"]["computed"] = "hd" * (len(planned["computed"]) // 2) + "d" * (len(planned["computed"]) % 2)
        (self.dir / "placed.json").write_text(json.dumps(file))
        other = json.loads(self.ok(*run, "daha", "--plan", "placed.json", "--staleness", 1, "--no-checkpoint").out)
        plain = json.loads(self.ok(*run, "in-turn", "--plan", "plan.json", "--staleness", 1, "--no-checkpoint").out)
        self.assertGreater(other["schedule"]["computed"]["host"], 0)
        self.assertEqual(sum(other["schedule"]["computed"].values()), batches)
        self.assertEqual(other["loss"], plain["loss"])
        self.refused("train", *self.BATCHES, "--schedule", "daha", "--deterministic", says="--deterministic")

    def test_schedules_are_timed_side_by_side(self):
        bench = ("bench", "daha", "--data", "twin:cora@0.2", "--hidden", 8, "--fanout", "3,3", "--batch-size", 20,
                 "--threads", 2, "--plan", "off")
        out = self.ok(*bench, "--models", "sage,gcn", "--rounds", 2, "--device", "cpu", "--json", "t.json").out
        rows = json.loads(self.read("t.json"))
        self.assertEqual([(r["model"], r["schedule"]) for r in rows],
                         [(m, s) for m in ("sage", "gcn") for s in ("auto", "daha", "in-turn", "cpu-only")])
        for row in rows:
            self.assertIn(row["schedule"], out)
            self.assertGreater(row["epoch_ms"], 0)
            self.assertGreater(row["bound_ms"], 0)
            self.assertIsNone(row["speedup"])
            self.assertEqual(row["computed_on_host"], 0)
            if row["schedule"] == "auto":
                self.assertIsNone(row["predicted_ms"])
                continue
            self.assertGreaterEqual(row["predicted_ms"], row["bound_ms"] * 0.99)
            self.assertGreaterEqual(row["gap_percent"], 0)
        self.refused(*bench, "--schedules", "salient", "--device", "cpu", says="needs a GPU")
        self.refused(*bench, "--schedules", "dahaa", says="daha")

    def test_gpus_draw_only_what_they_can(self):
        batches = (*self.BATCHES, "--sampler", "layer", "--fanout", "40,40")
        gpu = ("--device", "cuda:typical", "--schedule")
        self.ok("profile", *batches, "--seconds", 0.2, "-q")
        shown = json.loads(self.ok("plan", *batches, *gpu, "salient", "--json").out)["schedule"]
        self.assertIn("salient", shown["schedules"])
        for name in ("all-gpu", "bytegnn"):
            self.assertNotIn(name, shown["schedules"])
            self.refused("plan", *batches, *gpu, name, says="sampling on the device does not support the layer sampler")

    def test_are_refused_where_they_mean_nothing(self):
        self.refused("plan", *TWIN, "--model", "sage", "--schedule", "daha", says="--mode minibatch")
        self.refused("plan", *self.BATCHES, "--staleness", 1000, says="too much for epochs of")
        self.refused("plan", *TWIN, "--model", "sage", "--staleness", 1, says="--mode minibatch")
        self.refused("plan", *self.BATCHES, "--device", "cpu", "--schedule", "salient", says="needs a GPU")
        self.refused("plan", *self.BATCHES, "--schedule", "dahaa", says="daha")
        self.refused("profile", "--model", "sage", says="--data")
        self.refused("profile", *TWIN, "--model", "sage", says="--mode minibatch")


if __name__ == "__main__":
    cli.main()
