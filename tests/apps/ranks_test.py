#!/usr/bin/env python3
"""Trains one graph on several devices: as threads of one process (--devices), and as processes
that mpirun has started. Losses must be those of one device."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

import cli

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
MPIRUN = shutil.which("mpirun")
SOON = 10  # seconds after which all processes must have ended


def devices(count):
    return ("--devices", ",".join(["cpu:1"] * count))


class RankTest(cli.CliTest):
    def environment(self):
        return dict(super().environment(), NACRE_CACHE=str(self.dir / "cache"))

    def metrics(self, run):
        return [json.loads(line) for line in self.read(run + "/metrics.jsonl").splitlines()]

    def train(self, run, *arguments):
        return self.ok("train", "-q", "--json", "--checkpoint", run, *arguments).last_json()

    def same(self, run, other, first=10):
        """Compares two runs: the losses of the first epochs, and the scores of the last one."""
        got, want = self.metrics(run), self.metrics(other)
        self.assertEqual([m["epoch"] for m in got], [m["epoch"] for m in want])
        for a, b in list(zip(got, want))[:first]:
            self.assertLess(abs(a["loss"] - b["loss"]), 1e-5 * abs(b["loss"]), f"{run}, epoch {a['epoch']}")
        for split in ("train", "val", "test"):
            self.assertAlmostEqual(got[-1][split], want[-1][split], delta=0.01, msg=f"{run}, {split}")

    def wait_for_epochs(self, process, run, count):
        """Waits until a run has written a checkpoint and the metrics of some epochs."""
        folder = self.dir / run
        patience = time.monotonic() + 60
        while not ((folder / "metrics.jsonl").exists() and len(self.metrics_so_far(run)) >= count and
                   list(folder.glob("epoch-*/state.json"))):
            self.assertIsNone(process.poll(), self.read("stderr.txt").decode())
            self.assertLess(time.monotonic(), patience)
            time.sleep(0.02)

    def metrics_so_far(self, run):
        return self.read(run + "/metrics.jsonl").splitlines()


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
        self.train("apart", *common, *devices(3), "--no-overlap")
        self.same("apart", "one")
        self.ok("train", "--resume", "apart", "--epochs", 12)
        self.assertIs(json.loads(self.read("apart/config.json"))["execution"]["no_overlap"], True)

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
        self.assertIsNone(self.train("one", *GCN, "--epochs", 1, "--device", "cpu")["ranks"])

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
        self.refused(*two, "--shares", "1,2,3", says="has 3 numbers for 2 devices")
        self.refused(*two, "--shares", "1,", says="'' is not a number")
        self.refused(*two, "--shares", "1,-1", says="-1 is not a share")
        self.refused(*two, "--shares", "0,0", says="all shares are 0")
        self.refused(*two, "--partition", "mettis", says="--partition: unknown method 'mettis' (did you mean 'metis'")
        self.refused(*two, "--halo-rows", "lat", says="did you mean 'late'")
        for seconds in ("0", "-1", "nan", "inf"):
            self.refused(*two, f"--comm-timeout={seconds}", says="--comm-timeout")
        self.refused(*two, "--mode", "minibatch", says="not in mini-batches")
        self.refused(*two, "--device", "cpu", says="--device: is for one device, but --devices names several")
        self.refused(*two, "--threads", 2, says="--threads: is for one device")
        self.refused(*two, "--no-plan-cache", says="plans for several devices are made by rules")
        self.refused(*two, "--precision", "bf16", says="needs a GPU")
        for option in (("--shares", "1,2"), ("--partition", "metis"), ("--halo-rows", "late"), ("--comm-timeout", 3),
                       ("--no-overlap",)):
            self.refused(*train, *option, says="is for several devices, but the run has one")
        pairs = [(user, item) for user in range(12) for item in range(8) if (user + item) % 3]
        self.write("users.npz", cli.npz({"train_user": cli.npy([u for u, _ in pairs]), "train_item": cli.npy([i for _, i in pairs]),
                                         "test_user": cli.npy([0]), "test_item": cli.npy([0])}))
        self.refused("train", "--data", "users.npz", "--model", "lightgcn", "--no-checkpoint", *devices(2),
                     says="recommenders train on one device")
        self.write("edges.txt", "".join(f"{v} {(v + 1) % 20}\n" for v in range(20)))
        self.write("y.txt", "".join(f"{v % 2}\n" for v in range(20)))
        self.refused("train", "--data", "edges.txt", "--labels", "y.txt", "--features", "learned", "--split",
                     "random:0.6/0.2/0.2", "--model", "gcn", "--no-checkpoint", *devices(2), says="learned features")


@unittest.skipIf(MPIRUN is None, "mpirun is not installed")
class Processes(RankTest):
    def setUp(self):
        if cli.SANITIZED or not (pathlib.Path(cli.PROGRAM).parent / "libnacre_mpi.so").exists():
            self.skipTest("this build has no plug-in for MPI, or is built with sanitizers")
        super().setUp()

    def environment(self):
        return dict(super().environment(), TERM="dumb")

    def command(self, ranks, *arguments):
        return [MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), cli.PROGRAM,
                *map(str, arguments)]

    def launch(self, ranks, *arguments):
        start = time.monotonic()
        done = subprocess.run(self.command(ranks, *arguments), cwd=self.dir, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        return cli.Result(done.returncode, done.stdout, done.stderr, time.monotonic() - start)

    def launched(self, ranks, *arguments):
        result = self.launch(ranks, *arguments)
        self.assertEqual(result.code, 0, f"{arguments}\n{result}")
        return result

    def start_launched(self, ranks, *arguments):
        """Starts processes, and returns the launcher's."""
        self.addCleanup(lambda: process.poll() is None and process.kill())
        with open(self.dir / "stdout.txt", "wb") as out, open(self.dir / "stderr.txt", "wb") as err:
            process = subprocess.Popen(self.command(ranks, *arguments), cwd=self.dir, env=self.environment(),
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        return process

    def process_of(self, launcher, rank):
        """Returns the id of the process that is a rank."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                words = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if parent == launcher.pid and f"OMPI_COMM_WORLD_RANK={rank}".encode() in words:
                return int(folder.name)
        self.fail(f"rank {rank} has no process")

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
        self.assertIsNone(self.launched(1, *common).last_json()["ranks"])

    def test_what_is_refused(self):
        train = ("train", *GCN, "--no-checkpoint")
        for arguments, says in ((("train", "--data", "absent.npz", "--model", "gcn"), "absent.npz"),
                                ((*train, "--devices", "cpu:1"), "names 1 device for 2 processes"),
                                ((*train, "--shares", "1,2,3"), "has 3 numbers for 2 devices"),
                                ((*train, *devices(2), "--threads", 1), "--threads"),
                                ((*train, "--mode", "minibatch"), "not in mini-batches"),
                                ((*train, "--seeds", "0,1"), "--seeds")):
            result = self.launch(2, *arguments)
            self.assertEqual(result.code, 2, f"{arguments}\n{result}")
            errors = [line for line in result.err.splitlines() if line.startswith("nacre: ")]
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
        errors = [line for line in self.read("stderr.txt").decode().splitlines() if line.startswith("nacre: ")]
        self.assertEqual(len(errors), 1, self.read("stderr.txt").decode())
        self.assertIn("rank 1", errors[0])

    def test_interrupted(self):
        process = self.start_launched(2, "train", *GCN, "--epochs", 100000, "--checkpoint", "run", "--checkpoint-every", 1)
        self.wait_for_epochs(process, "run", 3)
        process.send_signal(signal.SIGINT)
        self.assertNotEqual(process.wait(timeout=SOON), 0)
        done = len(self.metrics_so_far("run"))
        self.ok("train", "--resume", "run", "--epochs", done + 2, "--device", "cpu")


if __name__ == "__main__":
    cli.main()
