#!/usr/bin/env python3
"""Tests what nacre prints for shells: completions that bash really completes with, and the man
page."""
import shutil
import subprocess
import unittest

import cli

# This script prints the completions of a command line whose last word is at the cursor, as bash
# would ask for them.
COMPLETE = r"""
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_nacre
printf '%s\n' "${COMPREPLY[@]}"
"""


class Completions(cli.CliTest):
    def completed(self, *words):
        """Returns what bash offers for the last of these words."""
        self.write("nacre.bash", self.script)
        done = subprocess.run(["bash", "--norc", "-c", COMPLETE, "bash", "nacre.bash", "nacre", *words], cwd=self.dir,
                              capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def setUp(self):
        super().setUp()
        self.script = self.ok("completions", "bash").out

    def test_bash(self):
        self.assertIn("train", self.completed(""))
        self.assertEqual(self.completed("tr"), ["train"])
        self.assertEqual(self.completed("data", "inf"), ["info"])
        self.assertEqual(self.completed("train", "--model", "gat"), ["gat", "gatv2"])
        # bash passes --optimizer=ad as three words.
        self.assertEqual(self.completed("train", "--optimizer", "=", "ad"), ["adam", "adamw"])
        self.assertEqual(self.completed("train", "--optimizer", "="), ["adam", "adamw", "sgd"])
        self.assertEqual(self.completed("train", "--no-ch"), ["--no-checkpoint"])
        self.assertEqual(self.completed("train", "--data", "x", "--hid"), ["--hidden"])
        self.assertEqual(self.completed("eval", "--hid"), [])
        self.assertLessEqual({"bash", "zsh", "fish"}, set(self.completed("completions", "")))
        self.assertEqual(self.completed("hel"), ["help"])
        self.assertEqual(self.completed("help", "tr"), ["train"])
        self.assertEqual(self.completed("help", "data", "inf"), ["info"])
        self.assertNotIn("help", self.completed("help", ""))

    def test_bash_offers_files(self):
        self.write("graph one.npz", "")
        self.assertEqual(self.completed("train", "--data", "gra"), ["graph", "one.npz"])
        self.write("my_model.py", "")
        self.assertEqual(self.completed("train", "--model", "my_"), ["my_model.py"])

    def test_every_option_is_there(self):
        words = set(self.completed("train", "--"))
        for line in self.ok("help", "train").out.splitlines():
            name = line.strip().split(",")[0].split(" ")[0]
            if line.startswith("  --"):
                self.assertIn(name, words)
        self.assertGreater(len(words), 60)

    def test_zsh_and_fish_offer_files_where_a_value_may_be_one(self):
        zsh = self.ok("completions", "zsh").out.splitlines()
        fish = self.ok("completions", "fish").out.splitlines()

        def train(lines, start, option):
            found = [line for line in lines if start in line and option in line]
            self.assertEqual(len(found), 1, found)
            return found[0]
        begin = zsh.index("_nacre_train() {")
        own = zsh[begin:zsh.index("}", begin)]
        self.assertRegex(train(own, "'--model=", ""), r":value: _nacre_names_or_files (\S+ )*gat ")
        self.assertRegex(train(own, "'--data=", ""), r":value:_files")
        for option, value in (("--optimizer", "adam"), ("--log", "csv")):
            self.assertIn(f":value:({value} ", train(own, f"'{option}=", ""))
        own = '"train"'
        self.assertRegex(train(fish, own, " -l model "), r" -r -F -a '(\S+ )*gat ")
        for option, value in (("optimizer", "adam"), ("log", "csv")):
            self.assertIn(f" -r -f -a '{value} ", train(fish, own, f" -l {option} "))

    def test_zsh_and_fish_know_help(self):
        zsh, fish = (self.ok("completions", shell).out for shell in ("zsh", "fish"))
        for text in (" 'help:list the options of a command'", "help) _nacre_help ;;", "_nacre_help_data() {",
                     "info) _nacre_help_data_info ;;"):
            self.assertIn(text, zsh)
        self.assertIn("""'test (__nacre_command) = ""' -f -a help\n""", fish)
        self.assertIn("""'test (__nacre_command) = "help data"' -f -a info\n""", fish)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        self.write("_nacre", self.ok("completions", "zsh").out)
        done = subprocess.run(["zsh", "-n", "_nacre"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        self.write("nacre.fish", self.ok("completions", "fish").out)
        line = "source nacre.fish; complete -C 'nacre train --optimizer ad'"
        done = subprocess.run(["fish", "--no-config", "-c", line], cwd=self.dir, capture_output=True, text=True)
        # fish prints the description of the option behind each word.
        self.assertEqual(done.stdout.splitlines(), ["adam\tadam, adamw or sgd", "adamw\tadam, adamw or sgd"])

    def test_wrong_usage(self):
        self.refused("completions", says="SHELL is missing")
        self.refused("completions", "csh", says="unknown shell 'csh'")


class Man(cli.CliTest):
    def test_page(self):
        page = self.ok("man").out
        for text in ('.TH NACRE 1', '.SS nacre train', '\\fB\\-\\-model\\fR \\fIVALUE\\fR', '.SS nacre data info'):
            self.assertIn(text, page)
        for name in ("NACRE_CACHE", "XDG_CACHE_HOME", "NACRE_PLUGIN_PATH", "CUDA_HOME", "NACRE_PYTHON", "NO_COLOR",
                     "TERM", "BROWSER"):
            self.assertIn(f".TP\n\\fB{name}\\fR\n", page.partition(".SH ENVIRONMENT")[2])
        for line in page.splitlines():
            self.assertTrue(not line.startswith("'") and (not line.startswith(".") or line[1].isalpha()), line)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_no_warnings(self):
        self.write("nacre.1", self.ok("man").out)
        done = subprocess.run(["groff", "-k", "-man", "-Tutf8", "-ww", "-z", "nacre.1"], cwd=self.dir, capture_output=True,
                              text=True)
        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    cli.main()
