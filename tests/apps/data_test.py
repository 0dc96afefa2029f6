#!/usr/bin/env python3
"""Tests nacre data convert, verify, info and export, and predictions by the ids of the source."""
import array
import csv
import io
import json
import os
import random
import signal
import struct
import time
import zipfile

import cli

try:
    import numpy
    import scipy.sparse
except ImportError:
    numpy = None


def edges_text(count, nodes, seed=1, weighted=False):
    """Returns the text of an edge list with a few very frequent nodes, repeated edges and self
    loops."""
    noise = random.Random(seed)
    pick = [noise.randrange(nodes) * noise.randrange(nodes) // nodes for _ in range(4096)]
    lines = []
    for i in range(count):
        src, dst = pick[(i * 31) % 4096], (pick[(i * 17) % 4093] + i) % nodes
        lines.append(f"{src}\t{dst}\t{i % 97}\n" if weighted else f"{src} {dst}\n")
    return "".join(lines)


def read_npy(content):
    """Returns the shape and the values of a little-endian .npy array."""
    assert content[:6] == b"\x93NUMPY"
    length, = struct.unpack("<H", content[8:10])
    # eval() is safe here, because the program under test wrote the text.
    header = eval(content[10:10 + length])
    code = {"<f4": "f", "<i8": "q", "|u1": "B"}.get(header["descr"])
    payload = content[10 + length:]
    return header["shape"], array.array(code, payload).tolist() if code else payload


def read_npz(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name[:-4]: read_npy(archive.read(name)) for name in archive.namelist()}


class Convert(cli.CliTest):
    def test_little_memory_gives_the_same_bytes(self):
        self.write("e.txt", edges_text(600_000, 30_000, weighted=True))
        options = ("--undirected", "--self-loops")
        self.ok("data", "convert", "e.txt", "a.nacre", *options)
        spilled = self.ok("data", "convert", "e.txt", "b.nacre", *options, "--memory", "64M")
        self.assertIn("sorted runs on disk", spilled.err)
        self.assertEqual(self.read("a.nacre"), self.read("b.nacre"))
        self.assertEqual(self.files(), ["a.nacre", "b.nacre", "e.txt"])

    def test_killed_and_continued(self):
        self.write("e.txt", edges_text(600_000, 30_000, weighted=True))
        command = ("data", "convert", "e.txt", "a.nacre", "--undirected", "--memory", "64M")
        self.ok(*command)
        whole = self.read("a.nacre")
        for entries in (2, 3):
            (self.dir / "a.nacre").unlink()
            process = self.start(*command)
            journal = self.dir / "a.nacre.partial" / "journal"
            while process.poll() is None:
                try:
                    if journal.read_bytes().count(b"\n") >= entries:
                        break
                except OSError:
                    pass
                time.sleep(0.001)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            killed = process.returncode != 0
            self.assertEqual((self.dir / "a.nacre").exists(), not killed)
            again = self.ok(*command)
            self.assertEqual("continuing the conversion" in again.err, killed, again)
            self.assertEqual(self.read("a.nacre"), whole)
            self.assertFalse(journal.parent.exists())

    def test_another_source_starts_anew(self):
        self.write("e.txt", edges_text(3000, 100))
        folder = self.dir / "a.nacre.partial"
        folder.mkdir()
        (folder / "journal").write_text("0123456789abcdef something torn")
        self.ok("data", "convert", "e.txt", "a.nacre")
        self.assertEqual(self.files(), ["a.nacre", "e.txt"])

    def test_options_are_recorded(self):
        self.write("small.npz", cli.small_npz())
        self.ok("data", "convert", "small.npz", "a.nacre", "--self-loops", "--reorder", "rcm", "--feature-dtype", "bf16",
                "--undirected")
        info = json.loads(self.ok("data", "info", "a.nacre", "--json").out)
        self.assertEqual(info["file"]["conversion"],
                         {"source": "small.npz", "format": "", "undirected": True, "self_loops": True, "reorder": "rcm",
                          "feature_dtype": "bf16"})
        self.assertEqual(info["file"]["features"], "bf16")
        self.assertTrue(info["renumbered"])
        self.assertEqual(info["self_loops"], cli.NODES)
        self.assertTrue(info["training_memory"]["gcn"]["exact"])
        self.assertGreater(info["training_memory"]["gcn"]["bytes"], 3 * 256 * 4 * cli.NODES)
        text = self.ok("data", "info", "a.nacre").out
        for word in ("bf16", "reordered (rcm)", "training", "gcn", "made with"):
            self.assertIn(word, text)

    def test_refused(self):
        self.write("e.txt", edges_text(100, 10))
        self.write("small.npz", cli.small_npz())
        self.write("folder.nacre/x", "")
        for arguments, says in ((("--reorder", "best"), "--reorder"), (("--feature-dtype", "f8"), "--feature-dtype"),
                                (("--memory", "1K"), "--memory"), (("--memory", "much"), "--memory"),
                                (("--num-nodes", "5"), "only 5 nodes"), (("--features", "e.bin"), "e.bin")):
            self.refused("data", "convert", "e.txt", "out.nacre", *arguments, says=says)
        self.refused("data", "convert", "e.txt", "folder.nacre", says="is a folder")
        self.refused("data", "convert", "e.txt", "out.npz", "--reorder", "rcm", says="--reorder")
        self.refused("data", "convert", "e.txt", "out.txt", says="unknown ending")
        self.refused("data", "verify", "e.txt", says="not a Nacre data set")
        self.refused("data", "export", "small.npz", "out", "--format", "dgl", says="'dgl'")
        # The command refuses this before it reads the data.
        for force in ((), ("--force",)):
            self.refused("data", "export", "absent.npz", "folder.nacre", "--format", "ogb", *force, says="exists already")
        self.refused("data", "export", "e.txt", "out", "--format", "saint", says="features and labels")

    def test_full_disk_can_be_continued(self):
        self.write("e.txt", edges_text(200_000, 3000))
        self.ok("data", "convert", "e.txt", "whole.nacre")
        result = self.nacre("data", "convert", "e.txt", "a.nacre", file_size=300_000)
        self.assertEqual(result.code, 1, result)
        self.assertIn("the same command will continue", result.err)
        self.assertFalse((self.dir / "a.nacre").exists())
        self.ok("data", "convert", "e.txt", "a.nacre")
        self.assertEqual(self.read("a.nacre"), self.read("whole.nacre"))


class Verify(cli.CliTest):
    def test_damage_is_found(self):
        self.write("small.npz", cli.small_npz())
        self.ok("data", "convert", "small.npz", "a.nacre")
        self.assertIn("whole", self.ok("data", "verify", "a.nacre").out)
        content = self.read("a.nacre")
        noise = random.Random(5)
        for _ in range(40):
            at = noise.randrange(len(content))
            damaged = bytearray(content)
            damaged[at] ^= 1 << noise.randrange(8)
            self.write("b.nacre", bytes(damaged))
            line = self.refused("data", "verify", "b.nacre", says="b.nacre")
            if at >= 4096 and "checksum" in line:
                self.assertIn("section '", line)
                self.assertIn("at offset ", line)
        for size in (0, 7, 4095, 4096, len(content) - 1):
            self.write("b.nacre", content[:size])
            self.refused("data", "verify", "b.nacre", says="b.nacre")


class Export(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.members = {name: read_npy(content) for name, content in cli.small_members().items()}
        self.write("small.npz", cli.small_npz(y=cli.npy([-1] * 5 + [v % cli.CLASSES for v in range(5, cli.NODES)]),
                                              train_idx=cli.npy(list(range(5, 20)))))
        shape, ends = self.members["edge_index"]
        self.edges = sorted(zip(ends[:shape[1]], ends[shape[1]:]))

    def fingerprint(self, name):
        return json.loads(self.ok("data", "info", name, "--json").out)["fingerprint"]

    def test_ogb(self):
        self.ok("data", "export", "small.npz", "out", "--format", "ogb")
        data = read_npz(self.dir / "out/raw/data.npz")
        (_, count), ends = data["edge_index"]
        self.assertEqual(sorted(zip(ends[:count], ends[count:])), self.edges)
        self.assertEqual(data["num_nodes_list"], ((1,), [cli.NODES]))
        self.assertEqual(data["num_edges_list"], ((1,), [count]))
        self.assertEqual(data["node_feat"], self.members["x"])
        shape, labels = read_npz(self.dir / "out/raw/node-label.npz")["node_label"]
        self.assertEqual(shape, (cli.NODES, 1))
        self.assertTrue(all(y != y for y in labels[:5]), "NaN: no label")
        self.assertEqual(labels[5:], [float(v % cli.CLASSES) for v in range(5, cli.NODES)])
        self.assertEqual(self.fingerprint("out"), self.fingerprint("small.npz"))

    def test_saint(self):
        self.ok("data", "export", "small.npz", "out/", "--format", "saint")
        full = read_npz(self.dir / "out/adj_full.npz")
        _, rows = full["indptr"]
        _, columns = full["indices"]
        self.assertEqual(full["format"][1], b"csr")
        self.assertEqual(full["shape"][1], [cli.NODES] * 2)
        self.assertEqual([(v, c) for v in range(cli.NODES) for c in columns[rows[v]:rows[v + 1]]], self.edges)
        train = read_npz(self.dir / "out/adj_train.npz")
        inner = [(s, d) for s, d in self.edges if 5 <= s < 20 and 5 <= d < 20]
        self.assertEqual(len(train["indices"][1]), len(inner))
        self.assertEqual(read_npy(self.read("out/feats.npy")), self.members["x"])
        self.assertEqual(json.loads(self.read("out/class_map.json")),
                         {str(v): v % cli.CLASSES for v in range(5, cli.NODES)})
        self.assertEqual(json.loads(self.read("out/role.json"))["tr"], list(range(5, 20)))
        self.assertEqual(self.fingerprint("out"), self.fingerprint("small.npz"))
        if numpy is not None:
            matrix = scipy.sparse.load_npz(self.dir / "out/adj_full.npz").tocoo()
            self.assertEqual(sorted(zip(matrix.row.tolist(), matrix.col.tolist())), self.edges)
            self.assertEqual(numpy.load(self.dir / "out/feats.npy").shape, (cli.NODES, cli.FEATURES))

    def test_npz(self):
        self.ok("data", "export", "small.npz", "out.npz")
        data = read_npz(self.dir / "out.npz")
        self.assertEqual(data["x"], self.members["x"])
        self.assertEqual(self.fingerprint("out.npz"), self.fingerprint("small.npz"))
        if numpy is not None:
            self.assertEqual(numpy.load(self.dir / "out.npz")["edge_index"].shape, (2, len(self.edges)))

    def test_failed_exports_leave_nothing(self):
        self.refused("data", "export", "small.npz", "out", "--format", "ogb", code=1, file_size=500)
        self.refused("data", "export", "small.npz", "absent/dir/out.npz", says="absent")


class Predictions(cli.CliTest):
    def test_by_original_id(self):
        self.write("small.npz", cli.small_npz())
        self.ok("train", "--data", "small.npz", "--epochs", 3, "--checkpoint", "run")
        self.ok("data", "convert", "small.npz", "moved.nacre", "--reorder", "degree")
        self.assertNotEqual(self.read("small.npz"), self.read("moved.nacre"))
        for name, source in (("a", "small.npz"), ("b", "moved.nacre")):
            for ending in ("csv", "npy", "safetensors"):
                self.ok("predict", "--checkpoint", "run", "--data", source, "-o", f"{name}.{ending}",
                        *(("--scores",) if ending == "csv" else ()))
        rows = [list(csv.DictReader(io.StringIO(self.read(f"{name}.csv").decode()))) for name in "ab"]
        self.assertEqual([row["node"] for row in rows[0]], [str(v) for v in range(cli.NODES)])
        self.assertEqual([row["node"] for row in rows[1]], [row["node"] for row in rows[0]])
        self.assertEqual([row["prediction"] for row in rows[1]], [row["prediction"] for row in rows[0]])
        (shape, own), (_, moved) = (read_npy(self.read(f"{name}.npy")) for name in "ab")
        self.assertEqual(shape, (cli.NODES, cli.CLASSES))
        for one, other in zip(own, moved):
            self.assertAlmostEqual(one, other, places=4)
        self.assertAlmostEqual(own[4], float(rows[0][1]["score_1"]), places=6)
        content = self.read("b.safetensors")
        length, = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + length])
        begin, end = header["ids"]["data_offsets"]
        self.assertEqual(array.array("q", content[8 + length + begin:8 + length + end]).tolist(), list(range(cli.NODES)))
        self.assertFalse(os.path.exists(self.dir / "b.ids.npy"), "rows are 0, 1, 2, …")

    def test_embeddings(self):
        self.write("small.npz", cli.small_npz())
        self.ok("train", "--data", "small.npz", "--epochs", 2, "--hidden", 12, "--checkpoint", "run")
        for ending in ("csv", "npy", "safetensors"):
            self.ok("predict", "--checkpoint", "run", "--data", "small.npz", "-o", f"e.{ending}", "--embeddings")
        shape, values = read_npy(self.read("e.npy"))
        self.assertEqual(shape, (cli.NODES, 12))
        rows = list(csv.DictReader(io.StringIO(self.read("e.csv").decode())))
        self.assertEqual(list(rows[0]), ["node"] + [f"embedding_{k}" for k in range(12)])
        written = [float(row[f"embedding_{k}"]) for row in rows for k in range(12)]
        for one, other in zip(values, written):
            self.assertAlmostEqual(one, other, places=5)
        self.assertTrue(min(values) >= 0 < max(values))  # the values come from a relu
        self.assertIn(b"embeddings", self.read("e.safetensors")[:200])
        self.ok("train", "--data", "small.npz", "--epochs", 1, "--layers", 1, "--checkpoint", "flat")
        self.refused("predict", "--checkpoint", "flat", "--data", "small.npz", "-o", "f.npy", "--embeddings",
                     says="hidden layer")


if __name__ == "__main__":
    cli.main()
