#!/usr/bin/env python3
"""Every layout, written by write_formats.py, is read back exactly; damaged ones are refused with
one line.

    python3 tests/data/formats_test.py build/release/tests/data/dump_dataset build/release/nacre \\
        -v Formats.test_read_back
"""
import gzip
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import numpy as np

import old_pickle
import write_formats

DUMPER = NACRE = ""


def dump(path, format="", files=()):
    done = subprocess.run([DUMPER, str(path), format, *map(str, files)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{path}: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = Path(tempfile.mkdtemp(prefix="nacre-formats-"))
        cls.cases = write_formats.write_all(cls.dir)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def check(self, case):
        found = dump(case.path, case.format, case.files)
        found["edges"].sort()
        for key, value in case.expected.items():
            self.assertEqual(found[key], value, f"{case.name}: {key}")
        return found

    def test_read_back(self):
        for case in self.cases:
            with self.subTest(case.name):
                self.check(case)

    def test_one_fingerprint_for_one_set(self):
        prints = {case.name: self.check(case)["fingerprint"] for case in self.cases[:len(write_formats.SAME)]}
        self.assertGreaterEqual(len(prints), 5)
        self.assertEqual(len(set(prints.values())), 1, prints)

    def test_the_same_weights_whatever_the_layout(self):
        weights = {}
        # The edge list needs more than --data to be the same set.
        for case in self.cases[1:len(write_formats.SAME)]:
            run = self.dir / ("run " + case.name)
            subprocess.run([NACRE, "train", "--data", case.path, "--model", "gcn", "--hidden", "8", "--epochs", "5", "--threads", "1",
                            "--deterministic", "--quiet", "--checkpoint", run], check=True, stdout=subprocess.DEVNULL)
            weights[case.name] = next(run.glob("epoch-*")) / "model.safetensors"
        self.assertGreaterEqual(len(weights), 5)
        self.assertEqual(len({path.read_bytes() for path in weights.values()}), 1, list(weights))

    def test_random_split_of_igb(self):
        case = next(c for c in self.cases if c.name == "igbh")
        found = dump(case.path, case.format)
        sizes = [len(found[part]) for part in ("train", "val", "test")]
        self.assertEqual(sizes, [7, 2, 3])
        self.assertEqual(sorted(sum((found[part] for part in ("train", "val", "test")), [])), list(range(write_formats.NODES)))

    def test_undirected_adds_reverse_relations(self):
        case = next(c for c in self.cases if c.name == "ogb-hetero csv")
        found = dump(case.path, "ogb-hetero+undirected")
        self.assertEqual(found["relations"][3:], [[1, "rev_affiliated_with", 0], [2, "rev_writes", 0]])
        edges = {tuple(e[:3]) for e in case.expected["edges"]}
        for src, dst, kind in list(edges):
            edges.add((dst, src, {0: 3, 1: 4, 2: 2}[kind]))
        self.assertEqual(sorted(map(tuple, (e[:3] for e in found["edges"]))), sorted(edges))

    def convert(self, case, output, *options, **more):
        return subprocess.run([NACRE, "data", "convert", case.path, output, "--quiet", "--force", *(["--format", case.format] if case.format else []),
                               *options], capture_output=True, text=True, **more)

    def test_converted_is_the_same_set(self):
        """Large layouts stream, others go through memory: what comes out is what reading gives."""
        for case in self.cases:
            reversing = ("", "+undirected") if case.name in ("ogb-hetero npz", "igbh", "ogb ogbn_products", "graphbolt kinds") else ("",)
            for undirected in reversing:
                with self.subTest(case.name + undirected):
                    output = self.dir / "converted.nacre"
                    files = [f"--{option}={file}" for option, file in zip(("features", "labels", "splits", "num-nodes"), case.files)]
                    done = self.convert(case, output, *files, *(["--undirected"] if undirected else []))
                    self.assertEqual(done.returncode, 0, done.stderr)
                    expected, found = dump(case.path, case.format + undirected, case.files), dump(output)
                    for key in expected:
                        if key != "notes":
                            self.assertEqual(found[key], expected[key], key)
                    self.assertEqual([n for n in expected["notes"] if n not in found["notes"]], [])

    def test_exported_kinds_are_the_same_set(self):
        for name in ("igbh", "mag240m", "dgl-csv kinds", "graphbolt kinds", "triples", "lightgcn"):
            case = next(c for c in self.cases if c.name == name)
            converted, output = self.dir / "kinds.nacre", self.dir / "kinds.npz"
            self.assertEqual(self.convert(case, converted).returncode, 0)
            done = subprocess.run([NACRE, "data", "export", converted, output, "--force", "--quiet"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            expected, found = dump(case.path, case.format), dump(output)
            for key in expected:
                if key not in ("notes", "name", "original_ids", "node_names"):
                    self.assertEqual(found[key], expected[key], f"{name}: {key}")
            with np.load(output) as arrays:
                self.assertEqual([word.decode() for word in arrays["node_types"]], expected["node_types"])

    def test_kinds_are_projected_to_a_width(self):
        case = next(c for c in self.cases if c.name == "igbh")
        done = subprocess.run([NACRE, "train", "--data", case.path, "--format", case.format, "--model", "rgcn", "--hidden", "8",
                               "--input-dim", "6", "--epochs", "1"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("projected to 6", done.stderr)

    def test_ogb_splits_of_pytorch(self):
        for name, inner in (("ogb npz", None), ("ogb-hetero npz", "paper")):
            case = next(c for c in self.cases if c.name == name)
            parts = dict(train=write_formats.TRAIN, valid=write_formats.VAL, test=write_formats.TEST)
            for layout in ("dict", "files")[:1 if inner else 2]:
                folder = self.dir / f"pt {name} {layout}"
                shutil.copytree(case.path, folder)
                shutil.rmtree(folder / "split")
                (folder / "split/time").mkdir(parents=True)
                if layout == "dict":
                    arrays = {key: np.array(ids) if key == "valid" else old_pickle.Tensor(ids) for key, ids in parts.items()}
                    old_pickle.torch_file(folder / "split/time/split_dict.pt",
                                          {key: {inner: ids} for key, ids in arrays.items()} if inner else arrays)
                else:
                    for key, ids in parts.items():
                        old_pickle.torch_file(folder / f"split/time/{key}.pt", old_pickle.Tensor(ids))
                self.assertEqual(dump(folder)["fingerprint"], dump(case.path)["fingerprint"], f"{name} {layout}")

    def test_interrupted_conversion_of_a_folder_goes_on(self):
        case = write_formats.write(write_formats.igbh_large, self.dir / "large")
        whole, again = self.dir / "whole.nacre", self.dir / "again.nacre"
        options = ["--undirected", "--memory", "64M", "--feature-dtype", "bf16"]
        self.assertEqual(self.convert(case, whole, *options).returncode, 0)
        # The disk is full while sorting, twice, then while writing features.
        for limit in (9 << 20, 16 << 20, 25 << 20):
            stop = lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            done = self.convert(case, again, *options, preexec_fn=stop)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertFalse(again.exists())
        entries = [line.split()[1] for line in (self.dir / "again.nacre.partial/journal").read_text().splitlines()]
        self.assertGreaterEqual(entries.count("run"), 2)
        self.assertIn("graph", entries)
        self.assertIn("section", entries[entries.index("graph"):])
        self.assertEqual(self.convert(case, again, *options).returncode, 0)
        self.assertEqual(whole.read_bytes(), again.read_bytes())

    def test_layouts_that_are_read_whole_must_fit(self):
        folder = self.dir / "wide"
        shutil.copytree(next(c for c in self.cases if c.name == "saint").path, folder)
        with open(folder / "feats.npy", "wb") as file:
            np.lib.format.write_array_header_1_0(file, dict(descr="<f4", fortran_order=False, shape=(write_formats.NODES, 1 << 20)))
            file.truncate(file.tell() + (write_formats.NODES * 4 << 20))
        case = write_formats.Case("wide", folder, {})
        done = self.convert(case, self.dir / "wide.nacre", "--memory", "64M")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--memory", done.stderr)
        done = self.convert(case, self.dir / "wide.nacre", "--memory", "256M")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_folders_that_are_not_clear(self):
        both = self.dir / "both"
        shutil.copytree(next(c for c in self.cases if c.name == "saint").path, both)
        shutil.copy(next(c for c in self.cases if c.name == "dgl-csv").path / "meta.yaml", both)
        empty = self.dir / "empty"
        empty.mkdir()
        for path, words in ((both, ["saint (", "dgl-csv (", "--format"]), (empty, ["no known layout", "planetoid"])):
            done = subprocess.run([DUMPER, path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
            for word in [str(path)] + words:
                self.assertIn(word, done.stderr)
        self.assertEqual(dump(both, "saint")["nodes"], write_formats.NODES)

    def test_pickles_run_nothing(self):
        case = write_formats.write(write_formats.planetoid, self.dir / "evil")
        mark = self.dir / "ran"
        (case.path / "ind.tiny.graph").write_bytes(b"cos\nsystem\n(S'touch " + str(mark).encode() + b"'\ntR.")
        done = subprocess.run([DUMPER, case.path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("os system", done.stderr)
        self.assertFalse(mark.exists())

    def test_cora_as_planetoid(self):
        source = Path(os.environ.get("NACRE_DATASETS", "../shared/datasets")) / "cora.npz"
        if not source.exists():
            self.skipTest("NACRE_DATASETS holds no cora.npz")
        cora, folder = np.load(source), self.dir / "cora"
        x, onehot = cora["x"], np.eye(7, dtype=np.int32)[cora["y"]]
        edges = cora["edge_index"].T.tolist()
        neighbours = {v: [] for v in range(len(x))}
        for a, b in edges:
            neighbours[a].append(b)
        test = random.Random(1).sample(range(1708, 2708), 1000)
        folder.mkdir()
        for name, value in dict(x=old_pickle.csr_matrix(x[:140]), allx=old_pickle.csr_matrix(x[:1708]), tx=old_pickle.csr_matrix(x[test]),
                                y=onehot[:140], ally=onehot[:1708], ty=onehot[test], graph=neighbours).items():
            (folder / f"ind.cora.{name}").write_bytes(old_pickle.python2(value))
        write_formats.text(folder / "ind.cora.test.index", test)
        self.assertEqual(dump(folder)["fingerprint"], dump(source)["fingerprint"])


class Damage:
    """Seeded changes to the files of one case; half of them reach inside compressed files, under
    a correct checksum."""

    def __init__(self, case, seed):
        root = case.path if case.path.is_dir() else case.path.parent
        self.files = [p for p in sorted(root.rglob("*")) if p.is_file()] if case.path.is_dir() else [case.path]
        self.rng = random.Random(seed)

    def bytes(self, data):
        data = bytearray(data)
        if not data or self.rng.random() < 0.3:
            return bytes(data[:self.rng.randrange(len(data) + 1)])
        for _ in range(self.rng.choice((1, 1, 2, 8))):
            at = self.rng.randrange(len(data))
            data[at] = self.rng.choice((data[at] ^ 1 << self.rng.randrange(8), 0, 255, self.rng.randrange(256), ord("9"), ord("-")))
        return bytes(data)

    def inside(self, data):
        if data[:2] == b"\x1f\x8b":
            return gzip.compress(self.bytes(gzip.decompress(data)), 1)
        if data[:2] != b"PK":
            return self.bytes(data)
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
            chosen = self.rng.choice(old.namelist())
            for name in old.namelist():
                new.writestr(name, self.bytes(old.read(name)) if name == chosen else old.read(name))
        return out.getvalue()

    def apply(self):
        path = self.rng.choice(self.files)
        whole = path.read_bytes()
        path.write_bytes(self.inside(whole) if self.rng.random() < 0.5 else self.bytes(whole))
        return path, whole


# A byte, line, row or entry: of which file is said before it. "meta.yaml:7" is a line.
PLACE = re.compile(r"(\b(byte|line|row|entry|edge|position) -?\d+|:\d+:)")


class Damaged(unittest.TestCase):
    CHANGES = 60

    def check_message(self, message, files, what):
        """Checks that the message names a file of the set, and a place in it."""
        names = sorted((str(f) for f in files if str(f) in message), key=len)
        self.assertTrue(names, what)
        self.assertRegex(message.replace(names[-1], "FILE"), PLACE, what)

    def test_damaged_files(self):
        with tempfile.TemporaryDirectory(prefix="nacre-formats-") as folder, subprocess.Popen(
                [DUMPER, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace") as server:
            refused = {}
            for number, case in enumerate(write_formats.write_all(folder)):
                damage = Damage(case, number)
                for change in range(self.CHANGES):
                    path, whole = damage.apply()
                    server.stdin.write(f"{case.format}\t{case.path}\n")
                    server.stdin.flush()
                    answer = server.stdout.readline().rstrip("\n")
                    what = f"{case.name}, change {change} to {path.name}: {answer}"
                    self.assertIn(answer[:2].strip(), ("0", "2"), what)
                    if answer.startswith("2"):
                        refused[case.name] = refused.get(case.name, 0) + 1
                        self.check_message(answer[2:], damage.files, what)
                    path.write_bytes(whole)
            server.stdin.close()
            self.assertEqual(server.wait(), 0)
            self.assertEqual(len(refused), number + 1)
            self.assertGreater(min(refused.values()), self.CHANGES // 10, refused)


if __name__ == "__main__":
    DUMPER, NACRE = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
