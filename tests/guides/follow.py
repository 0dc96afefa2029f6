#!/usr/bin/env python3
"""Follows the extension guides (docs/add_*.md), each with a toy: adds the toy to a copy of the
tree, builds it, and uses it from the command line.

    python3 -B tests/guides/follow.py [build/release]        (make guides)
    python3 -B tests/guides/follow.py --check                (make lint; builds nothing)

A guide has a checklist: a table whose first column names every file of src/ and apps/ that is
edited or added, with NAME in place of the new thing's name. The toy of the guide to a THING lies
in tests/guides/THING: files to add, at their paths, and edits.txt with texts to replace. The
test fails if a toy touches other files than its guide says, if a guide has more files than
GUIDES allows, or if the toy does not work. The copy and its build stay in build/guides, so a
second run compiles only what changed. The release build lends its program, to compare with, and
its emulated GPU.
"""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = (ROOT / "build/release").resolve()
WORK = ROOT / "build/guides"
TREE, BUILD, RUNS = WORK / "tree", WORK / "build", WORK / "runs"
HERE = pathlib.Path(__file__).resolve().parent

# guide: (page, most files of src/ and apps/ that are edited or added)
GUIDES = {
    "model": ("add_a_model.md", 1),
    "op": ("add_an_op.md", 3),
    "sampler": ("add_a_sampler.md", 2),
    "format": ("add_a_format.md", 2),
    "kernel": ("add_a_kernel.md", 4),
}
NUMBERS = ["no", "one", "two", "three", "four", "five"]
ROW = re.compile(r"^\| `((?:src|apps)/[^`]+)` \|", re.M)


def checklist(page):
    """Returns the files that a guide names, in order."""
    return ROW.findall((ROOT / "docs" / page).read_text())


def added_files(toy):
    return [path.relative_to(HERE / toy) for path in sorted((HERE / toy).rglob("*"))
            if path.is_file() and path.parent != HERE / toy]


def edits(toy):
    """Returns the edits of edits.txt as (file, old text, new text)."""
    path = HERE / toy / "edits.txt"
    if not path.exists():
        return []
    found = []
    for block in re.split(r"^=== ", path.read_text(), flags=re.M)[1:]:
        name, rest = block.split("\n", 1)
        old, new = re.fullmatch(r"--- (.*?)\n\+\+\+ ?(.*)\n", rest, re.S).groups()
        found.append((name.strip(), old, new))
    return found


def tracked_files():
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, text=True,
                            stdout=subprocess.PIPE).stdout.splitlines()
    return [name for name in listed if (ROOT / name).is_file()]


def write_if_changed(path, content):
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def with_toys():
    """Returns the content of every file of the tree after all toys were added."""
    content = {name: (ROOT / name).read_bytes() for name in tracked_files()}
    for toy in GUIDES:
        for path in added_files(toy):
            content[str(path)] = (HERE / toy / path).read_bytes()
        for name, old, new in edits(toy):
            text = content[name].decode()
            if text.count(old) != 1:
                raise SystemExit(f"tests/guides/{toy}/edits.txt: {name} has not exactly one text '{old}'")
            content[name] = text.replace(old, new).encode()
    return content


def make_tree():
    """Makes a copy of the tree with all toys. Files that did not change keep their times."""
    content = with_toys()
    for path in TREE.rglob("*"):
        if path.is_file() and str(path.relative_to(TREE)) not in content:
            path.unlink()
    for name, data in content.items():
        write_if_changed(TREE / name, data)
        os.chmod(TREE / name, (ROOT / name).stat().st_mode if (ROOT / name).exists() else 0o644)


def build(*targets):
    jobs = os.environ.get("JOBS", str(os.cpu_count()))
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"], check=True)
    subprocess.run(["cmake", "--build", BUILD, "--parallel", jobs, "--target", *targets], check=True)


def nacre(*arguments, emulated=False, fails=False, program=BUILD / "nacre"):
    """Runs the program with all toys, or another one; returns what it wrote to stdout, or to
    stderr if it must fail."""
    environment = dict(os.environ, NACRE_CACHE=str(WORK / "cache"),
                       NACRE_PLUGIN_PATH=str(RELEASE / "emulator") if emulated else "/absent")
    done = subprocess.run([program, *arguments], cwd=RUNS, env=environment, text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if (done.returncode != 0) != fails:
        raise AssertionError(f"nacre {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stderr if fails else done.stdout


def train(*arguments, **keywords):
    out = nacre("train", *arguments, "--no-checkpoint", "--deterministic", "--json", "-q", **keywords)
    return json.loads(out)


class Checklists(unittest.TestCase):
    def test_every_guide_names_the_files_its_toy_touches(self):
        for toy, (page, most) in GUIDES.items():
            with self.subTest(guide=page):
                touched = {str(path) for path in added_files(toy)} | {name for name, _, _ in edits(toy)}
                listed = [name.replace("NAME", "toy") for name in checklist(page)]
                self.assertEqual(sorted(listed), sorted(touched))
                self.assertLessEqual(len(listed), most)
                said = f"**{NUMBERS[len(listed)]} file{'s' if len(listed) != 1 else ''}**"
                self.assertIn(said, (ROOT / "docs" / page).read_text(), "the guide says how many files there are")


class Toys(unittest.TestCase):
    def test_model(self):
        data = ["--data", "twin:cora@0.2", "--epochs", "40", "--hidden", "16"]
        result = train("--model", "toy", *data)
        self.assertGreater(result["test_acc"], 0.25)
        self.assertNotEqual(train("--model", "toy", "--set", "sharpness=3", *data)["loss"], result["loss"])
        self.assertIn("toy", nacre("train", "--model", "toyy", *data, fails=True))

    def test_op(self):
        subprocess.run([BUILD / "tests/kernel/test_kernel_activations", "--gtest_brief=1"], check=True)
        common = ["--model", "toy", "--activation", "toy_silu", "--data", "twin:cora@0.1", "--layers", "3", "--epochs",
                  "5", "--hidden", "16"]
        host = train(*common, "--device", "cpu")
        self.assertNotEqual(host["loss"], train(*common[:2], *common[4:], "--device", "cpu")["loss"])
        sources = RUNS / "cuda"
        shutil.rmtree(sources, ignore_errors=True)
        nacre("plan", *common, "--device", "cuda:typical", "--emit-cuda", str(sources))
        texts = "".join(path.read_text() for path in sources.glob("*.cu"))
        self.assertRegex(texts, r"/ \(1\.0f \+ expf\(-", "the operation's CUDA text")
        if not (RELEASE / "emulator/libnacre_cuda.so").exists():
            self.skipTest("the release build has no emulated GPU, so the CUDA text was not run")
        device = train(*common, "--device", "cuda", emulated=True)
        self.assertAlmostEqual(device["loss"], host["loss"], places=4)

    def test_kernel(self):
        common = ["--model", "gcn", "--data", "twin:cora@0.1", "--epochs", "5", "--hidden", "16"]
        self.assertIn("toy_degrees", nacre("plan", "--model", "gcn", "--data", "twin:cora@0.1", "--deterministic", "-v"))
        with_toy = train(*common, "--device", "cpu", "--mode", "minibatch", "--fanout=-1,-1")
        self.assertGreater(with_toy["test_acc"], 0.2)
        without = train(*common, "--device", "cpu", program=RELEASE / "nacre")
        self.assertEqual(train(*common, "--device", "cpu")["loss"], without["loss"], "the same degrees")

    def test_sampler(self):
        common = ["--model", "sage", "--data", "twin:cora@0.2", "--mode", "minibatch", "--batch-size", "64", "--epochs",
                  "5", "--fanout", "4,4"]
        result = train(*common, "--sampler", "toy")
        self.assertGreater(result["test_acc"], 0.2)
        self.assertNotEqual(train(*common)["loss"], result["loss"])
        self.assertEqual(train(*common, "--sampler", "first")["loss"], result["loss"], "a synonym")

    def test_format(self):
        draw = random.Random(1)
        lines = ["toy 90"]
        for v in range(90):
            features = " ".join(f"{draw.random() + (f == v % 3):.3f}" for f in range(3))
            lines.append(f"node {v} {v % 3} {features}")
            lines += [f"edge {draw.randrange(30) * 3 + v % 3} {v}" for _ in range(4)]
        (RUNS / "x.toy").write_text("\n".join(lines) + "\n")
        (RUNS / "bad.toy").write_text("toy 3\nnode 0 1 x\n")
        info = nacre("data", "info", "x.toy")
        self.assertIn("90", info)
        result = train("--data", "x.toy", "--split", "random:0.6/0.2/0.2", "--epochs", "40", "--hidden", "8")
        self.assertGreater(result["test_acc"], 0.6)
        self.assertIn("bad.toy:2", nacre("data", "info", "bad.toy", fails=True))


def main():
    global RELEASE
    if sys.argv[1:] == ["--check"]:
        with_toys()
        unittest.main(argv=[sys.argv[0], "Checklists"], verbosity=0)
    if len(sys.argv) > 1:
        RELEASE = pathlib.Path(sys.argv.pop(1)).resolve()
    RUNS.mkdir(parents=True, exist_ok=True)
    make_tree()
    build("nacre", "test_kernel_activations")
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
