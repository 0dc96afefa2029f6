#!/usr/bin/env python3
"""Tests the program as scripts use it: results as JSON, files that it writes and reads again,
spellings of options."""
import csv
import json
import math
import os

import cli

GCN = ("--model", "gcn", "--hidden", 16, "--dropout", 0.5, "--epochs", 12, "--lr", 0.02)
TWIN = ("--data", "twin:cora@0.3")


class Train(cli.CliTest):
    def test_json_has_what_scripts_read(self):
        result = self.ok("train", *TWIN, *GCN, "--json", "--checkpoint", "run")
        j = result.last_json()
        for key in ("test_acc", "val_acc", "epochs", "epoch_ms_median", "plan_s", "peak_mb", "device", "plan"):
            self.assertIn(key, j)
        self.assertEqual(j["epochs"], 12)
        self.assertEqual(j["device"], "cpu")
        self.assertIs(j["interrupted"], False)
        self.assertTrue(0 < j["test_acc"] <= 1 and 0 < j["val_acc"] <= 1)
        self.assertGreater(j["epoch_ms_median"], 0)
        self.assertGreater(j["peak_mb"], 1)
        for name in ("config.json", "plan.json", "epoch-000012/state.json"):
            json.loads(self.read("run/" + name))
        lines = [json.loads(line) for line in self.read("run/metrics.jsonl").splitlines()]
        self.assertEqual([line["epoch"] for line in lines], list(range(1, 13)))
        best = max(lines, key=lambda line: line["val"])
        self.assertAlmostEqual(best["val"], j["val_acc"], places=6)

    def test_run_folders_are_fresh_by_default(self):
        small = self.write("small.npz", cli.small_npz())
        runs = [self.ok("train", "--data", small, "--epochs", 2, "--json").last_json()["run"] for _ in range(2)]
        self.assertEqual(runs, ["runs/small-gcn-1", "runs/small-gcn-2"])
        self.assertEqual(self.read(runs[0] + "/model.safetensors"), self.read(runs[1] + "/model.safetensors"))
        before = self.files()
        self.ok("train", "--data", small, "--epochs", 2, "--no-checkpoint")
        self.assertEqual(self.files(), before)

    def test_eval_and_predict_repeat_the_training(self):
        for model in ("gcn", "gat", "sage", "rgcn", "gin", "mlp", "gatv2", "sage-lstm"):
            with self.subTest(model):
                run = "run-" + model
                trained = self.ok("train", *TWIN, "--model", model, "--hidden", 8, "--norm", "batch", "--epochs", 4,
                                  "--dropout", 0.3, "--checkpoint", run, "--json").last_json()
                for checkpoint in (run, run + "/model.safetensors"):
                    j = self.ok("eval", "--checkpoint", checkpoint, "--json").last_json()
                    self.assertEqual((j["test_acc"], j["val_acc"]), (trained["test_acc"], trained["val_acc"]))
        self.ok("predict", "--checkpoint", "run-gcn", "--output", "p.csv", "--scores")
        self.ok("predict", "--checkpoint", "run-gcn", "-o", "p.safetensors")
        with open(self.dir / "p.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        raw = self.read("p.safetensors")
        length = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:8 + length])
        self.assertEqual(header["scores"]["shape"], [len(rows), 7])
        scores = cli.array.array("f", raw[8 + length:])
        for v, row in enumerate(rows):
            self.assertEqual(int(row["node"]), v)
            own = [float(row[f"score_{k}"]) for k in range(7)]
            self.assertEqual(own.index(max(own)), int(row["prediction"]))
            for k in range(7):
                self.assertTrue(math.isclose(own[k], scores[v * 7 + k], rel_tol=1e-6))

    def test_predict_needs_no_labels(self):
        self.write("small.npz", cli.small_npz())
        self.write("bare.npz", cli.small_npz(y=None, train_idx=None, val_idx=None, test_idx=None))
        self.ok("train", "--data", "small.npz", "--epochs", 3, "--checkpoint", "run")
        self.ok("predict", "--checkpoint", "run", "-o", "a.csv")
        self.ok("predict", "--checkpoint", "run", "--data", "bare.npz", "-o", "b.csv")
        self.assertEqual(self.read("a.csv"), self.read("b.csv"))
        self.refused("eval", "--checkpoint", "run", "--data", "bare.npz", says="has no labelled")

    def test_threads_do_not_change_a_byte(self):
        for model in ("gcn", "gat", "sage"):
            files = []
            for threads in (1, 2, 4):
                run = f"{model}-{threads}"
                self.ok("train", *TWIN, "--model", model, "--hidden", 16, "--norm", "batch", "--dropout", 0.4,
                        "--epochs", 5, "--threads", threads, "--checkpoint", run)
                files.append(self.read(run + "/model.safetensors"))
            self.assertEqual(files[0], files[1], model)
            self.assertEqual(files[0], files[2], model)

    def test_plans_are_files_a_run_accepts(self):
        text = self.ok("plan", *TWIN, "--model", "gat", "--hidden", 16, "--output", "plan.json", "-v").out
        for word in ("computed once", "every step", "memory of a run", "total", "spmm"):
            self.assertIn(word, text)
        j = json.loads(self.ok("plan", *TWIN, "--model", "gat", "--hidden", 16, "--json").out)
        self.assertEqual(j["format"], "nacre-plan")
        self.assertEqual(json.loads(self.read("plan.json"))["dfg"], j["dfg"])
        common = ("train", *TWIN, "--model", "gat", "--hidden", 16, "--epochs", 4)
        self.ok(*common, "--checkpoint", "auto")
        r = self.ok(*common, "--checkpoint", "file", "--plan", "plan.json", "--json")
        self.assertEqual(r.last_json()["plan"], "plan.json")
        self.assertEqual(self.read("auto/model.safetensors"), self.read("file/model.safetensors"))
        # A plan without fusion adds in another order, so its results are close but not equal.
        self.ok(*common, "--checkpoint", "tensor", "--plan", "tensor")
        self.refused("train", *TWIN, "--model", "gcn", "--plan", "plan.json", says="another model")
        self.write("damaged.json", self.read("plan.json")[:-40])
        self.refused(*common, "--plan", "damaged.json", says="not a plan file")
        self.refused(*common, "--recompute", "never", says="choose auto or fit")
        self.write("odd.json", '{"format": 7, "version": "x", "options": [], "dfg": 3}')
        self.refused(*common, "--plan", "odd.json")
        self.write("dfg.json", json.dumps(dict(j, dfg="dfg x\n%0 = nonsense")))
        self.refused(*common, "--plan", "dfg.json")

    def test_trace_is_a_timeline_by_phase(self):
        self.ok("train", *TWIN, *GCN, "--no-checkpoint", "--trace", "t.json")
        events = json.loads(self.read("t.json"))["traceEvents"]
        names = {(e["cat"], e["name"]) for e in events}
        for phase in (("train", "epoch"), ("train", "evaluate"), ("train", "optimizer")):
            self.assertIn(phase, names)
        self.assertEqual(sum(e["name"] == "epoch" for e in events), 12)
        for e in events:
            self.assertGreaterEqual(e["ts"], 0)
            self.assertGreaterEqual(e["dur"], 0)

    def test_metrics_go_where_they_are_asked(self):
        self.ok("train", *TWIN, *GCN, "--no-checkpoint", "--metrics", "m.jsonl")
        self.assertEqual(len(self.read("m.jsonl").splitlines()), 12)

    def test_quiet_says_results_only(self):
        r = self.ok("train", *TWIN, *GCN, "--no-checkpoint", "-q", "--threads", 4)
        self.assertEqual(r.err, "")
        self.assertIn("accuracy", r.out)

    def test_stdout_that_fails_is_a_failure(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.nacre("data", "list", stdout=full).code, 1)


class Spelling(cli.CliTest):
    def weights(self, *arguments):
        self.ok("train", *TWIN, "--epochs", 2, "--checkpoint", "run", *arguments)
        content = self.read("run/model.safetensors")
        cli.shutil.rmtree(self.dir / "run")
        return content

    def test_other_tools_names_are_understood(self):
        want = self.weights("--layers", 3, "--hidden", 8, "--weight-decay", 0.01, "--lr", 0.1, "--model", "sage",
                            "--aggr", "max")
        got = self.weights("--num_layers=3", "--hidden-channels", 8, "--wd", "0.01", "--learning_rate", 0.1, "--model",
                           "sage", "--aggregator_type", "max")
        self.assertEqual(got, want)
        self.assertEqual(self.weights("--model", "gat", "--num-heads", 2, "--num_hidden", 8),
                         self.weights("--model", "gat", "--heads", 2, "--hidden", 8))

    def test_the_last_of_two_counts(self):
        self.assertEqual(self.weights("--hidden", 4, "--hidden", 8), self.weights("--hidden", 8))

    def test_toml_file_and_command_line_over_it(self):
        self.write("run.toml", '# settings\nmodel = "sage"\nlayers = 3\nhidden = 8\nlr = 0.1\nweight-decay = 0.01\n'
                   'aggr = "max"\nepochs = 2\ndata = "twin:cora@0.3"\n')
        want = self.weights("--model", "sage", "--layers", 3, "--hidden", 8, "--lr", 0.1, "--wd", 0.01, "--aggr", "max")
        self.ok("train", "--config", "run.toml", "--checkpoint", "a")
        self.assertEqual(self.read("a/model.safetensors"), want)
        self.ok("train", "--config", "run.toml", "--checkpoint", "b", "--hidden", 4)
        self.ok("train", "--checkpoint", "c", "--hidden", 4, "--config", "run.toml")
        self.assertEqual(self.read("b/model.safetensors"), self.read("c/model.safetensors"))
        self.assertNotEqual(self.read("b/model.safetensors"), want)
        self.write("under.toml", self.read("run.toml").replace(b"weight-decay", b"weight_decay").replace(b"layers", b"num_layers"))
        self.ok("train", "--config", "under.toml", "--checkpoint", "d")
        self.assertEqual(self.read("d/model.safetensors"), want)
        self.write("unknown.toml", 'data = "twin:cora@0.3"\nhiden = 8\n')
        self.refused("train", "--config", "unknown.toml", says="hiden")
        self.write("broken.toml", 'data = "twin:cora@0.3\nhidden = [[[\n')
        self.refused("train", "--config", "broken.toml")
        self.refused("train", "--config", "absent.toml", says="absent.toml")

    def test_design_options_are_known(self):
        self.weights("--device", "cpu", "--precision", "f32", "--mode", "full", "--threads", 2)
        self.refused("train", *TWIN, "--device", "cuda", says="--device")
        self.refused("train", *TWIN, "--mode", "whole", says="--mode")
        self.refused("train", *TWIN, "--mode", "minibatch", "--prefetch", "-2", says="must not be negative")
        self.refused("train", *TWIN, "--mode", "minibatch", "--fanout", "15,,5", says="--fanout")
        self.refused("train", *TWIN, "--mode", "minibatch", "--features-on", "disk", says="--features-on")
        for place in ("--features-on", "--sample-on"):
            self.refused("train", *TWIN, "--mode", "minibatch", "--device", "cpu", place, "device", says=place)
        self.refused("train", *TWIN, "--precision", "bf16", says="--precision")

    def test_options_without_effect_are_refused(self):
        for option in (("--fanout", "5,5"), ("--batch-size", 64), ("--no-relax",), ("--sampler", "layer")):
            self.refused("train", *TWIN, *option, says="add --mode minibatch")
        self.refused("train", *TWIN, "--positives", "users", says="--positives")


class Data(cli.CliTest):
    def test_twins_are_listed(self):
        text = self.ok("data", "list").out
        for name in ("cora citeseer pubmed cs physics arxiv products reddit yelp flickr proteins mag papers100M friendster "
                     "citation2 igb-large amazon gowalla google roadnet-ca wiki-talk livejournal").split():
            self.assertRegex(text, rf"(?m)^{name}\s")

    def test_convert_there_and_back(self):
        def info(name):
            j = json.loads(self.ok("data", "info", name, "--json").out)
            j.pop("name", None)
            j.pop("file", None)
            return j

        for folder in "1234":
            (self.dir / folder).mkdir()
        self.ok("data", "make", "twin:cora@0.3", "1/a.npz")
        self.ok("data", "convert", "1/a.npz", "2/a.nacre")
        self.ok("data", "convert", "2/a.nacre", "3/a.npz")
        self.ok("data", "convert", "3/a.npz", "4/a.nacre")
        self.assertEqual(info("1/a.npz"), info("2/a.nacre"))
        self.assertEqual(info("1/a.npz"), info("3/a.npz"))
        self.assertEqual(self.read("2/a.nacre"), self.read("4/a.nacre"))
        self.refused("data", "convert", "1/a.npz", "a.parquet", says="unknown ending")
        runs = []
        for number, name in enumerate(("1/a.npz", "2/a.nacre")):
            self.ok("train", "--data", name, "--epochs", 2, "--checkpoint", f"run{number}")
            runs.append(json.loads(self.read(f"run{number}/epoch-000002/state.json"))["fingerprint"])
        self.assertEqual(runs[0], runs[1], "the same data are the same run, whatever file they come from")

    def test_edge_lists_with_files_beside(self):
        self.write("edges.txt", "# SNAP\n" + "".join(f"{v}\t{(v + 1) % 40}\n" for v in range(40)))
        self.write("y.txt", "".join(f"{v % 3}\n" for v in range(40)))
        self.write("x.csv", "".join(f"{v % 3},{v % 5},1.5\n" for v in range(40)))
        self.write("s.txt", "".join(("train", "val", "test")[v % 3] + "\n" for v in range(40)))
        self.ok("train", "--data", "edges.txt", "--undirected", "--features", "x.csv", "--labels", "y.txt", "--splits",
                "s.txt", "--epochs", 2, "--checkpoint", "run")
        self.ok("eval", "--checkpoint", "run")
        self.refused("train", "--data", "edges.txt", says="--features")
        self.refused("train", "--data", "edges.txt", "--features", "x.csv", says="--labels")

    def test_names_may_hold_any_bytes(self):
        name = os.fsdecode(b"caf\xe9 \xff.npz")
        (self.dir / name).write_bytes(cli.small_npz())
        self.ok("train", "--data", name, "--epochs", 2, "--checkpoint", "run", "--json").last_json()
        self.ok("data", "info", name, "--json")

    def test_devices(self):
        self.assertIn("cpu", self.ok("devices").out)
        self.assertIn("nacre", self.ok("--version").out)
        for command in ((), ("train",), ("data", "convert")):
            self.assertIn("Usage", self.ok(*command, "--help").out)


if __name__ == "__main__":
    cli.main()
