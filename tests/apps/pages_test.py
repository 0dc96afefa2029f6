#!/usr/bin/env python3
"""Runs every command of the user pages exactly as it is written, and compares the kind of output
with the page.

    python3 tests/apps/pages_test.py build/release/nacre

A page's commands are the lines of its ```sh blocks. They run one after the other in one folder.
A command that must fail ends with `# exit status N`. Lines of a plain ``` block behind such a
block are output: each that is not indented must begin with a word that a line of the real output
begins with. The rest of the line (times, sizes, scores) differs from machine to machine and is
not compared.
"""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import cli

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
STATUS = re.compile(r"\s+# exit status (\d+)$")


def first_word(line):
    """Returns the first word of a line, with # for every number in it."""
    words = line.split()
    return re.sub(r"\d[\d.]*", "#", words[0]) if words else ""


class Pages(cli.CliTest):
    @classmethod
    def setUpClass(cls):
        # All pages share one profile of the machine, which is measured quickly.
        folder = tempfile.TemporaryDirectory(prefix="nacre-pages-")
        cls.addClassCleanup(folder.cleanup)
        cls.cache = folder.name
        subprocess.run([cli.PROGRAM, "profile", "--seconds", "0.5", "-q"], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, NACRE_CACHE=cls.cache, NACRE_PLUGIN_PATH="/absent"))

    def setUp(self):
        super().setUp()
        (self.dir / "bin").mkdir()
        (self.dir / "bin/nacre").symlink_to(pathlib.Path(cli.PROGRAM).resolve())

    def environment(self):
        path = f"{self.dir / 'bin'}:{os.environ.get('PATH', '')}"
        return dict(super().environment(), NACRE_CACHE=self.cache, PATH=path)

    def shell(self, line):
        """Runs a line of a page; returns what it printed."""
        wanted = STATUS.search(line)
        command = STATUS.sub("", line)
        done = subprocess.run(["bash", "-c", command], cwd=self.dir, env=self.environment(), text=True, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, int(wanted[1]) if wanted else 0, f"{command}\n{done.stdout[-2000:]}")
        return done.stdout

    def run_page(self, name):
        """Runs the commands of a page; returns how many there were."""
        count, printed = 0, ""
        for language, text in BLOCK.findall((DOCS / name).read_text()):
            lines = text.splitlines()
            if language == "sh":
                printed = "".join(self.shell(line) for line in lines)
                printed += "".join(path.read_text() for path in self.dir.glob("*.csv"))
                count += len(lines)
            elif language == "toml" and not (self.dir / "graph.toml").exists():
                self.write("graph.toml", text)
            elif language == "" and printed:
                real = {first_word(line) for line in printed.splitlines()}
                for line in lines:
                    known = line.startswith((" ", "…")) or first_word(line) in real
                    self.assertTrue(known, f"{name}: no line of output begins as '{line}'")
                printed = ""
        return count

    def first_run(self):
        self.shell("nacre train --data twin:cora --hidden 16 --epochs 100 --checkpoint runs/first -q")

    def test_quick_start(self):
        self.assertEqual(self.run_page("quick_start.md"), 12)

    def test_minibatches(self):
        self.assertEqual(self.run_page("minibatches.md"), 12)

    def test_plans(self):
        self.assertEqual(self.run_page("plans.md"), 15)

    def test_many_devices(self):
        self.assertEqual(self.run_page("many_devices.md"), 5)

    def test_configuration(self):
        self.assertEqual(self.run_page("configuration.md"), 2)

    def test_recommend(self):
        self.assertEqual(self.run_page("recommend.md"), 5)

    def test_run_folder(self):
        self.first_run()
        self.assertEqual(self.run_page("run_folder.md"), 4)

    def test_exit_codes(self):
        self.assertEqual(self.run_page("exit_codes.md"), 3)

    def test_gpu(self):
        self.assertEqual(self.run_page("gpu.md"), 1)

    def test_training(self):
        self.write("set.npz", cli.small_npz())
        self.shell("nacre train --data set.npz --epochs 2 --checkpoint run -q")
        self.assertEqual(self.run_page("training.md"), 2)


if __name__ == "__main__":
    cli.main()
