#!/usr/bin/env python3
"""Trains one graph on several devices: as threads of one process (--devices), and as processes
that mpirun has started. Losses must be those of one device."""
import json
import os
import pathlib
import shutil
import signal
import unittest

import cli
from launched import SOON, LaunchedTest, RankTest

DATA = ("--data", "twin:cora@0.2")
MODELS = {
    "gcn": ("--model", "gcn", "--hidden", 16, "--dropout", 0.3),
    # Adam would turn the rounding of a gradient that should be zero, that of a bias before batch
    # normalisation, into other scores.
    "sage": ("--model", "sage", "--hidden", 12, "--norm", "batch", "--optimizer", "sgd", "--lr", 0.1),
    "gat": ("--model", "gat", "--hidden", 8, "--heads", 2, "--attention-dropout", 0.2),
    "rgcn": ("--model", "rgcn", "--hidden", 8, "--relations", 3, "--num-bases", 2),
    "gin": ("--model", "gin", "--hidden", 12, "--norm", "layer"),
    "sage-lstm": ("--model", "sage-lstm", "--hidden", 6),
}
GCN = (*DATA, *MODELS["gcn"])


def devices(count):
    return ("--devices", ",".join(["cpu:1"] * count))


class Threads(RankTest):
    def test_same_losses_as_one_device(self):
        for name, options in MODELS.items():
            common = (*DATA, *options, "--epochs", 12, "--seed", 3)
            one = self.train(f"{name}-1", *common, "--device", "cpu")
            for count in (2, 3, 4):
                with self.subTest(model=name, ranks=count):
                    several = self.train(f"{name}-{count}", *common, *devices(count))
                    self.same(f"{name}-{count}", f"{name}-1")
                    self.assertAlmostEqual(several["test_acc"], one["test_acc"], delta=0.01)

    def test_every_way_to_deal_out_nodes_and_to_send_rows(self):
        common = (*DATA, *MODELS["gat"], "--layers", 3, "--epochs", 10)
        self.train("one", *common, "--device", "cpu")
        rows = ("auto", "late", "early", "narrow")
        for i, method in enumerate(("metis", "fennel", "range", "random")):
            run = f"{method}-{rows[i]}"
            self.train(run, *common, *devices(3), "--partition", method, "--halo-rows", rows[i], "--comm-timeout", 30)
            self.same(run, "one")
        for rows in ("columns", "sums"):
            for name in ("gcn", "gat"):
                run = f"{name}-{rows}"
                model = (*DATA, *MODELS[name], "--epochs", 10)
                self.train(f"{run}-one", *model, "--device", "cpu")
                self.train(run, *model, *devices(3), "--halo-rows", rows)
                self.same(run, f"{run}-one")
        # Every rank has other columns than rank 0, whose plan is written.
        self.train("file", *GCN, "--epochs", 10, *devices(3), "--plan", "gcn-columns/plan.json")
        self.same("file", "gcn-columns")
        self.train("apart", *common, *devices(3), "--no-overlap")
        self.same("apart", "one")
        self.ok("train", "--resume", "apart", "--epochs", 12)
        self.assertIs(json.loads(self.read("apart/config.json"))["execution"]["no_overlap"], True)

    def test_rows_are_computed_while_those_of_other_devices_travel(self):
        on = ("--data", "twin:arxiv@0.05", "--model", "gcn", "--hidden", 64, *devices(2))
        losses = []
        for without in ((), ("--no-overlap",)):
            plan = json.loads(self.ok("plan", *on, *without, "--json").out)
            early = [kernel["early"] for kernel in plan["kernels"] if "early" in kernel]
            calls = plan["several_devices"]["calls"]
            self.assertEqual([], early) if without else self.assertGreater(len(early), 0)
            self.assertEqual(any(call["early_rows"] for call in calls), not without)
            text = self.ok("plan", *on, *without, "-v").out
            self.assertEqual("while rows of other ranks travel" in text, not without)
            run = self.ok("train", *on, *without, "--epochs", 3, "--no-checkpoint", "--json", "-q").last_json()
            losses.append(run["loss"])
        self.assertEqual(*losses)  # the losses agree to the last bit

    def test_metrics_of_whole_splits(self):
        # A score that is no mean over nodes needs the predictions of all ranks.
        for metric in ("macro_f1", "roc_auc"):
            common = (*GCN, "--epochs", 5, "--metric", metric, "--select", "loss")
            self.train(f"one-{metric}", *common, "--device", "cpu")
            self.train(f"two-{metric}", *common, *devices(2))
            self.same(f"two-{metric}", f"one-{metric}")

    def test_json(self):
        made = self.train("run", *GCN, "--epochs", 10, "--devices", "cpu:1,cpu:2", "--shares", "1,3")
        self.assertEqual(made["device"], "cpu:1,cpu:2")
        self.assertEqual(made["plan_source"], "rules")
        first, second = made["ranks"]
        self.assertEqual((first["device"], second["device"]), ("cpu:1", "cpu:2"))
        self.assertEqual((first["share"], second["share"]), (0.25, 0.75))
        self.assertLess(1.5 * first["edges"], second["edges"])
        self.assertGreater(first["halo_nodes"], 0)
        for rank in made["ranks"]:
            for key in ("nodes", "edges", "planned_mb", "sent_mb", "step_s"):
                self.assertGreater(rank[key], 0, key)
            for key in ("kernels_ms", "computing_s", "communication_s", "reduction_s", "waiting_s"):
                self.assertGreaterEqual(rank[key], 0, key)
            self.assertAlmostEqual(rank["computing_s"] + rank["communication_s"] + rank["waiting_s"], rank["step_s"])
            self.assertLessEqual(rank["reduction_s"], rank["communication_s"])
            self.assertEqual(rank["step_received_bytes"], rank["step_planned_bytes"])
        one = self.train("one", *GCN, "--epochs", 1, "--device", "cpu")
        self.assertIsNone(one["ranks"])
        self.assertIsNone(one["halo_rows"])

    def test_rows_that_travel(self):
        common = (*GCN, "--layers", 3, "--epochs", 2, *devices(3))
        made = self.train("auto", *common)
        chosen = made["halo_rows"]
        self.assertEqual(set(chosen["one_choice"]) - {"sums"}, {"late", "narrow", "early", "columns"})
        self.assertEqual(max(r["step_received_bytes"] for r in made["ranks"]), chosen["received_bytes"])
        for rows, cost in chosen["one_choice"].items():
            fixed = self.train(rows, *common, "--halo-rows", rows)
            self.assertEqual({s["rows"] for s in fixed["halo_rows"]["sites"]}, {rows})
            self.assertAlmostEqual(fixed["halo_rows"]["predicted_ms"], cost["predicted_ms"])
            self.assertEqual(max(r["step_received_bytes"] for r in fixed["ranks"]), cost["received_bytes"])
            # Columns must be predicted to be much faster before they are chosen.
            if rows != "columns":
                self.assertGreaterEqual(cost["predicted_ms"], chosen["predicted_ms"])
        for site in chosen["sites"]:
            self.assertRegex(site["site"], r"^layer \d (forward|backward)$")
            for cost in site.get("lost", {}).values():
                self.assertGreaterEqual(cost["predicted_ms"], chosen["predicted_ms"])
        self.assertEqual(json.loads(self.read("auto/plan.json"))["placement"], chosen)

    def test_text_for_people(self):
        result = self.ok("train", *GCN, "--epochs", 12, "--no-checkpoint", *devices(2))
        for line in ("rank 0 (cpu:1): ", "rank 1 (cpu:1): "):
            self.assertIn(line, result.out)
            self.assertIn("note: " + line, result.err)
        self.assertRegex(result.err, "shares stay as they are|work is moved between ranks")
        short = self.ok("train", *GCN, "--epochs", 9, "--no-checkpoint", *devices(2))
        self.assertNotRegex(short.err, "shares stay as they are|work is moved between ranks")
        named = self.ok("train", *GCN, "--epochs", 12, "--no-checkpoint", *devices(2), "--shares", "1,1")
        self.assertNotRegex(named.err, "shares stay as they are|work is moved between ranks")

    def test_shares_by_rules(self):
        common = ("train", *GCN, "--epochs", 12, "--no-checkpoint", "--devices", "cpu:1,cpu:3", "--json")
        for rule, first, says in (("uniform", 0.5, "all devices have equal shares: cpu:1 50.0 %, cpu:3 50.0 %"),
                                  ("cores", 0.25, "shares follow the number of threads or multiprocessors: cpu:1 25.0 %"),
                                  ("Cores", 0.25, "shares follow")):
            result = self.ok(*common, "--shares", rule)
            self.assertEqual(result.last_json()["ranks"][0]["share"], first)
            self.assertIn(says, result.err)
            self.assertNotRegex(result.err, "shares stay as they are|work is moved between ranks")
            for rank in result.last_json()["ranks"]:
                self.assertGreater(rank["kernels_ms"], 0)
                self.assertIsNone(rank["predicted_kernels_ms"])
        result = self.ok(*common, "--shares", "auto")
        self.assertIn("first shares follow the number of threads", result.err)
        self.assertRegex(result.err, "shares stay as they are|work is moved between ranks")
        if "MHz" in pathlib.Path("/proc/cpuinfo").read_text():
            for rule, first in (("frequency", 0.5), ("flops", 0.25)):
                self.assertAlmostEqual(self.ok(*common, "--shares", rule).last_json()["ranks"][0]["share"], first, 6)
        self.train("run", *GCN, "--epochs", 2, *devices(2), "--shares", "uniform")
        self.assertEqual(json.loads(self.read("run/config.json"))["execution"]["shares"], "uniform")
        self.assertIn("all devices have equal shares", self.ok("train", "--resume", "run", "--epochs", 4).err)

    def test_stored_models_give_first_shares(self):
        model = ("--layers", 2, "--hidden", 16, "--threads", 1)
        self.ok("bench", "nugnn", "--figures", "t7", "--models", "gcn", "--graphs", "twin:cora@0.3,twin:pubmed@0.1",
                *model, "--seconds", 1, "--folds", 2, "--out", "b", "-q")
        common = ("train", "--data", "twin:pubmed", "--model", "gcn", *model[:4], "--epochs", 12, "--no-checkpoint", "--json",
                  *devices(2))
        result = self.ok(*common)
        self.assertIn("stored performance models: the slowest rank takes", result.err)
        for rank in result.last_json()["ranks"]:
            self.assertGreater(rank["predicted_kernels_ms"], 0)
            self.assertGreater(rank["kernels_ms"], 0)
        self.assertNotIn("stored performance models", self.ok(*common, "--norm", "layer").err)

    def test_times_of_ranks_in_the_metrics(self):
        self.train("run", *GCN, "--epochs", 8, *devices(2), "--shares", "1,1")
        for line in self.metrics("run"):
            self.assertEqual([rank["steps"] for rank in line["ranks"]], [1, 1])
            for r, rank in enumerate(line["ranks"]):
                split = [rank[key] for key in ("computing_s", "communication_s", "waiting_s")]
                self.assertGreater(sum(split), 0)
                self.assertLessEqual(rank["reduction_s"], rank["communication_s"] + 1e-9)
                if r == 0:  # other ranks may end a step after rank 0 has ended it
                    self.assertLessEqual(sum(split), line["seconds"] * 1.01 + 1e-4)
        self.train("one", *GCN, "--epochs", 2, "--device", "cpu")
        self.assertNotIn("ranks", self.metrics("one")[0])

    def test_ranks_without_nodes(self):
        self.train("one", *GCN, "--epochs", 10, "--device", "cpu")
        made = self.train("run", *GCN, "--epochs", 10, *devices(3), "--shares", "1,0,1", "--partition", "range")
        self.assertEqual(made["ranks"][1]["nodes"], 0)
        self.same("run", "one")
        self.train("single", *GCN, "--epochs", 10, "--devices", "CPU")
        self.same("single", "one")

    def test_the_same_bits_every_time(self):
        for run in ("first", "second"):
            self.train(run, *GCN, "--epochs", 20, *devices(3), "--shares", "2,1,1")
        self.assertEqual(self.read("first/model.safetensors"), self.read("second/model.safetensors"))

    def test_resumed_on_other_devices(self):
        common = (*GCN, "--checkpoint-every", 2)
        self.train("one", *common, "--epochs", 10, "--device", "cpu")
        cases = {
            "on one device": (devices(2), ("--device", "cpu")),
            "on threads of one device": (devices(2), ("--threads", 2)),
            "on three ranks": ((*devices(2), "--shares", "1,2"), devices(3)),
            "with other shares": ((*devices(2), "--shares", "1,2"), (*devices(2), "--shares", "2,1")),
            "as before": ((*devices(2), "--shares", "1,2"), ()),
            "from one device": (("--device", "cpu", "--threads", 2), devices(3)),
        }
        for name, (before, after) in cases.items():
            with self.subTest(resumed=name):
                self.train(name, *common, "--epochs", 5, *before)
                result = self.ok("train", "--resume", name, "--epochs", 10, *after)
                self.assertIn("resuming after epoch 5", result.err)
                self.same(name, "one")
                settings = json.loads(self.read(name + "/config.json"))["execution"]
                named = dict(zip(after[::2], after[1::2])).get("--devices")
                if named:
                    self.assertEqual(settings["devices"], named.split(","))
                elif after:
                    self.assertNotIn("devices", settings)
        self.train("twice", *common, "--epochs", 5, *devices(2))
        self.ok("train", "--checkpoint", "twice", "--resume", *common, "--epochs", 10, *devices(4))
        self.same("twice", "one")

    def test_interrupted(self):
        process = self.start("train", *GCN, "--epochs", 100000, *devices(2), "--checkpoint", "run", "--checkpoint-every", 1)
        self.wait_for_epochs(process, "run", 3)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130, self.read("stderr.txt").decode())
        self.assertIn("nacre train --resume run", self.read("stderr.txt").decode())
        done = len(self.metrics_so_far("run"))
        for arguments in (devices(3), ("--device", "cpu")):
            self.assertIn(f"resuming after epoch {done}", self.ok("train", "--resume", "run", "--epochs", done + 2, *arguments).err)
            done += 2

    def test_evaluated_on_one_device(self):
        made = self.train("run", *GCN, "--epochs", 10, *devices(3))
        scored = self.ok("eval", "--checkpoint", "run", "--json", "-q").last_json()
        self.assertAlmostEqual(scored["test_acc"], made["test_acc"], delta=0.01)
        self.ok("predict", "--checkpoint", "run", "-o", "p.csv", "--scores")
        self.ok("predict", "--checkpoint", "run", "-o", "e.npy", "--embeddings")
        self.assertGreater(len(self.read("p.csv").splitlines()), 500)

    def test_several_seeds(self):
        made = self.ok("train", *GCN, "--epochs", 3, *devices(2), "--seeds", "0,1", "--no-checkpoint", "--json", "-q").last_json()
        self.assertEqual([len(run["ranks"]) for run in made["runs"]], [2, 2])

    def test_settings_of_a_file(self):
        self.write("run.toml", 'data = "twin:cora@0.2"\nmodel = "gcn"\nepochs = 2\ndevices = ["cpu:1", "cpu:1"]\nshares = [1, 2]\n')
        made = self.ok("train", "--config", "run.toml", "--no-checkpoint", "--json", "-q").last_json()
        self.assertEqual(made["device"], "cpu:1,cpu:1")
        self.assertAlmostEqual(made["ranks"][1]["share"], 2 / 3)

    def test_what_is_refused(self):
        train = ("train", *DATA, "--model", "gcn", "--no-checkpoint")
        two = (*train, *devices(2))
        for text, says in (("tpu", "'tpu' is no device"), ("cpu:1,,cpu:1", "'' is no device"),
                           ("cpu:1,cpu:1,", "'' is no device"), ("cpu:0", "'cpu:0'"), ("cpu:x,cpu:1", "'cpu:x'"),
                           ("cpu:-1", "'cpu:-1'"), ("cpu:99999", "'cpu:99999'"), ("", "names no device"),
                           (",".join(["cpu:1"] * 65), "names 65 devices"), ("cuda:0,cpu:1", "was not found"),
                           ("gpu:0,cpu:1", "was not found")):
            self.refused(*train, "--devices", text, says=says)
        self.refused(*train, "--devices", "cpu:1+cpu:1", says="names the devices of one process of mpirun")
        self.refused(*two, "--shares", "1,2,3", says="has 3 numbers for 2 devices")
        self.refused(*two, "--shares", "1,", says="'' is not a number")
        self.refused(*two, "--shares", "1,-1", says="-1 is not a share")
        self.refused(*two, "--shares", "unifrom", says="did you mean 'uniform'")
        self.refused(*two, "--shares", "0,0", says="all shares are 0")
        self.refused(*two, "--partition", "mettis", says="--partition: unknown method 'mettis' (did you mean 'metis'")
        self.refused(*two, "--halo-rows", "lat", says="did you mean 'late'")
        for seconds in ("0", "-1", "nan", "inf"):
            self.refused(*two, f"--comm-timeout={seconds}", says="--comm-timeout")
        self.refused(*two, "--device", "cpu", says="--device: is for one device, but --devices names several")
        self.refused(*two, "--threads", 2, says="--threads: is for one device")
        self.refused(*two, "--no-plan-cache", says="plans for several devices are made by rules")
        self.refused(*two, "--precision", "bf16", says="needs a GPU")
        self.refused(*two, "--precision", "f32,bf16", says="'bf16' needs a GPU, but is given for cpu:1")
        self.refused(*two, "--precision", "f32,f32,f32", says="has 3 names for 2 devices")
        self.refused(*two, "--precision", "f32,b16", says="did you mean 'bf16'")
        self.refused(*train, "--precision", "f32,f32", "--device", "cpu", says="the run has one device")
        for option in (("--shares", "1,2"), ("--partition", "metis"), ("--halo-rows", "late"), ("--comm-timeout", 3),
                       ("--no-overlap",)):
            self.refused(*train, *option, says="is for several devices, but the run has one")
        for arguments in (train, two):
            self.refused(*arguments, "--comm", "staged", says="is for processes that mpirun or srun has started")
        pairs = [(user, item) for user in range(12) for item in range(8) if (user + item) % 3]
        self.write("users.npz", cli.npz({"train_user": cli.npy([u for u, _ in pairs]), "train_item": cli.npy([i for _, i in pairs]),
                                         "test_user": cli.npy([0]), "test_item": cli.npy([0])}))
        self.refused("train", "--data", "users.npz", "--model", "lightgcn", "--no-checkpoint", *devices(2),
                     says="recommenders train on one device")
        self.write("edges.txt", "".join(f"{v} {(v + 1) % 20}\n" for v in range(20)))
        self.write("y.txt", "".join(f"{v % 2}\n" for v in range(20)))
        self.refused("train", "--data", "edges.txt", "--labels", "y.txt", "--features", "learned", "--split",
                     "random:0.6/0.2/0.2", "--model", "gcn", "--no-checkpoint", *devices(2), says="learned features")


class Processes(LaunchedTest):
    def test_same_losses_as_one_process(self):
        for name in ("gcn", "gat"):
            common = (*DATA, *MODELS[name], "--epochs", 12)
            self.train(f"{name}-one", *common, "--device", "cpu")
            for ranks in (2, 3):
                result = self.launched(ranks, "train", *common, "--checkpoint", f"{name}-{ranks}", "--json", "--threads", 1)
                self.assertEqual(len(result.last_json()["ranks"]), ranks)  # only one process prints
                self.assertEqual(result.err.count("note: rank 0 (cpu:1)"), 1, result)
                self.same(f"{name}-{ranks}", f"{name}-one")

    def test_options(self):
        common = ("train", *GCN, "--epochs", 3, "--no-checkpoint", "--json", "-q")
        made = self.launched(2, *common, "--shares", "1,3", "--partition", "range", "--comm-timeout", 20).last_json()
        self.assertEqual([rank["share"] for rank in made["ranks"]], [0.25, 0.75])
        made = self.launched(2, *common, "--devices", "cpu:1,cpu:2").last_json()
        self.assertEqual(made["device"], "cpu:1,cpu:2")
        made = self.launched(2, *common, "--devices", "cpu:1,cpu:3", "--shares", "cores").last_json()
        self.assertEqual([rank["share"] for rank in made["ranks"]], [0.25, 0.75])
        self.assertIsNone(self.launched(1, *common).last_json()["ranks"])

    def test_several_ranks_in_each_process(self):
        for name, devices in (("gcn", "cpu:1+cpu:1"), ("gat", "cpu:1+cpu:1,cpu:1"), ("sage", "cpu:1,cpu:1+cpu:1+cpu:1")):
            common = (*DATA, *MODELS[name], "--epochs", 12)
            self.train(f"{name}-one", *common, "--device", "cpu")
            result = self.launched(2, "train", *common, "--devices", devices, "--checkpoint", name, "--json")
            made = result.last_json()
            every = devices if "," in devices else f"{devices},{devices}"
            self.assertEqual(made["device"], every.replace("+", ","))
            self.assertEqual(result.err.count("note: rank 0 (cpu:1)"), 1, result)
            for rank in made["ranks"]:
                self.assertGreater(rank["sent_mb"], 0)
                self.assertEqual(rank["step_received_bytes"], rank["step_planned_bytes"])
            self.same(name, f"{name}-one")
            self.assertEqual(json.loads(self.read(name + "/config.json"))["execution"]["devices"], every.split(","))
        # The run continues on the same groups, and on others.
        self.launched(2, "train", "--resume", "gat", "--epochs", 14)
        self.launched(3, "train", "--resume", "gat", "--epochs", 16)
        self.ok("train", "--resume", "sage", "--epochs", 14)
        self.ok("train", "--resume", "gat", "--epochs", 18, "--device", "cpu")
        result = self.launched(2, "train", *GCN, "--epochs", 14, "--no-checkpoint", "--json", "--devices", "cpu:1+cpu:1",
                               "--shares", "4,1,1,1")
        self.assertEqual([round(rank["share"], 3) for rank in result.last_json()["ranks"]], [0.571, 0.143, 0.143, 0.143])

    def test_work_is_moved_between_groups(self):
        common = (*GCN, "--epochs", 14)
        self.train("one", *common, "--device", "cpu")
        self.launched(2, "train", *common, "--checkpoint", "moved", "--devices", "cpu:1+cpu:1")
        self.same("moved", "one")

    def test_a_killed_group_ends_the_run(self):
        for how in (signal.SIGKILL, signal.SIGSTOP):
            process = self.start_launched(2, "train", *GCN, "--epochs", 100000, "--checkpoint", how.name,
                                          "--checkpoint-every", 1, "--comm-timeout", 2, "--devices", "cpu:1+cpu:1")
            self.wait_for_epochs(process, how.name, 3)
            os.kill(self.process_of(process, 1), how)
            self.assertNotEqual(process.wait(timeout=SOON + 5), 0)
            self.ok("train", "--resume", how.name, "--epochs", len(self.metrics_so_far(how.name)) + 2, "--device", "cpu")
        errors = self.errors(self.read("stderr.txt").decode())
        self.assertEqual(len(errors), 1, errors)
        self.assertRegex(errors[0], "rank [23]")

    def test_a_rank_without_memory_ends_the_run(self):
        common = ("train", "--data", "twin:arxiv@0.1", "--model", "gcn", "--hidden", 256, "--layers", 3, "--epochs", 1,
                  "--no-checkpoint", "--json", "-q", "--threads", 1, "--shares", "1,20")
        made = self.launched(2, *common).last_json()
        # The limit is enough memory for the first process, but not for the second one.
        first, second = (rank["planned_mb"] for rank in made["ranks"])
        self.assertGreater(second, 2 * first)
        result = self.launch(2, *common, "--memory-limit", f"{int(made['planned_mb'])}M")
        self.assertNotEqual(result.code, 0, result)
        errors = self.errors(result.err)
        self.assertEqual(len(errors), 1, result)
        self.assertRegex(errors[0], "rank 1.* memory|memory: ", result)
        self.assertLess(result.seconds, SOON + 5, result)

    def test_what_is_refused(self):
        train = ("train", *GCN, "--no-checkpoint")
        for arguments, says in ((("train", "--data", "absent.npz", "--model", "gcn"), "absent.npz"),
                                ((*train, "--devices", "cpu:1"), "names 1 device for 2 processes"),
                                ((*train, "--shares", "1,2,3"), "has 3 numbers for 2 devices"),
                                ((*train, "--devices", "cpu:1+cpu:1,cpu:1,cpu:1"), "names the devices of 3 processes, but 2 were started"),
                                ((*train, "--devices", "cpu:1+tpu"), "'tpu' is no device"),
                                ((*train, "--devices", "cpu:1+"), "is no device"),
                                ((*train, "--devices", "cpu:1+cpu:1", "--comm", "nccl"), "one GPU each"),
                                ((*train, *devices(2), "--threads", 1), "--threads"),
                                ((*train, "--seeds", "0,1"), "--seeds")):
            result = self.launch(2, *arguments)
            self.assertEqual(result.code, 2, f"{arguments}\n{result}")
            errors = self.errors(result.err)
            self.assertEqual(len(errors), 1, f"{arguments}\n{result}")
            self.assertIn(says, errors[0])
            self.assertLess(result.seconds, SOON, f"{arguments}\n{result}")

    def test_a_killed_rank_ends_the_run(self):
        common = (*GCN, "--checkpoint-every", 1)
        for rank in (0, 1):
            run = f"run{rank}"
            process = self.start_launched(2, "train", *common, "--epochs", 100000, "--checkpoint", run, "--comm-timeout", 5)
            self.wait_for_epochs(process, run, 3)
            os.kill(self.process_of(process, rank), signal.SIGKILL)
            self.assertNotEqual(process.wait(timeout=SOON + 5), 0)
            done = len(self.metrics_so_far(run)) + 3
            # One process continues the run, and then other numbers of processes continue it.
            self.assertIn("resuming after epoch", self.ok("train", "--resume", run, "--epochs", done, "--device", "cpu").err)
            self.launched(3, "train", "--resume", run, "--epochs", done + 2)
            self.launched(2, "train", "--resume", run, "--epochs", done + 4, "--threads", 1)
            self.train("one", *GCN, "--epochs", done + 4, "--device", "cpu")
            self.same(run, "one")
            shutil.rmtree(self.dir / "one")

    def test_a_stopped_rank_ends_the_run(self):
        process = self.start_launched(2, "train", *GCN, "--epochs", 100000, "--checkpoint", "run", "--checkpoint-every", 1,
                                      "--comm-timeout", 2)
        self.wait_for_epochs(process, "run", 3)
        os.kill(self.process_of(process, 1), signal.SIGSTOP)
        self.assertNotEqual(process.wait(timeout=SOON + 2), 0)
        errors = self.errors(self.read("stderr.txt").decode())
        self.assertEqual(len(errors), 1, self.read("stderr.txt").decode())
        self.assertIn("rank 1", errors[0])

    def test_interrupted(self):
        process = self.start_launched(2, "train", *GCN, "--epochs", 100000, "--checkpoint", "run", "--checkpoint-every", 1)
        self.wait_for_epochs(process, "run", 3)
        process.send_signal(signal.SIGINT)
        self.assertNotEqual(process.wait(timeout=SOON), 0)
        done = len(self.metrics_so_far("run"))
        self.ok("train", "--resume", "run", "--epochs", done + 2, "--device", "cpu")


@unittest.skipIf(os.environ.get("NACRE_TEST_DEVICE") != "cuda", "NACRE_TEST_DEVICE is not cuda")
class GpuProcesses(LaunchedTest):
    """Tests processes on parts of one GPU and on the host. Rows travel through host memory."""

    gpu = True

    def test_same_losses_as_one_process(self):
        parts = {2: "cuda:0@8,cuda:0@8", 3: "cuda:0@8,cpu:1,cuda:0@8"}
        for name in ("gcn", "gat"):
            common = (*DATA, *MODELS[name], "--epochs", 12)
            self.train(f"{name}-one", *common, "--device", "cpu")
            for ranks, devices in parts.items():
                result = self.launched(ranks, "train", *common, "--checkpoint", f"{name}-{ranks}", "--json", "--devices",
                                       devices, "--shares", ",".join("32"[r % 2] for r in range(ranks)))
                made = result.last_json()
                self.assertEqual(made["device"], devices)
                for rank in made["ranks"]:
                    self.assertGreater(rank["sent_mb"], 0)
                    self.assertAlmostEqual(rank["computing_s"] + rank["communication_s"] + rank["waiting_s"], rank["step_s"])
                self.same(f"{name}-{ranks}", f"{name}-one")

    def test_several_ranks_in_each_process(self):
        common = (*DATA, *MODELS["gat"], "--epochs", 12)
        self.train("one", *common, "--device", "cpu")
        result = self.launched(2, "train", *common, "--checkpoint", "two", "--json", "--devices",
                               "cuda:0@8+cuda:0@8,cpu:1+cuda:0@8", "--shares", "2,1,1,2")
        self.assertIn("directly between the GPUs of a process", result.err)
        for rank in result.last_json()["ranks"]:
            self.assertEqual(rank["step_received_bytes"], rank["step_planned_bytes"])
        self.same("two", "one")

    def test_shares(self):
        # The run has so few epochs that no work is moved.
        common = ("train", *GCN, "--epochs", 9, "--no-checkpoint", "--json")
        # Every process knows only its own device, and yet all processes must cut the graph alike.
        made = self.launched(2, *common, "--devices", "cuda:0,cpu:4").last_json()
        self.assertGreater(made["ranks"][0]["share"], made["ranks"][1]["share"])
        result = self.launched(2, *common, "--devices", "cpu:1,cuda:0@8")
        self.assertIn("rank 0 (cpu:1) gets no nodes", result.err)
        self.assertEqual(result.last_json()["ranks"][0]["nodes"], 0)

    @unittest.skipIf("NACRE_EMULATOR_CACHE" not in os.environ, "the GPU is not emulated")
    def test_machines_with_other_numbers_of_gpus(self):
        # Only the second process has a second GPU.
        settings = [{"NACRE_EMULATOR_DEVICES": 1}, {"NACRE_EMULATOR_DEVICES": 2}]
        train = ("train", *GCN, "--epochs", 2, "--no-checkpoint", "--json", "-q")
        result = self.launch_unlike(settings, *train, "--devices", "cuda:0,cuda:1")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.last_json()["device"], "cuda:0,cuda:1")
        result = self.launch_unlike(settings, *train, "--devices", "cuda:1,cuda:0")
        self.assertNotEqual(result.code, 0, result)
        self.assertIn("'cuda:1' was not found", result.err)

    def test_work_is_moved(self):
        # The run cuts the graph anew and opens the GPUs again. Its losses must stay those of one
        # device.
        common = (*GCN, "--epochs", 14)
        self.train("one", *common, "--device", "cpu")
        self.launched(2, "train", *common, "--checkpoint", "two", "--devices", "cuda:0@8,cuda:0@8")
        self.same("two", "one")

    def test_links_between_gpus(self):
        # Two processes have emulated GPUs that count as two GPUs. On a machine with one real GPU,
        # both processes share it.
        common = (*DATA, *MODELS["gat"], "--epochs", 12)
        self.train("one", *common, "--device", "cpu")
        two = ("train", *common, "--devices", "cuda:0,cuda:0")
        result = self.launched(2, *two, "--checkpoint", "auto")
        self.same("auto", "one")
        linked = "rows travel from GPU to GPU by NCCL emulated" in result.err
        self.assertTrue(linked or "through the memory of the host: ranks 0 and 1 share a GPU" in result.err, result)
        result = self.launched(2, *two, "--checkpoint", "staged", "--comm", "staged")
        self.same("staged", "one")
        self.assertIn("through the memory of the host: --comm staged asks for it", result.err)
        result = self.launch(2, "train", *common, "--no-checkpoint", "--devices", "cuda:0,cpu:1", "--comm", "nccl")
        self.assertEqual(len(self.errors(result.err)), 1, result)
        self.assertIn("rank 1 cannot use NCCL: it computes on the host", result.err)
        if not linked:
            return
        for how in (signal.SIGKILL, signal.SIGSTOP):
            process = self.start_launched(2, *two, "--epochs", 100000, "--checkpoint", how.name, "--checkpoint-every", 1,
                                          "--comm-timeout", 3)
            self.wait_for_epochs(process, how.name, 3)
            os.kill(self.process_of(process, 1), how)
            self.assertNotEqual(process.wait(timeout=SOON + 3), 0)

    def test_what_is_refused(self):
        train = ("train", *GCN, "--no-checkpoint")
        for arguments, says in (((*train, "--devices", "cuda:0,cuda:9"), "'cuda:9' was not found"),
                                ((*train, "--device", "cuda"), "the machine of rank 0 has fewer GPUs than processes"),
                                ((*train, "--device", "cuda:0"), "names one device, but there are several processes")):
            result = self.launch(2, *arguments)
            self.assertEqual(len(self.errors(result.err)), 1, f"{arguments}\n{result}")
            self.assertIn(says, result.err)
            self.assertNotEqual(result.code, 0)
            self.assertLess(result.seconds, SOON + 10, f"{arguments}\n{result}")

    def test_a_killed_rank_ends_the_run(self):
        process = self.start_launched(2, "train", *GCN, "--epochs", 100000, "--checkpoint", "run", "--checkpoint-every", 1,
                                      "--comm-timeout", 5, "--devices", "cuda:0@8,cuda:0@8")
        self.wait_for_epochs(process, "run", 3)
        os.kill(self.process_of(process, 1), signal.SIGKILL)
        self.assertNotEqual(process.wait(timeout=SOON + 5), 0)
        self.ok("train", "--resume", "run", "--epochs", len(self.metrics_so_far("run")) + 2, "--device", "cpu")


if __name__ == "__main__":
    cli.main()
