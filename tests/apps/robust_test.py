#!/usr/bin/env python3
"""Tests outputs that are not regular files, folders in use, damaged caches, numbers out of
range, and readers that go away."""
import json
import math
import os
import pathlib
import signal
import stat
import struct
import subprocess
import time

import cli
import recommend_test

SMALL = ("--data", "small.npz", "--model", "gcn", "--hidden", 8)


def nodes_work(folder):
    """Returns whether this user can make and use device nodes."""
    try:
        os.mknod(folder / "probe", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (folder / "probe").write_bytes(b"x")
        return True
    except OSError:
        return False
    finally:
        (folder / "probe").unlink(missing_ok=True)


class Robust(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.write("small.npz", cli.small_npz())

    def wait_for(self, what, process=None, seconds=60):
        patience = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), patience)
            if process:
                self.assertIsNone(process.poll(), self.read("stderr.txt").decode())
            time.sleep(0.01)


class Outputs(Robust):
    def node(self, name, minor):
        os.mknod(self.dir / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        return name

    def test_devices_stay_devices(self):
        if not nodes_work(self.dir):
            self.skipTest("device nodes cannot be made here")
        for name in ("metrics", "trace", "plan", "null.csv", "null.npy", "null.safetensors", "null.npz", "null.nacre"):
            self.node(name, 3)
        self.ok("train", *SMALL, "--epochs", 3, "--checkpoint", "run", "--metrics", "metrics", "--trace", "trace")
        self.ok("plan", *SMALL, "--output", "plan")
        self.ok("predict", "--checkpoint", "run", "-o", "null.csv")
        self.ok("predict", "--checkpoint", "run", "-o", "null.npy")
        self.ok("predict", "--checkpoint", "run", "-o", "null.safetensors")
        # May be refused or written to, but must not be replaced.
        self.nacre("data", "convert", "small.npz", "null.npz")
        self.refused("data", "convert", "small.npz", "null.nacre", says="not a regular file")
        for name in ("metrics", "trace", "plan", "null.csv", "null.npy", "null.safetensors", "null.npz", "null.nacre"):
            self.assertTrue(stat.S_ISCHR((self.dir / name).stat().st_mode), name)
        self.assertFalse([name for name in self.files() if ".tmp" in name or name.endswith(".partial")])

    def test_a_full_device_ends_the_run_with_its_checkpoint(self):
        if not nodes_work(self.dir):
            self.skipTest("device nodes cannot be made here")
        self.node("full", 7)
        self.node("full.csv", 7)
        result = self.nacre("train", *SMALL, "--epochs", 4, "--checkpoint", "run", "--metrics", "full")
        self.assertEqual(result.code, 1, result)
        self.assertIn("nacre: full: cannot be written", result.err)
        self.assertTrue((self.dir / "run/epoch-000001/state.json").exists())
        self.ok("train", *SMALL, "--epochs", 4, "--checkpoint", "run", "--resume")
        self.refused("predict", "--checkpoint", "run", "-o", "full.csv", code=1, says="No space left")
        self.assertTrue(stat.S_ISCHR((self.dir / "full").stat().st_mode))

    def test_metrics_that_do_not_fit(self):
        result = self.nacre("train", *SMALL, "--epochs", 300, "--no-checkpoint", "--metrics", "metrics.jsonl", file_size=8192)
        self.assertEqual(result.code, 1, result)
        self.assertIn("nacre: metrics.jsonl: cannot be written", result.err)
        lines = self.read("metrics.jsonl").decode().splitlines()
        self.assertEqual([json.loads(line)["epoch"] for line in lines], list(range(1, len(lines) + 1)))

    def test_the_line_that_did_not_fit_is_written_by_the_resumed_run(self):
        def epochs():
            return [json.loads(line)["epoch"] for line in self.read("run/metrics.jsonl").splitlines()]

        result = self.nacre("train", *SMALL, "--epochs", 2000, "--checkpoint", "run", file_size=50000)
        self.assertEqual(result.code, 1, result)
        self.assertIn("metrics.jsonl: cannot be written", result.err)
        failed = len(epochs()) + 1
        self.assertTrue((self.dir / f"run/epoch-{failed:06}/state.json").exists(), self.files())
        for last in (failed, failed, failed + 2):  # resumed twice with no epoch left, once with two
            self.ok("train", *SMALL, "--epochs", last, "--checkpoint", "run", "--resume")
            self.assertEqual(epochs(), list(range(1, last + 1)))

    def test_links_stay_links(self):
        (self.dir / "real").mkdir()
        for name in ("metrics", "trace", "plan", "out.csv", "out.nacre", "out.npz"):
            (self.dir / name).symlink_to(f"real/{name}")
        self.ok("train", *SMALL, "--epochs", 3, "--checkpoint", "run", "--metrics", "metrics", "--trace", "trace")
        self.ok("plan", *SMALL, "--output", "plan")
        self.ok("predict", "--checkpoint", "run", "-o", "out.csv")
        self.ok("data", "convert", "small.npz", "out.nacre")
        self.ok("data", "convert", "small.npz", "out.npz")
        for name in ("metrics", "trace", "plan", "out.csv", "out.nacre", "out.npz"):
            self.assertTrue((self.dir / name).is_symlink(), name)
            self.assertGreater((self.dir / "real" / name).stat().st_size, 0, name)
        self.ok("data", "verify", "real/out.nacre")
        self.assertFalse([name for name in self.files() if ".tmp" in name or name.endswith(".partial")])

    def test_a_pipe_as_metrics_file(self):
        os.mkfifo(self.dir / "pipe")
        reader = subprocess.Popen(["cat", "pipe"], cwd=self.dir, stdout=subprocess.PIPE)
        self.ok("train", *SMALL, "--epochs", 3, "--no-checkpoint", "--metrics", "pipe")
        lines = reader.communicate(timeout=30)[0].splitlines()
        self.assertEqual([json.loads(line)["epoch"] for line in lines], [1, 2, 3])
        self.assertTrue(stat.S_ISFIFO((self.dir / "pipe").stat().st_mode))


class Runs(Robust):
    def test_a_folder_in_use_is_refused(self):
        process = self.start("train", *SMALL, "--epochs", 1000000, "--checkpoint", "run", "--checkpoint-every", 1000)
        self.wait_for(lambda: list(self.dir.glob("run/epoch-*")), process)
        for arguments in ((), ("--resume",)):
            result = self.nacre("train", *SMALL, "--epochs", 1000000, "--checkpoint", "run", *arguments)
            self.assertEqual(result.code, 2, result)
            self.assertIn("run: is in use by another process", result.err)
        process.kill()  # the lock ends with the process
        process.wait()
        process = self.start("train", *SMALL, "--epochs", 1000000, "--checkpoint", "run", "--resume")
        self.wait_for(lambda: b"resuming" in self.read("stderr.txt"), process)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 128 + signal.SIGTERM)

    def test_nobody_reads_what_is_said(self):
        """Closes pipes while a run writes to them; the run must train to its end."""
        process = subprocess.Popen([cli.PROGRAM, "train", *map(str, SMALL), "--epochs", "2000", "--checkpoint", "run", "-v"],
                                   cwd=self.dir, env=self.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stderr.readline()
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=60), 128 + signal.SIGPIPE)
        self.assertTrue((self.dir / "run/model.safetensors").exists())
        self.assertEqual(len(self.read("run/metrics.jsonl").splitlines()), 2000)

    def test_a_reader_that_has_seen_enough(self):
        # The reader has closed its end before the program writes, however slowly both run.
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as out:
            done = subprocess.run([cli.PROGRAM, "data", "list"], cwd=self.dir, env=self.environment(), stdout=out,
                                  stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual((done.stderr, done.returncode), (b"", 128 + signal.SIGPIPE))

    def test_recommenders_are_interrupted_and_evaluated(self):
        self.write("tastes.npz", recommend_test.tastes_npz(*recommend_test.tastes()))
        options = ("--data", "tastes.npz", "--model", "lightgcn", *recommend_test.COMMON, "--embedding-decay", 1e-3)
        process = self.start("train", *options, "--epochs", 100000, "--checkpoint", "run")
        self.wait_for(lambda: (self.dir / "run/metrics.jsonl").exists()
                      and len(self.read("run/metrics.jsonl").splitlines()) > 2, process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 128 + signal.SIGINT)
        folder = sorted(self.dir.glob("run/epoch-*"))[-1].relative_to(self.dir)
        for place in ("run", folder):
            self.ok("eval", "--checkpoint", place)
        self.ok("predict", "--checkpoint", "run", "-o", "items.csv", "--top", 3)
        settings = json.loads(self.read("run/config.json"))["recommend"]
        self.assertEqual((settings["batch_size"], settings["embedding_decay"]), (64, 1e-3))

    def test_strange_lines_of_metrics(self):
        self.ok("train", *SMALL, "--epochs", 3, "--checkpoint", "run")
        self.write("run/metrics.jsonl", self.read("run/metrics.jsonl")
                   + b'{"epoch":"x"}\n{"epoch":-1}\n{"epoch":1e99}\n[1]\nno json\n' + b"[" * 100000 + b"\n")
        result = self.ok("train", *SMALL, "--epochs", 5, "--checkpoint", "run", "--resume")
        self.assertIn("warning: run/metrics.jsonl: dropped 6 lines that do not describe an epoch", result.err)
        epochs = [json.loads(line)["epoch"] for line in self.read("run/metrics.jsonl").splitlines()]
        self.assertEqual(epochs, [1, 2, 3, 4, 5])

    def test_data_are_found_from_another_folder(self):
        self.write("deep/here/small.npz", self.read("small.npz"))
        (self.dir / "other").mkdir()
        top, self.dir = self.dir, self.dir / "deep"
        self.ok("train", "--data", "here/small.npz", "--model", "gcn", "--epochs", 2, "--checkpoint", "run")
        self.dir = top / "other"
        self.ok("eval", "--checkpoint", "../deep/run")
        self.ok("eval", "--checkpoint", "../deep/run", "--data", "../small.npz")
        self.write("here/small.npz", cli.small_npz())
        self.assertIn("is read from this folder", self.ok("eval", "--checkpoint", "../deep/run").err)
        self.dir = top


class Mlp(Robust):
    def test_a_model_without_neighbours_in_mini_batches(self):
        alone = self.ok("train", "--data", "small.npz", "--model", "mlp", "--epochs", 40, "--lr", 0.05, "--json",
                        "--no-checkpoint").last_json()
        self.assertGreater(alone["train_acc"], 0.9)
        for options in ((), ("--sampler", "layer"), ("--sampler", "saint-vertex"), ("--sampler", "saint-edge"),
                        ("--sampler", "saint-walk"), ("--layers", 1), ("--norm", "batch", "--dropout", 0.1)):
            j = self.ok("train", "--data", "small.npz", "--model", "mlp", "--epochs", 40, "--lr", 0.05, "--json",
                        "--no-checkpoint", "--mode", "minibatch", "--batch-size", 7, *options).last_json()
            self.assertTrue(math.isfinite(j["loss"]), options)
            self.assertGreater(j["train_acc"], 0.85, options)
        self.refused("train", "--data", "small.npz", "--model", "mlp", "--mode", "minibatch", "--fanout", "3,2",
                     "--no-checkpoint", says="--fanout: has no effect on mlp")

    def test_one_layer(self):
        for model in ("gcn", "sage", "sage-lstm", "gat", "gatv2", "rgcn", "gin", "mlp"):
            for mode in ((), ("--mode", "minibatch", "--batch-size", 7), ("--mode", "minibatch", "--sampler", "layer"),
                         ("--mode", "minibatch", "--sampler", "saint-walk")):
                j = self.ok("train", "--data", "small.npz", "--model", model, "--layers", 1, "--epochs", 2, "--json",
                            "--no-checkpoint", *mode).last_json()
                self.assertTrue(math.isfinite(j["loss"]), (model, mode))


class Weights(Robust):
    def test_weights_that_are_no_numbers(self):
        self.ok("train", *SMALL, "--epochs", 2, "--checkpoint", "run")
        whole = self.read("run/model.safetensors")
        length = struct.unpack("<Q", whole[:8])[0]
        header = json.loads(whole[8:8 + length])
        name = [key for key in header if key != "__metadata__"][-1]
        at = 8 + length + header[name]["data_offsets"][0]
        for value in (math.nan, math.inf):
            self.write("bad.safetensors", whole[:at] + struct.pack("<f", value) + whole[at + 4:])
            for command in (("eval",), ("predict", "-o", "out.csv")):
                self.refused(*command, "--checkpoint", "bad.safetensors", code=1, says=f"tensor '{name}' holds values that")


    def test_a_run_that_diverges_fails(self):
        """The weights of the only epoch are no numbers, although its loss, which was computed
        before they changed, is one."""
        diverges = ("train", *SMALL, "--epochs", 1, "--lr", "1e38")
        self.refused(*diverges, "--no-checkpoint", code=1,
                     says="epoch 1: the weights are no longer numbers; start again with a lower --lr")
        self.assertEqual(self.nacre(*diverges, "--checkpoint", "run").code, 1)
        self.assertFalse((self.dir / "run/model.safetensors").exists())

    def test_an_epoch_without_a_score_is_not_the_best(self):
        self.ok("train", "--data", "twin:cora", "--model", "gin", "--optimizer", "sgd", "--epochs", 3, "--lr", 100, "--metric",
                "roc_auc", "--checkpoint", "run", "--device", "cpu")
        scores = [json.loads(line)["val"] for line in self.read("run/metrics.jsonl").decode().splitlines()]
        best = max((score, -epoch) for epoch, score in enumerate(scores, 1) if score is not None)
        self.assertEqual(json.loads(self.read("run/result.json"))["best_epoch"], -best[1], scores)

    def test_a_ranking_of_infinite_scores_ends(self):
        """Once, scores that are not finite were compared with each other for ever."""
        for metric in ("roc_auc", "average_precision"):
            self.refused("train", "--data", "twin:cora", "--model", "gin", "--optimizer", "sgd", "--epochs", 3, "--lr", 1000,
                         "--metric", metric, "--device", "cpu", "--no-checkpoint", code=1, says="no longer")

    def test_scores_that_are_no_numbers(self):
        """Weights may be finite and yet too large to compute with."""
        self.ok("train", *SMALL, "--epochs", 2, "--checkpoint", "run")
        whole = bytearray(self.read("run/model.safetensors"))
        length = struct.unpack("<Q", whole[:8])[0]
        header = json.loads(whole[8:8 + length])
        for name, tensor in header.items():
            if name != "__metadata__":
                begin, end = (8 + length + at for at in tensor["data_offsets"])
                whole[begin:end] = struct.pack("<f", 3e38) * ((end - begin) // 4)
        self.write("large.safetensors", bytes(whole))
        for command in (("eval",), ("predict", "-o", "out.csv"), ("predict", "--embeddings", "-o", "out.npy")):
            self.refused(*command, "--checkpoint", "large.safetensors", code=1, says="that are not numbers")
        self.assertFalse((self.dir / "out.csv").exists())

    def test_a_library_without_its_end(self):
        library = (pathlib.Path(cli.PROGRAM).parent / "libnacre_mpi.so")
        if not library.exists():
            self.skipTest("this build has no library to cut")
        whole = library.read_bytes()
        for size in (10, 100, 5000, len(whole) // 2):
            self.write("model.so", whole[:size])
            self.refused("train", *SMALL, "--model", "model.so", says="model.so")

    def test_files_that_are_no_libraries(self):
        """The system says what is wrong with them."""
        for content in (b"", b"x", b"no library\n" * 100):
            self.write("model.so", content)
            error = self.refused("train", *SMALL, "--model", "model.so", says="model.so")
            self.assertNotIn("its end is missing", error)
        if os.geteuid() != 0:  # root may read every file
            (self.dir / "model.so").chmod(0)
            self.refused("train", *SMALL, "--model", "model.so", says="Permission denied")


class Json(Robust):
    def test_json_nested_deeply(self):
        deep = "[" * 100000 + "]" * 100000
        self.write("plan.json", '{"format":"nacre-plan","version":1,"options":' + deep + "}")
        self.refused("train", *SMALL, "--plan", "plan.json", "--no-checkpoint", says="plan.json")
        self.ok("train", *SMALL, "--epochs", 2, "--checkpoint", "run")
        for name in ("config.json", "plan.json", "epoch-000002/state.json"):
            whole = self.read("run/" + name)
            for content in (deep, '{"config":' + deep + "}", whole.decode().rstrip()[:-1] + ',"x":' + deep + "}"):
                self.write("run/" + name, content)
                result = self.nacre("train", *SMALL, "--epochs", 3, "--checkpoint", "run", "--resume")
                self.assertIn(result.code, (0, 2), result)
                self.assertNotIn("json.exception", result.err)
                self.nacre("explain", *SMALL[:2], "--run", "run")
                self.refused("eval", "--checkpoint", "run/epoch-000002", says="state.json") if "state" in name else None
            self.write("run/" + name, whole)


class Numbers(Robust):
    def test_integers_out_of_range(self):
        huge = ("9223372036854775807", "99999999999999999999999", "-1", "1e99")
        options = ("--epochs", "--layers", "--hidden", "--heads", "--out-heads", "--num-bases", "--relations", "--num-nodes",
                   "--batch-size", "--budget", "--norm-samples", "--walk-length", "--prefetch", "--eval-every", "--patience",
                   "--warmup", "--lr-step", "--seed", "--data-seed", "--threads", "--checkpoint-every", "--keep", "--input-dim")
        for option in options:
            for value in huge:
                sampler = ("--mode", "minibatch", "--sampler", "saint-walk") if option in (
                    "--batch-size", "--budget", "--norm-samples", "--walk-length", "--prefetch") else ()
                model = "gat" if "heads" in option else "rgcn" if option in ("--num-bases", "--relations") else "gcn"
                result = self.nacre("train", "--data", "small.npz", "--model", model, "--epochs", 1, "--no-checkpoint", *sampler,
                                    f"{option}={value}", memory=3 << 30, timeout=60)
                what = f"{option}={value}\n{result}"
                self.assertIn(result.code, (0, 2), what)
                for word in ("internal error", "sto", "terminate", "vector::", "basic_string", "bad_", "std::"):
                    self.assertNotIn(word + "l" if word == "sto" else word, result.err, what)

    def test_flags_take_no_numbers(self):
        for value in ("9223372036854775808", "2", "x", "-1"):
            self.refused("train", *SMALL, "--no-checkpoint", f"--no-plan-cache={value}", says="--no-plan-cache: takes no value")
            self.refused("train", *SMALL, "--no-checkpoint", f"--deterministic={value}", says="--deterministic: takes no value")


class Cache(Robust):
    """Tests the plan cache with a run so long that its plan is searched for."""

    LONG = ("plan", "--data", "twin:cora", "--model", "gcn", "--epochs", 20000, "-v")

    def environment(self):
        return dict(super().environment(), **self.folders)

    folders = {}

    def test_no_place_for_a_cache(self):
        environment = {name: value for name, value in super().environment().items()
                       if name not in ("HOME", "XDG_CACHE_HOME", "NACRE_CACHE")}
        done = subprocess.run([cli.PROGRAM, *map(str, self.LONG)], cwd=self.dir, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"plans are not kept", done.stderr)
        self.assertNotIn(b"warning", done.stderr)
        self.assertFalse(os.path.exists("/plans"))

    def test_an_unusable_entry_is_replaced(self):
        self.folders = {"NACRE_CACHE": str(self.dir / "cache")}
        self.ok(*self.LONG)
        self.assertIn("from the cache", self.ok(*self.LONG).out)
        entry, = (self.dir / "cache/plans").iterdir()
        whole = entry.read_bytes()
        for value in (b"[]", b"{\"tables\": 3}", b"no json", b"[" * 100000, b'{"tables":{"0":"nonsense"}}', b""):
            entry.write_bytes(cli.resealed(whole, value))
            result = self.ok(*self.LONG)
            if value != b"":
                self.assertIn("a new one is searched for", result.err, value)
            self.assertIn("from the cache", self.ok(*self.LONG).out, value)


class Names(Robust):
    def test_names_cannot_write_on_the_terminal(self):
        evil = "a\x1b[2J\x07\u009bb"
        self.write(evil + ".npz", self.read("small.npz"))
        out = evil + ".nacre"
        for arguments in (("data", "info", evil + ".npz"), ("train", "--data", evil + ".npz", "--epochs", 2, "--checkpoint", evil),
                          ("eval", "--checkpoint", evil), ("predict", "--checkpoint", evil, "-o", evil + ".csv"),
                          ("data", "convert", evil + ".npz", out), ("data", "verify", out), ("data", "info", out),
                          ("train", "--data", evil), ("train", "--data", "small.npz", "--model", evil),
                          ("plan", "--data", evil + ".npz", "--output", evil + ".json")):
            result = self.nacre(*arguments)
            for text in (result.out, result.err):
                self.assertFalse([c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160], (arguments, text))


if __name__ == "__main__":
    cli.main()
