#!/usr/bin/env python3
"""Tests the command line as people use it: typos, settings files, terminals of any width,
warnings, and files that are already there."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
import unittest.mock

import cli

TWIN = "twin:cora@0.1"


class Typos(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.write("small.npz", cli.small_npz())

    def test_commands(self):
        self.assertIn("did you mean 'train'?", self.refused("trian", says="unknown command 'trian'"))
        self.assertIn("did you mean 'info'?", self.refused("data", "inof", "x", says="unknown subcommand 'inof'"))
        self.assertIn("did you mean 'wisegraph'?", self.refused("bench", "wisegrph"))
        self.refused("help", "trian", says="did you mean 'train'?")
        self.refused(says="needs a command (choose devices")
        self.refused("data", says="needs a subcommand (choose list")
        self.refused("train", "small.npz", says="name the data with --data")
        self.assertEqual(self.ok("version").out, self.ok("--version").out)
        self.assertIn("train", self.ok("help").out)
        self.assertEqual(self.ok("help", "train").out, self.ok("train", "--help").out)
        self.assertEqual(self.ok("help", "data", "info").out, self.ok("data", "info", "--help").out)

    def test_options(self):
        for typed, meant in (("--modle", "--model"), ("--hiden", "--hidden"), ("--layer", "--layers"),
                             ("--learning-rte=1", "--lr"), ("--batchsize", "--batch-size")):
            line = self.refused("train", "--data", "small.npz", typed, "1", says=f"unknown option '{typed.split('=')[0]}'")
            if meant != "--lr":
                self.assertIn(f"did you mean '{meant}'?", line)

    def test_unknown_names_list_the_known_ones(self):
        for option, value, says in (("--sampler", "nieghbor", "unknown sampler 'nieghbor' (did you mean 'neighbor'?"),
                                    ("--mode", "mini", "unknown mode 'mini' (did you mean 'minibatch'?"),
                                    ("--model", "gnc", "unknown model 'gnc' (did you mean 'gcn'?"),
                                    ("--device", "tpu", "unknown device 'tpu'"),
                                    ("--precision", "f16", "unknown precision 'f16'"),
                                    ("--recompute", "fitt", "did you mean 'fit'?"),
                                    ("--positives", "user", "did you mean 'users'?"),
                                    ("--features-on", "hsot", "did you mean 'host'?")):
            self.refused("train", "--data", "small.npz", option, value, says=says)

    def test_data_and_numbers(self):
        self.assertIn("did you mean 'cora'?", self.refused("train", "--data", "twin:coar"))
        self.ok("data", "info", "twin:Cora@0.1")
        self.refused("train", "--data", "small.npz", "--format", "npy", says="--format: unknown format 'npy' (did you mean 'npz'?")
        self.refused("train", "--data", "small.npz", "--epochs", "x", says="--epochs: 'x' is not a whole number")
        self.refused("train", "--data", "small.npz", "--layers", "1.5", says="--layers: '1.5' is not a whole number")
        self.refused("train", "--data", "small.npz", "--lr", "fast", says="--lr: 'fast' is not a number")

    def test_capitals_and_synonyms_work(self):
        common = ("--data", "small.npz", "--epochs", 1, "--hidden", 8, "--json", "--no-checkpoint")
        self.assertEqual(json.loads(self.ok("train", *common, "--model", "GCN").out)["model"], "gcn")
        self.assertEqual(json.loads(self.ok("TRAIN", *common, "--model", "GraphSAGE").out)["model"], "sage")
        self.ok("train", *common, "--mode", "mini-batch", "--sampler", "LADIES", "--fanout", "4,4")
        self.ok("train", *common, "--plan", "OFF", "--optimizer", "AdamW", "--lr-schedule", "Cosine", "--norm", "BatchNorm", "--device", "CPU")
        self.refused("train", *common, "--device", "GPU", says="'cuda' was not found")

    def test_what_is_missing(self):
        self.refused("train", "--data", "twin:cora", "--model", says="--model: needs a value")
        self.refused("explain", "--run", says="--run: needs a value")
        self.refused("train", says="--data is required")
        self.refused("data", "info", says="the source is missing")
        self.refused("data", "export", "twin:cora", says="the output is missing")

    def test_flags_take_no_values(self):
        for flag in ("--no-plan-cache", "--deterministic", "--residual"):
            self.refused("train", "--data", "small.npz", f"{flag}=9223372036854775808", says=flag[2:])

    def test_help_has_no_riddles(self):
        for command in (("train",), ("plan",), ("bench", "cpu"), ("data", "convert")):
            self.assertNotIn("{false}", self.ok(*command, "--help").out)


class Settings(cli.CliTest):
    """Tests --config."""

    def setUp(self):
        super().setUp()
        self.write("small.npz", cli.small_npz())

    def settings(self, text, *arguments):
        self.write("run.toml", text)
        return self.nacre("train", "--config", "run.toml", "--no-checkpoint", "--json", *arguments)

    def refused_settings(self, text, says):
        self.write("run.toml", text)
        return self.refused("train", "--config", "run.toml", "--no-checkpoint", says=says)

    def test_toml(self):
        result = self.settings('''# a comment with [brackets] and a = b.c.d.e.f
data = "small.npz"
mode = "minibatch"
fanout = [4, 3]
batch_size = 10
residual = true
undirected = false
[training]
epochs = 2
lr = 1e-2
[model]
hidden = 16
''', "--epochs", 3)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(json.loads(result.out)["epochs"], 3, "the command line wins")

    def test_broken_files_are_refused_with_their_line(self):
        for text, line in (("epochs = = 3\n", 1), ('data = "small.npz"\nepochs = \n', 2), ("data: small.npz\nepochs: 3\n", 1),
                           ("- data\n", 1), ('\n\n[training\nepochs = 3\n', 3), ("epochs = 3\nepochs = 4\n", 2),
                           ("epochs 3\n", 1), ('data = "small.npz\n', 1), ("[a]\nepochs = 2\n[b]\nepochs = 3\n", 4)):
            self.refused_settings(text, f"run.toml, line {line}: ")

    def test_unknown_keys_get_a_suggestion(self):
        self.assertIn("did you mean 'hidden'?", self.refused_settings('data = "small.npz"\nhiden = 3\n', "line 2: unknown setting 'hiden'"))
        self.assertIn("did you mean 'lr'?", self.refused_settings('[training]\nlrr = 3\n', "line 2: unknown setting 'lrr'"))
        self.refused_settings('config = "other.toml"\n', "cannot name another one")
        self.refused_settings('residual = 3\n', "either true or false")
        self.refused_settings('epochs = 2020-01-01\n', "'epochs' must be")
        self.refused_settings('model = "gnc"\n', "did you mean 'gcn'?")

    def test_depth_and_size_are_bounded(self):
        for text in ("[" + ".".join(["a"] * 10000) + "]\nx = 1\n", ".".join(["a"] * 10000) + " = 1\n",
                     "x = " + "[" * 100000 + "]" * 100000 + "\n", "x = " + "{a=" * 5000 + "1" + "}" * 5000 + "\n"):
            self.refused_settings(text, "nested deeper than 4 levels")
        self.write("deep.json", "[" * 100000)
        self.refused("train", "--config", "deep.json", says="nested deeper", memory=1 << 30)
        self.write("deep.json", '{"a":' * 100000)
        self.refused("train", "--config", "deep.json", says="nested deeper", memory=1 << 30)
        self.refused_settings("#" * (2 << 20), "too large")
        self.refused("train", "--config", "/dev/zero", says="too large for a file of settings", memory=1 << 30)
        self.write("bad.json", '{\n"epochs": 3,\n')
        self.refused("train", "--config", "bad.json", says="bad.json, line ")

    def same_again(self, *arguments):
        self.ok("train", "--checkpoint", "first", *arguments)
        self.ok("train", "--config", "first/config.json", "--checkpoint", "second")
        self.assertEqual(self.read("first/model.safetensors"), self.read("second/model.safetensors"), arguments)
        self.assertEqual(self.read("first/config.json"), self.read("second/config.json"), arguments)
        for folder in ("first", "second"):
            subprocess.run(["rm", "-r", str(self.dir / folder)], check=True)

    def test_a_run_is_repeated_by_its_own_config(self):
        common = ("--data", "small.npz", "--epochs", 3, "--hidden", 8)
        self.same_again(*common)
        self.same_again(*common, "--model", "gat", "--heads", 2, "--attention-dropout", 0.2, "--optimizer", "sgd",
                        "--momentum", 0.5, "--lr-schedule", "step", "--lr-step", 2, "--seed", 7)
        self.same_again(*common, "--model", "rgcn", "--relations", 3, "--num-bases", 2, "--undirected", "--plan", "off")
        self.same_again(*common, "--model", "ngcf", "--set", "normalize=1", "--norm", "layer", "--residual")
        self.same_again(*common, "--mode", "minibatch", "--fanout", "4,3", "--batch-size", 7, "--replace", "--model", "sage")
        self.same_again(*common, "--mode", "minibatch", "--sampler", "saint-walk", "--walk-length", 3, "--budget", 5)

    def test_a_run_with_changes(self):
        self.ok("train", "--data", "small.npz", "--epochs", 2, "--checkpoint", "first")
        result = json.loads(self.ok("train", "--config", "first/config.json", "--epochs", 4, "--model", "gin", "--json",
                                    "--no-checkpoint").out)
        self.assertEqual((result["epochs"], result["model"]), (4, "gin"))

    def test_a_pipe_of_settings_reaches_models_in_python(self):
        """The program reads the pipe before it gives way to Python. Here a script, which prints the
        settings that it finds, stands for Python."""
        self.write("python", """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    --config) exec cat "$2" ;;
    --config=*) exec cat "${1#--config=}" ;;
  esac
  shift
done
""")
        (self.dir / "python").chmod(0o755)
        self.write("model.py", "")
        os.mkfifo(self.dir / "settings")
        text = 'model = "model.py"\nlr = 0.5\n'
        for words in (("--config", "settings"), ("--config=settings",)):
            writer = threading.Thread(target=(self.dir / "settings").write_text, args=(text,), daemon=True)
            writer.start()
            with unittest.mock.patch.dict(os.environ, NACRE_PYTHON=str(self.dir / "python")):
                result = self.ok("train", "--data", "small.npz", *words, timeout=30)
            self.assertEqual(result.out, text, words)
            writer.join(timeout=30)


class Terminal:
    """Runs the program on a terminal of some width and keeps what it wrote."""

    def __init__(self, test, columns, *arguments, **environment):
        self.master, slave = pty.openpty()
        self.resize(columns)
        env = dict(test.environment(), **{"TERM": "xterm-256color", **environment})
        if "NO_COLOR" not in environment:
            env.pop("NO_COLOR", None)
        self.process = subprocess.Popen([cli.PROGRAM, *map(str, arguments)], cwd=test.dir, env=env, stdin=slave,
                                        stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.text = b""

    def resize(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read(self, until=None, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if until and until in self.text:
                return
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:
                    break
                if not data:
                    break
                self.text += data

    def finish(self):
        self.read()
        os.close(self.master)
        return self.process.wait(timeout=60)

    def lines(self, text=None):
        """Returns what stood on the lines of the screen, without control sequences."""
        plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", self.text if text is None else text)
        return [line.decode() for line in re.split(rb"[\r\n]+", plain)]


class Terminals(cli.CliTest):
    SLOW = ("train", "--data", TWIN, "--model", "gat", "--hidden", 256, "--no-checkpoint")

    def setUp(self):
        super().setUp()
        if cli.SANITIZED:
            self.skipTest("a sanitized program is too slow for tests that wait for the screen")

    def progress_lines(self, lines):
        return [line for line in lines if re.search(r"\d+%  epoch", line)]

    def test_progress_fits_the_width(self):
        for columns in (50, 80, 132):
            screen = Terminal(self, columns, *self.SLOW, "--epochs", 150)
            self.assertEqual(screen.finish(), 0, screen.text)
            shown = self.progress_lines(screen.lines())
            self.assertGreater(len(shown), 1, screen.text)
            for line in shown:
                self.assertLess(len(line), columns, line)
                self.assertRegex(line, r"loss \d")
            self.assertEqual(any("[#" in line for line in shown), columns >= 80)

    def test_progress_follows_a_resize(self):
        screen = Terminal(self, 120, *self.SLOW, "--epochs", 600)
        screen.read(until=b"epoch 3")
        before = len(screen.text)
        screen.resize(50)
        time.sleep(0.3)
        screen.read(seconds=0.5)
        # The first two may be older than the resize.
        after = self.progress_lines(screen.lines(screen.text[before:]))[2:]
        screen.process.send_signal(signal.SIGINT)
        screen.finish()
        self.assertGreater(len(after), 0, screen.text)
        for line in after:
            self.assertLess(len(line), 50, line)

    def test_colours(self):
        wrong = ("train", "--data", TWIN, "--model", "gnc")
        for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)):
            screen = Terminal(self, 80, *wrong, **environment)
            self.assertEqual(screen.finish(), 2)
            self.assertEqual(b"\x1b[1;31m" in screen.text, coloured, (environment, screen.text))
            self.assertIn("nacre: --model: unknown model", screen.lines()[0])
        self.assertNotIn("\x1b", self.nacre(*wrong).err, "none in a pipe")

    def test_a_dumb_terminal_gets_plain_lines(self):
        screen = Terminal(self, 80, *self.SLOW, "--epochs", 20, TERM="dumb")
        self.assertEqual(screen.finish(), 0)
        self.assertNotIn(b"\x1b", screen.text)


class Warnings(cli.CliTest):
    def edge_list(self, labels):
        n = 60
        self.write("e.txt", "".join(f"{v} {(v + s) % n} {1 + s}\n" for v in range(n) for s in (1, 2, 5)))
        self.write("x.csv", "".join(f"{v % 3},{v % 5},1\n" for v in range(n)))
        self.write("y.txt", "".join(f"{label}\n" for label in labels(n)))
        self.write("s.txt", "".join(f"{('train', 'val', 'test')[v % 3]}\n" for v in range(n)))
        return ("--data", "e.txt", "--features", "x.csv", "--labels", "y.txt", "--splits", "s.txt", "--epochs", 1)

    def warned(self, *arguments):
        result = self.ok("train", *arguments, "-q", "--checkpoint", "run")
        lines = [line[9:] for line in result.err.splitlines() if line.startswith("warning: ")]
        self.assertEqual(result.err.splitlines(), ["warning: " + line for line in lines], "-q leaves warnings alone")
        kept = self.read("run/warnings.txt").decode().splitlines() if (self.dir / "run/warnings.txt").exists() else []
        self.assertEqual(kept, lines)
        subprocess.run(["rm", "-r", str(self.dir / "run")], check=True)
        return lines

    def test_what_changes_results_is_told_even_when_quiet(self):
        data = self.edge_list(lambda n: [v % 3 for v in range(n)])
        self.assertRegex("\n".join(self.warned(*data)), "third column of .*e.txt was read as edge weight")
        self.write("small.npz", cli.small_npz())
        self.assertEqual(self.warned("--data", "small.npz", "--epochs", 1), [])
        lines = self.warned("--data", "small.npz", "--model", "rgcn", "--epochs", 1)
        self.assertRegex(lines[0], "each edge got one of 7 made-up relations")

    def test_doubtful_classes(self):
        lines = self.warned(*self.edge_list(lambda n: [v % 3 for v in range(n - 1)] + [50000]))
        self.assertRegex("\n".join(lines), "50,001 classes, of which only 4 occur")
        lines = self.warned(*self.edge_list(range))
        self.assertRegex("\n".join(lines), "60 classes for 60 labelled nodes; check that the file holds labels")

    def test_made_up_classes_of_twins(self):
        result = self.ok("train", "--data", "twin:citation2@0.0002", "--epochs", 1, "--no-checkpoint", "-q")
        self.assertIn("link prediction", result.err)
        self.assertIn("warning", self.ok("data", "info", "twin:citation2@0.0002", "-q").out)

    def test_warnings_travel_with_converted_data(self):
        data = self.edge_list(lambda n: [v % 3 for v in range(n)])
        self.ok("data", "convert", "e.txt", "e.nacre", *data[2:8])
        self.assertIn("third column", self.ok("train", "--data", "e.nacre", "--epochs", 1, "-q", "--no-checkpoint").err)


class Json(cli.CliTest):
    """With --json, stdout is one JSON object, and docs/command_line.md documents every field of
    it."""

    FREE = ("choices", "options.choices", "attributes", "memory", "training_memory", "dfg.changed", "options.tables", "phases_mb")

    def setUp(self):
        super().setUp()
        self.write("small.npz", cli.small_npz())
        text = (pathlib.Path(__file__).resolve().parents[2] / "docs/command_line.md").read_text()
        self.sections = dict(part.split("\n", 1) for part in text.split("\n### ")[1:])

    def nested(self, value, at=""):
        """Returns the keys of inner objects, without those whose keys depend on the data."""
        found = set()
        for item in value if isinstance(value, list) else [value]:
            for key, inner in item.items() if isinstance(item, dict) else ():
                where = f"{at}.{key}" if at else key
                if at and at not in self.FREE and not (at == "kernels" and isinstance(inner, dict)):
                    found.add(key)
                found |= self.nested(inner, where)
        return found

    def check(self, section, *arguments):
        result = self.ok(*arguments, "--json")
        printed = json.loads(result.out)
        self.assertTrue(result.out.endswith("\n"))
        rows = [row.split("|")[1] for row in self.sections[section].splitlines() if row.startswith("| `")]
        documented = [name for row in rows for name in re.findall("`([^`]+)`", row)]
        self.assertEqual(sorted(documented), sorted(printed), section)
        said = set(re.findall("`([^`]+)`", self.sections[section]))
        self.assertEqual(self.nested(printed) - said, set(), section)
        return printed

    def test_every_field_is_documented(self):
        train = ("train", "--data", "small.npz", "--epochs", 2)
        self.check("nacre train", *train, "--checkpoint", "run")
        self.check("nacre train", *train, "--no-checkpoint", "--mode", "minibatch", "--fanout", "3,3", "-q")
        self.check("nacre train", *train, "--no-checkpoint", "--devices", "cpu:1,cpu:1", "-q")
        self.check("nacre eval", "eval", "--checkpoint", "run")
        self.check("nacre plan", "plan", "--data", "small.npz")
        self.check("nacre explain", "explain", "--data", "small.npz", "--search-seconds", 0, "--steps", 1)
        self.check("nacre explain", "explain", "--run", "run", "--search-seconds", 0.1, "-v")
        self.check("nacre data info", "data", "info", "small.npz")
        self.check("nacre devices", "devices")
        self.check("nacre profile", "profile", "--seconds", 0.05, "-q")
        self.check("nacre profile with --data", "profile", "--data", "small.npz", "--mode", "minibatch", "--fanout",
                   "3,3", "--seconds", 0.05, "-q")

    def environment(self):
        return dict(super().environment(), NACRE_CACHE=str(self.dir / "cache"))

    def test_recommendation(self):
        pairs = [(u, i) for u in range(12) for i in range(9) if (u + i) % 3 == 0]
        train, test = [p for k, p in enumerate(pairs) if k % 4], pairs[::4]
        arrays = {"train_user": train, "train_item": train, "test_user": test, "test_item": test}
        self.write("tastes.npz", cli.npz({k: cli.npy([p[k.endswith("item")] for p in v]) for k, v in arrays.items()}))
        run = ("train", "--data", "tastes.npz", "--model", "lightgcn", "--hidden", 8, "--epochs", 2)
        self.check("nacre train, recommendation", *run, "--checkpoint", "run", "--positives", "pairs")
        self.check("nacre eval, recommendation", "eval", "--checkpoint", "run")
        self.ok("train", "--config", "run/config.json", "--checkpoint", "again")
        self.assertEqual(self.read("run/model.safetensors"), self.read("again/model.safetensors"))
        info = self.ok("data", "info", "tastes.npz").out
        self.assertIn("nacre train --data tastes.npz --model lightgcn", info)
        self.assertNotIn("not as it is", info)
        self.assertEqual(json.loads(self.ok("data", "info", "tastes.npz", "--json").out)["task"], "recommendation")
        for option, value in (("--mode", "minibatch"), ("--fanout", "3,3"), ("--walk-length", 3)):
            self.refused(*run, "--no-checkpoint", option, value, says=option)
        self.refused("plan", "--data", "tastes.npz", says="users and items")


class Idle(cli.CliTest):
    """Options without effect are refused, before the data are read if that is possible."""

    def setUp(self):
        super().setUp()
        self.write("small.npz", cli.small_npz())

    def idle(self, *arguments, data="twin:papers100M@0.01", command="train"):
        words = [command, *(("--data", data) if data else ()), *arguments]
        option = next(word for word in reversed(words) if str(word).startswith("--"))
        # A hundredth of papers100M takes minutes to make, so a refusal within seconds shows that it
        # was not made.
        return self.refused(*words, says=str(option), seconds=5)

    def test_train(self):
        for arguments in (("--model", "gcn", "--heads", 1), ("--out-heads", 1), ("--attention-dropout", 0), ("--num-bases", 0),
                          ("--relations", 3), ("--model", "gin", "--aggr", "sum"), ("--model", "lightgcn", "--norm", "none"),
                          ("--momentum", 0.9), ("--optimizer", "sgd", "--beta1", 0.9), ("--optimizer", "sgd", "--eps", 1e-8),
                          ("--lr-step", 3), ("--lr-gamma", 0.5), ("--lr-schedule", "step", "--lr-final", 0),
                          ("--fanout", "3,3"), ("--batch-size", 10), ("--prefetch", 1), ("--sampler", "layer"), ("--no-relax",),
                          ("--features-on", "host"), ("--mode", "minibatch", "--walk-length", 3),
                          ("--mode", "minibatch", "--sampler", "saint-edge", "--walk-length", 3),
                          ("--mode", "minibatch", "--budget", 3), ("--mode", "minibatch", "--norm-samples", 3),
                          ("--mode", "minibatch", "--sampler", "saint-walk", "--fanout", "3,3"),
                          ("--mode", "minibatch", "--sampler", "saint-walk", "--replace"),
                          ("--mode", "minibatch", "--sample-on", "host"), ("--embedding-decay", 0), ("--positives", "users"),
                          ("--plan", "off", "--no-plan-cache"), ("--deterministic", "--no-plan-cache"),
                          ("--plan", "vertex", "--recompute", "fit"), ("--no-checkpoint", "--keep", 2),
                          ("--no-checkpoint", "--checkpoint-every", 2), ("--format", "npz")):
            self.idle(*arguments)
        # Edge lists and folders are not read either: these are no graphs at all.
        self.write("edges.txt", "no edges\n" * 3)
        self.write("folder/train.txt", "no users\n")
        self.write("folder/test.txt", "no users\n")
        for option in (("--fanout", "3,3"), ("--sampler", "layer"), ("--no-relax",), ("--norm-samples", 3)):
            self.idle(*option, data="edges.txt")
            self.idle(*option, data="folder")
        self.idle("--batch-size", 3, data="edges.txt")
        self.idle("--positives", "users", data="edges.txt")
        self.idle("--data-seed", 3, data="small.npz")
        self.idle("--batch-size", 3, data="small.npz")
        self.idle("--positives", "users", data="small.npz")

    def test_once_the_data_are_read(self):
        self.write("noval.npz", cli.small_npz(val_idx=None))
        self.idle("--patience", 3, data="noval.npz")
        self.write("typed.npz", cli.small_npz(edge_type=cli.npy([v % 2 for v in range(120)])))
        self.idle("--model", "rgcn", "--relations", 3, data="typed.npz")
        for model in (("gcn",), ("sage",), ("gat",), ("gatv2",), ("rgcn",), ("mlp",)):
            self.idle("--model", *model, "--layers", 1, "--hidden", 8, data="small.npz")
        for model in (("gin",), ("ngcf",), ("lightgcn",), ("sage", "--aggr", "lstm"), ("sage-lstm",),
                      ("gcn", "--features", "learned")):
            self.ok("train", "--data", "small.npz", "--model", *model, "--layers", 1, "--hidden", 8, "--epochs", 1,
                    "--no-checkpoint")
        self.ok("train", "--data", "small.npz", "--layers", 1, "--epochs", 1, "--checkpoint", "flat")
        self.ok("train", "--config", "flat/config.json", "--epochs", 1, "--no-checkpoint")

    def test_other_commands(self):
        for arguments in (("--picture", "x.svg", "--mode", "minibatch"),):
            self.refused("plan", "--data", "small.npz", *arguments, says="--picture")
        for option in ("--table=dst-id=1", "--nodes=3", "--first=3"):
            self.refused("plan", "--data", "twin:papers100M@0.01", option, says="is a setting of --picture", seconds=5)
        self.idle("--fanout", "3,3", command="plan")
        self.idle("--device", "cuda:typical", "--memory-limit", "1G", command="plan")
        self.idle("--fanout", "3,3", command="explain")
        for option in ("--plan", "--mode", "--device", "--precision", "--recompute"):
            self.refused("bench", "wisegraph", option, "auto", says=f"unknown option '{option}'")
        self.refused("bench", "cpu", "--mode", "minibatch", says="unknown option '--mode'")
        self.refused("bench", "cpu", "--models", "gcn", "--heads", 2, says="--heads", seconds=5)
        self.ok("train", "--data", "small.npz", "--epochs", 1, "--checkpoint", "run")
        self.refused("eval", "--checkpoint", "run", "--plan", "off", says="unknown option '--plan'")
        self.refused("eval", "--checkpoint", "run", "--labels", "y.txt", says="add --data")
        self.refused("predict", "--checkpoint", "run", "-o", "p.npy", "--scores", says="--scores")
        for option in ("--split", "--splits", "--split-seed"):
            self.refused("predict", "--checkpoint", "run", "-o", "p.csv", option, 1, says=f"unknown option '{option}'")
        self.refused("predict", "--checkpoint", "run", "-o", "p.csv", "--embeddings", "--scores", says="--scores")
        self.refused("explain", "--run", "run", "--hidden", 3, says="is set by the run")
        self.refused("data", "convert", "small.npz", "out.npz", "--memory", "64M", says="--memory")
        self.refused("data", "info", "small.npz", "--data-seed", 3, says="--data-seed")
        self.refused("data", "make", "small.npz", "out.npz", says="is not a twin")


class Plans(cli.CliTest):
    """Tests the summaries of plan and explain, in both modes."""

    def setUp(self):
        super().setUp()
        self.write("small.npz", cli.small_npz())

    BATCHES = ("--mode", "minibatch", "--fanout", "3,2", "--batch-size", 7)

    def test_a_summary_comes_first(self):
        for command in ("plan", "explain"):
            for mode in ((), self.BATCHES):
                arguments = (command, "--data", "small.npz", "--model", "sage", *mode)
                lines = self.ok(*arguments).out.splitlines()
                self.assertLessEqual(len(lines), 14, lines)
                self.assertGreaterEqual(len(lines), 5, lines)
                self.assertRegex(lines[0], r"^sage on small: 2 layers of 64, 40 nodes, 120 edges; ")
                self.assertIn("3 mini-batches of 7 an epoch" if mode else "the whole graph in one step", lines[0])
                titles = [line.split()[0] for line in lines[1:]]
                for title in ("runs", "epoch", "memory", "plan", "chosen"):
                    self.assertIn(title, titles)
                self.assertIn("memory", "\n".join(lines))
                verbose = self.ok(*arguments, "-v").out.splitlines()
                self.assertEqual(verbose[0], lines[0])
                self.assertGreater(len(verbose), 2 * len(lines))

    def test_plan_and_train_tell_the_same_memory(self):
        if cli.SANITIZED:
            self.skipTest("the memory of the sanitizers differs from run to run")
        run = ("--data", "small.npz", "--model", "sage", "--epochs", 1)
        planned = re.search(r"(?m)^memory +([\d.]+ MiB) of", self.ok("plan", *run).out)[1]
        self.assertIn(f"memory: {planned} planned", self.ok("train", *run, "--no-checkpoint").out)
        explained = self.ok("explain", *run, "--search-seconds", 0.1)
        self.assertRegex(explained.out, rf"(?m)^memory +{re.escape(planned)}, the program included")

    def test_plan_of_mini_batches(self):
        out = self.ok("plan", "--data", "small.npz", *self.BATCHES, "-o", "plan.json", "-v").out
        self.assertIn("batches", out, "the bill is that of batches")
        common = ("train", "--data", "small.npz", "--epochs", 1, "--no-checkpoint", "--json")
        self.ok(*common, *self.BATCHES, "--plan", "plan.json")
        self.assertEqual(self.ok(*common, *self.BATCHES, "--plan", "plan.json").last_json()["plan_source"], "file")
        self.ok("plan", "--data", "small.npz", "--device", "cuda:typical", *self.BATCHES)
        self.ok("train", "--data", "small.npz", "--epochs", 2, *self.BATCHES, "--checkpoint", "run")
        self.assertIn("mini-batches", self.ok("explain", "--run", "run").out)

    def test_what_is_said_to_be_chosen_is_not_slower_unless_it_is_said_why(self):
        self.ok("train", "--data", "small.npz", "--epochs", 2, "--checkpoint", "run")
        for arguments in (("--run", "run"), ("--data", "small.npz", "--plan", "edge"), ("--data", "small.npz")):
            out = self.ok("explain", *arguments, "--search-seconds", 0.3).out
            self.assertRegex(out, r"(?m)^compared  ")
            if "these were faster" in out:
                self.assertRegex(out, "by rules|from the file|--plan asks for|earlier search|unless whole steps")
            details = self.ok("explain", *arguments, "--search-seconds", 0.3, "-v").out
            self.assertNotRegex(details, r"(?m)^\s+-\d+\.\d\d ", "no alternative lost by less than nothing")


class Outputs(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.write("small.npz", cli.small_npz())

    def test_files_are_not_replaced_unasked(self):
        for command in (("data", "convert", "small.npz", "out.nacre"), ("data", "convert", "small.npz", "out.npz"),
                        ("data", "make", TWIN, "made.nacre"), ("data", "export", "small.npz", "exported.npz")):
            self.ok(*command)
            before = self.read(command[-1])
            self.refused(*command, says="--force")
            self.assertEqual(self.read(command[-1]), before)
            self.ok(*command, "--force")

    def test_pictures_are_svg(self):
        self.refused("plan", "--data", "small.npz", "--picture", "p.png", says="does not end in .svg")
        self.ok("plan", "--data", "small.npz", "--picture", "p.svg")
        self.assertIn(b"<svg", self.read("p.svg"))

    def test_results_read_well(self):
        out = self.ok("train", "--data", "small.npz", "--epochs", 1, "--no-checkpoint").out
        self.assertRegex(out, r"(?m)^1 epoch in ")
        self.write("noval.npz", cli.small_npz(val_idx=None))
        self.assertIn("validation none", self.ok("train", "--data", "noval.npz", "--epochs", 2, "--no-checkpoint").out)

    def test_memory_rows_are_aligned(self):
        for mode in (("--mode", "full"), ("--mode", "minibatch", "--fanout", "3,3")):
            err = self.ok("train", "--data", "small.npz", "--epochs", 1, "--no-checkpoint", *mode).err
            rows = [line for line in err.splitlines() if line.startswith("  ") and line.endswith("B")]
            self.assertGreater(len(rows), 4, err)
            self.assertEqual(len({len(row) for row in rows}), 1, err)


if __name__ == "__main__":
    cli.main()
