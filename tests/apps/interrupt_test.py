#!/usr/bin/env python3
"""Kills or stops runs and resumes them until they are done. The weights must equal those of a
run left alone."""
import json
import random
import signal
import time

import cli

TWIN = ("--data", "twin:cora@0.3")
KILLS = 12  # the least number of kills in a case
CASES = {
    "gcn-adam": ("--model", "gcn", "--hidden", 32, "--dropout", 0.5, "--norm", "batch", "--weight-decay", 5e-4),
    "gat-adamw": ("--model", "gat", "--hidden", 16, "--heads", 4, "--dropout", 0.4, "--attention-dropout", 0.4,
                  "--optimizer", "adamw", "--weight-decay", 0.01),
    "sage-sgd": ("--model", "sage", "--hidden", 32, "--dropout", 0.3, "--optimizer", "sgd", "--lr", 0.1, "--momentum", 0.9),
    "sage-cosine": ("--model", "sage", "--aggr", "max", "--hidden", 16, "--norm", "layer", "--dropout", 0.5, "--lr-schedule",
                    "cosine", "--warmup", 3),
}


class Interrupted(cli.CliTest):
    def metrics(self, run):
        return [json.loads(line) for line in self.read(run + "/metrics.jsonl").splitlines()]

    def same_as_alone(self, run):
        self.assertEqual(self.read(run + "/model.safetensors"), self.read("alone/model.safetensors"))
        got, want = self.metrics(run), self.metrics("alone")
        self.assertEqual([m["epoch"] for m in got], [m["epoch"] for m in want])
        for a, b in zip(got, want):
            for key in ("loss", "lr", "train", "val", "test"):
                self.assertEqual(a.get(key), b.get(key), f"{key} of epoch {a['epoch']}")
        self.assertFalse([name for name in self.files() if "tmp" in name], "nothing temporary stays behind")

    def unfinished(self, run):
        folder = self.dir / run
        return {p.name for p in folder.iterdir() if p.name.startswith(".tmp-epoch-")} if folder.exists() else set()

    def kill_somewhere(self, process, noise, run, before):
        """Kills the process, half of the time at a random moment and half of the time while it
        writes a checkpoint. Returns False if the process ended before."""
        wait_for_write = noise.random() < 0.5
        deadline = time.monotonic() + noise.uniform(0.0, 0.6)
        patience = time.monotonic() + 20
        while process.poll() is None:
            now = time.monotonic()
            if (self.unfinished(run) - before if wait_for_write else now > deadline) or now > patience:
                process.kill()
                process.wait()
                return True
        return False

    def check_kills(self, name, seed):
        common = ("train", *TWIN, *CASES[name], "--epochs", 40)
        self.ok(*common, "--checkpoint", "alone")
        noise = random.Random(seed)
        kills = writes = runs = 0
        while kills < KILLS or writes < 2:
            run = f"run{runs}"
            runs += 1
            self.assertLess(runs, 50, "kills keep missing the run")
            while True:
                before = self.unfinished(run)
                process = self.start(*common, "--checkpoint", run, "--checkpoint-every", 1, "--resume")
                # After enough kills, processes of a case run to the end.
                enough = kills >= KILLS and writes >= 2
                if enough or not self.kill_somewhere(process, noise, run, before):
                    break
                kills += 1
                writes += bool(self.unfinished(run) - before)
            self.assertEqual(process.wait(timeout=120), 0, self.read("stderr.txt").decode())
            self.same_as_alone(run)
        print(f"{name}: {runs} runs, {kills} kills, {writes} while a checkpoint was being written", flush=True)

    def test_killed_gcn(self):
        self.check_kills("gcn-adam", 1)

    def test_killed_gat(self):
        self.check_kills("gat-adamw", 2)

    def test_killed_sage(self):
        self.check_kills("sage-sgd", 3)

    def test_killed_cosine(self):
        self.check_kills("sage-cosine", 4)

    def test_asked_to_stop(self):
        common = ("train", *TWIN, *CASES["gcn-adam"], "--epochs", 3000, "--eval-every", 1000, "--json")
        short = ("train", *TWIN, *CASES["gcn-adam"], "--epochs", 60, "--select", "last", "--json")
        self.ok(*short, "--checkpoint", "alone")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            run = f"run{int(number)}"
            process = self.start(*common, "--checkpoint", run)
            patience = time.monotonic() + 60
            metrics = self.dir / run / "metrics.jsonl"
            while not (metrics.exists() and metrics.stat().st_size > 0):
                self.assertIsNone(process.poll(), self.read("stderr.txt").decode())
                self.assertLess(time.monotonic(), patience)
                time.sleep(0.01)
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=60), 128 + number)
            stderr = self.read("stderr.txt").decode()
            self.assertIn(f"nacre train --resume {run}", stderr)
            j = json.loads(self.read("stdout.txt").decode().strip().splitlines()[-1])
            self.assertIs(j["interrupted"], True)
            self.assertLess(j["epochs"], 1000)
            self.assertIsNone(j["test_acc"])
            self.assertEqual(j["eval_ms_median"], 0, "who interrupts a run does not wait for an evaluation")
            self.assertTrue((self.dir / run / f"epoch-{j['epochs']:06}" / "state.json").exists())
            self.assertFalse((self.dir / run / "model.safetensors").exists(), "the run is not finished")
            self.assertEqual(len(self.metrics(run)), j["epochs"])
            # No epoch was evaluated yet, so the weights are the last ones and not the best ones.
            for folder in (run, f"{run}/epoch-{j['epochs']:06}"):
                evaluated = self.ok("eval", "--checkpoint", folder)
                self.assertIn(f"weights after epoch {j['epochs']}", evaluated.err)
                self.ok("predict", "--checkpoint", folder, "-o", "out.csv")

    def test_stopped_and_resumed(self):
        common = ("train", *TWIN, *CASES["gat-adamw"], "--epochs", 60)
        self.ok(*common, "--checkpoint", "alone")
        noise = random.Random(5)
        for _ in range(200):
            process = self.start(*common, "--checkpoint", "run", "--resume")
            time.sleep(noise.uniform(0.1, 0.8))
            process.send_signal(signal.SIGTERM)
            # Before training begins there is nothing to save, and the signal ends the program at
            # once.
            code = process.wait(timeout=60)
            self.assertIn(code, (0, -signal.SIGTERM, 128 + signal.SIGTERM), self.read("stderr.txt").decode())
            if (self.dir / "run" / "model.safetensors").exists():
                break
        self.same_as_alone("run")

    def interrupt(self, number, *arguments):
        """Starts a run, stops it after its first epochs and returns its run folder's metrics."""
        process = self.start(*arguments, "--checkpoint", "run")
        metrics = self.dir / "run/metrics.jsonl"
        patience = time.monotonic() + 60
        while not (metrics.exists() and len(metrics.read_bytes().splitlines()) >= 3):
            self.assertIsNone(process.poll(), self.read("stderr.txt").decode())
            self.assertLess(time.monotonic(), patience)
            time.sleep(0.01)
        process.send_signal(number)
        self.assertEqual(process.wait(timeout=60), 128 + number, self.read("stderr.txt").decode())
        return self.metrics("run")

    def test_best_weights_of_an_interrupted_run(self):
        lines = self.interrupt(signal.SIGINT, "train", *TWIN, *CASES["gcn-adam"], "--epochs", 100000)
        best = max(line["val"] for line in lines)
        first = next(line for line in lines if line["val"] == best)
        for folder in ("run", f"run/epoch-{len(lines):06}"):
            result = self.ok("eval", "--checkpoint", folder, "--json")
            self.assertIn(f"best weights so far, of epoch {first['epoch']}", result.err)
            self.assertAlmostEqual(result.last_json()["val_acc"], best, places=5)
            self.assertAlmostEqual(result.last_json()["test_acc"], first["test"], places=5)
        self.ok("predict", "--checkpoint", "run", "-o", "p.csv")

    def test_a_signal_in_the_last_epoch_ends_the_other_seeds(self):
        process = self.start("train", "--data", "twin:arxiv@0.3", "--hidden", 128, "--epochs", 1, "--seeds", "0-30", "--device",
                             "cpu", "--plan", "off", "--checkpoint", "runs")
        patience = time.monotonic() + 60
        while not (self.dir / "runs/seed-0/plan.json").exists():  # written before the first step
            self.assertIsNone(process.poll(), self.read("stderr.txt").decode())
            self.assertLess(time.monotonic(), patience)
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130, self.read("stderr.txt").decode())
        self.assertLess(len(list((self.dir / "runs").iterdir())), 4)

    def test_a_resumed_run_keeps_its_plan(self):
        run = ("train", *TWIN, "--model", "gcn", "--hidden", 8, "--epochs")
        self.ok(*run, 2, "--checkpoint", "run", "--reorder", "rabbit", "--plan", "off")
        for option, value in (("--reorder", "rcm"), ("--plan", "tensor"), ("--disable-pass", "sink_tails"), ("--recompute", "fit")):
            self.refused("train", "--resume", "run", "--epochs", 4, option, value, says=f"{option}: has no effect, because the run")
            self.refused(*run, 4, "--checkpoint", "run", "--resume", option, value, says=f"{option}: has no effect")
        self.refused("train", "--resume", "run", "--seeds", "0-1", says="holds a single run")
        self.ok(*run, 3, "--checkpoint", "run", "--resume", "--reorder", "rabbit", "--plan", "off")
        self.ok("train", "--resume", "run", "--epochs", 4)

    def test_resumed_seeds_keep_their_plans(self):
        run = ("train", *TWIN, "--model", "gcn", "--hidden", 8, "--checkpoint", "runs", "--plan")
        self.ok(*run, "off", "--seeds", "0-1", "--epochs", 2)
        for seeds in ("0-1", "1,2"):
            self.refused(*run, "vertex", "--seeds", seeds, "--epochs", 3, "--resume",
                         says=f"--plan: has no effect, because the run in runs/seed-{seeds[0]}")
        self.ok(*run, "off", "--seeds", "0-2", "--epochs", 3, "--resume")
        self.ok(*run, "vertex", "--seeds", "3", "--epochs", 2, "--resume")

    def test_a_finished_run_keeps_the_times_of_its_kernels(self):
        self.ok("train", *TWIN, "--model", "gcn", "--hidden", 8, "--epochs", 5, "--checkpoint", "run")
        kernels = json.loads(self.read("run/result.json"))["kernels"]
        self.assertTrue(any(kernel["ms"] is not None for kernel in kernels))
        self.ok("train", "--resume", "run")
        self.assertEqual(json.loads(self.read("run/result.json"))["kernels"], kernels)

    def test_a_run_that_is_interrupted_in_its_first_epoch(self):
        process = self.start("train", "--data", "twin:arxiv@0.3", "--mode", "minibatch", "--batch-size", 1, "--fanout", "5,5",
                             "--checkpoint", "run", "--device", "cpu", "--plan", "off")
        patience = time.monotonic() + 60
        while not (self.dir / "run" / "plan.json").exists():  # it is written before the first step
            self.assertIsNone(process.poll(), self.read("stderr.txt").decode())
            self.assertLess(time.monotonic(), patience)
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130, self.read("stderr.txt").decode())
        said = self.read("stdout.txt").decode()
        self.assertIn("no epoch was finished", said)
        self.assertNotIn("epoch -1", said)

    def test_resume_needs_nothing_but_the_folder(self):
        common = ("train", *TWIN, *CASES["sage-cosine"], "--seed", 7, "--eval-every", 2)
        self.ok(*common, "--epochs", 40, "--checkpoint", "alone")
        self.ok(*common, "--epochs", 40, "--checkpoint", "run", "--checkpoint-every", 10, "--keep", 9)
        for name in ("epoch-000020", "epoch-000030", "epoch-000040"):
            cli.shutil.rmtree(self.dir / "run" / name)
        (self.dir / "elsewhere").mkdir()
        result = self.ok("train", "--resume", "run")
        self.assertIn("resuming after epoch 10", result.err)
        self.same_as_alone("run")
        # Options that do not change the result may be given when a run is resumed; others are
        # refused.
        self.ok("train", "--resume", "run", "--threads", 1)
        self.refused("train", "--resume", "run", "--seed", 8, says="training.seed is 7 there and 8 here")
        self.refused("train", "--resume", "run", "--lr", 0.5, says="training.lr")
        self.refused("train", "--resume", "absent", says="absent")

    def test_resume_of_mini_batches_and_from_another_folder(self):
        self.ok("data", "make", "twin:cora@0.3", "cora.nacre")
        options = ("--data", "cora.nacre", "--model", "sage", "--hidden", 8, "--mode", "minibatch", "--batch-size", 64,
                   "--fanout", "4,3", "--select", "last")
        self.ok("train", *options, "--epochs", 6, "--checkpoint", "alone")
        self.ok("train", *options, "--epochs", 3, "--checkpoint", "run")
        (self.dir / "elsewhere").mkdir()
        folder, self.dir = self.dir, self.dir / "elsewhere"
        self.ok("train", "--resume", "../run", "--epochs", 6)
        self.ok("eval", "--checkpoint", "../run")
        self.refused("eval", "--checkpoint", "../run", "--data", "cora.nacre", says="cora.nacre")
        self.dir = folder
        self.assertEqual([m["loss"] for m in self.metrics("run")], [m["loss"] for m in self.metrics("alone")])

    def test_damaged_checkpoints_are_survived(self):
        common = ("train", *TWIN, *CASES["sage-sgd"], "--epochs", 12, "--checkpoint-every", 1, "--keep", 3)
        self.ok(*common, "--checkpoint", "alone")
        for file in ("model.safetensors", "optimizer.safetensors", "state.json"):
            cli.shutil.rmtree(self.dir / "run", ignore_errors=True)
            self.ok(*common[:-4], "--checkpoint-every", 1, "--keep", 3, "--checkpoint", "run")
            (self.dir / "run/model.safetensors").unlink()
            newest = f"run/epoch-000012/{file}"
            self.write(newest, self.read(newest)[:-30])
            result = self.ok(*common, "--checkpoint", "run", "--resume")
            self.assertIn("warning: skipping checkpoint", result.err)
            self.assertIn("resuming after epoch 11", result.err)
            self.same_as_alone("run")
        self.assertIn("resuming after epoch 12", self.ok(*common, "--checkpoint", "run", "--resume").err)

    def test_other_settings_are_refused(self):
        self.ok("train", *TWIN, "--epochs", 2, "--checkpoint", "run")
        again = ("train", *TWIN, "--epochs", 4, "--checkpoint", "run")
        self.refused(*again, says="--resume")
        self.refused(*again, "--resume", "--hidden", 8, says="model.hidden is")
        self.refused(*again, "--resume", "--seed", 1, says="other data, model or training settings: training.seed is 0 there and 1 here")
        self.refused("train", "--data", "twin:citeseer@0.3", "--epochs", 4, "--checkpoint", "run", "--resume", says="other data")
        self.ok(*again, "--resume", "--threads", 1)


if __name__ == "__main__":
    cli.main()
