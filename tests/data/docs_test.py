#!/usr/bin/env python3
"""Every command of docs/data.md, exactly as it stands there, in a folder with sets of the names
it uses.

    python3 tests/data/docs_test.py build/release/nacre docs/data.md
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import write_formats as w

PROGRAM = DOCS = None


def move(writer, folder, name, inner=""):
    """Moves what a writer makes to the name that the documentation has for it."""
    made = w.write(writer, folder / ".made").path
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.move(made / inner if inner else made, folder / name)
    return folder / name


def splits(folder):
    w.npz(folder / "s.npz", train_idx=w.TRAIN, val_idx=w.VAL, test_idx=w.TEST)


def beside_edges(folder):
    move(w.edges_and_files, folder, "graph.txt")
    w.text(folder / "graph.txt", [f"{a} {b}" for a, b in w.EDGES] + ["10 11"])
    w.npy(folder / "x.npy", w.FEATURES)
    w.npy(folder / "y.npy", np.array(w.LABELS))
    w.text(folder / "y.txt", w.LABELS)
    splits(folder)


def named_edges(folder):
    w.text(folder / "friends.csv", ["source,target"] + [f"n{a},n{b}" for a, b in w.EDGES])
    w.text(folder / "teams.csv", ["node,label"] + [f"n{v},{'ab'[v % 2]}" for v in sorted({v for e in w.EDGES for v in e})])


def planetoid(folder):
    for file in move(w.planetoid, folder, "planetoid/data").iterdir():
        file.rename(file.with_name(file.name.replace("tiny", "cora")))


def film(folder):
    made = move(w.geom_gcn_film, folder, "film")
    shutil.copy(made / "film_split_0.6_0.2_1.npz", made / "film_split_0.6_0.2_3.npz")


def native(folder):
    move(w.one_npz, folder, "set.npz")
    subprocess.run([PROGRAM, "data", "convert", "set.npz", "set.nacre", "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)


# The keys are the names of the layouts in the second column of the table.
LAYOUTS = {
    "nacre": native, "npz": native, "edges": beside_edges,
    "names": named_edges,
    "snap": lambda d: move(w.snap, d, "web-Google.txt.gz"),
    "mtx": lambda d: move(w.matrix_market_symmetric, d, "graph.mtx.gz"),
    "ogb": lambda d: move(w.ogb_csv, d, "dataset/ogbn_arxiv"),
    "ogb-hetero": lambda d: move(w.ogb_hetero_csv, d, "dataset/ogbn_mag"),
    "mag240m": lambda d: move(w.mag240m, d, "mag240m_kddcup2021"),
    "igb": lambda d: move(w.igbh, d, "igb/tiny"),
    "saint": lambda d: move(w.saint, d, "reddit"),
    "dgl-reddit": lambda d: move(w.dgl_reddit, d, "reddit"),
    "shchur": lambda d: (move(w.shchur, d, "amazon_electronics_photo.npz"), splits(d)),
    "geom-gcn": film, "planetoid": planetoid,
    "linqs": lambda d: move(w.linqs, d, "cora"),
    "dgl-csv": lambda d: move(w.dgl_csv, d, "my_csv_set"),
    "graphbolt": lambda d: move(w.graphbolt, d, "my_graphbolt_set"),
    "triples": lambda d: move(w.triples, d, "FB15k-237"),
    "lightgcn": lambda d: move(w.lightgcn, d, "gowalla"),
}


def everything(folder):
    """Makes the data for the commands outside the table, which follow each other."""
    native(folder)
    beside_edges(folder)
    w.text(folder / "soc-LiveJournal1.txt.gz", ["# a comment"] + [f"{a}\t{b}" for a, b in w.EDGES])
    w.npy(folder / "edges.npy", w.pairs(w.EDGES + [(10, 11)]))
    w.text(folder / "edges.csv", [f"{a},{b}" for a, b in w.EDGES])
    move(w.ogb_products, folder, "dataset/ogbn_products")
    move(w.igbh, folder, "igb/tiny")
    subprocess.run([PROGRAM, "train", "--data", "set.nacre", "--hidden", "8", "--epochs", "2", "--quiet", "--checkpoint", "run"],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)


class Docs(unittest.TestCase):
    def run_in(self, folder, command):
        environment = dict(os.environ, PATH=f"{Path(PROGRAM).parent}:{os.environ['PATH']}")
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stderr}")

    def test_one_line_per_layout(self):
        rows = re.findall(r"^\|[^|]*\| `([a-z0-9-]+)[^|]*?` (?:\\\|[^|]*)?\| `(nacre [^`]*)` \|", DOCS.replace("\\|", "/"), re.M)
        self.assertEqual(sorted(name for name, _ in rows), sorted(LAYOUTS))
        for name, command in rows:
            with self.subTest(command), tempfile.TemporaryDirectory(prefix="nacre-docs-") as folder:
                LAYOUTS[name](Path(folder))
                self.run_in(folder, command)

    def test_every_other_line(self):
        with tempfile.TemporaryDirectory(prefix="nacre-docs-") as folder:
            everything(Path(folder))
            commands = [re.split(r"\s{2,}", line)[0] for line in re.findall(r"^    (nacre .*)$", DOCS, re.M)]
            self.assertGreater(len(commands), 12)
            for command in commands:
                for word, path in (("PATH", "set.npz"), ("SRC", "set.npz"), ("FILE", "set.nacre")):
                    command = command.replace(word, path)
                command = command.replace("DST", "exported.npz" if "export" in command else "made.nacre")
                with self.subTest(command):
                    self.run_in(folder, command)


if __name__ == "__main__":
    PROGRAM, DOCS = str(Path(sys.argv.pop(1)).resolve()), Path(sys.argv.pop(1)).read_text()
    unittest.main()
